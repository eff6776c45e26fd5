package httpapi

import (
	"context"
	"math"

	"github.com/rollcall/rollcall"
)

type retentionInput struct {
	RangeQuery
	Period  rollcall.Period  `query:"period" default:"week" enum:"day,week,month"`
	Cohort  rollcall.Cohort  `query:"cohort" default:"first" enum:"first,recurring" doc:"first ever active in a period, or active in it"`
	Measure rollcall.Measure `query:"measure" default:"on" enum:"on,on_or_after" doc:"active in just that period, or in that or any later one"`
}

// retention is a triangle: how many of each cohort came back.
type retention struct {
	AskedRange
	Period  rollcall.Period  `json:"period"`
	Cohort  rollcall.Cohort  `json:"cohort"`
	Measure rollcall.Measure `json:"measure"`
	Cohorts []cohort         `json:"cohorts" nullable:"false"`
	Mean    []*float64       `json:"mean" nullable:"false" doc:"mean share retained by distance, over complete periods; null if there is none"`
}

type cohort struct {
	Start    day    `json:"start"`
	Size     int    `json:"size"`
	Retained []int  `json:"retained" nullable:"false" doc:"how many were retained 0, 1, … periods later"`
	Complete []bool `json:"complete" nullable:"false" doc:"whether that period is over"`
	Begun    []bool `json:"begun" nullable:"false" doc:"whether that period has begun: if not, nobody can have come yet"`
}

func cohortOf(r rollcall.CohortRow) cohort {
	return cohort{
		Start: dayOf(r.Start), Size: r.Size,
		Retained: each(r.Retained, func(n int) int { return n }),
		Complete: each(r.Complete, func(b bool) bool { return b }),
		Begun:    each(r.Begun, func(b bool) bool { return b }),
	}
}

type lifecycleInput struct {
	RangeQuery
	Period rollcall.Period `query:"period" default:"week" enum:"day,week,month"`
}

// lifecycle counts the users of each period by where they come from.
type lifecycle struct {
	AskedRange
	Period rollcall.Period `json:"period"`
	Items  []lifecycleRow  `json:"items" nullable:"false"`
}

type lifecycleRow struct {
	Start        day  `json:"start"`
	New          int  `json:"new" doc:"first ever active"`
	Returning    int  `json:"returning" doc:"active in the period just before too"`
	Resurrecting int  `json:"resurrecting" doc:"active some time before, but not in the period just before"`
	Dormant      int  `json:"dormant" doc:"active in the period just before, not in this one"`
	Complete     bool `json:"complete" doc:"whether the period is over"`
	ToCome       bool `json:"to_come,omitempty" doc:"the period has not begun"`
}

func (s *Server) registerCohorts() {
	register(s, op("GET /v1/attendance/retention", "retention", "Attendance", "Who came back: cohorts by period"), s.retention)
	register(s, op("GET /v1/attendance/lifecycle", "lifecycle", "Attendance", "New, returning, resurrecting and dormant users by period"), s.lifecycle)
}

func (s *Server) retention(ctx context.Context, in *retentionInput) (retention, error) {
	days, err := in.periods(s.roll.Today(), in.Period)
	if err != nil {
		return retention{}, err
	}
	found, err := s.view(ctx).Retention(ctx, rollcall.RetentionQuery{
		Range: days, Kind: in.Kind, Period: in.Period, Cohort: in.Cohort, Measure: in.Measure,
	})
	return retention{
		AskedRange: askedRange(days),
		Period:     in.Period, Cohort: in.Cohort, Measure: in.Measure,
		Cohorts: each(found.Rows, cohortOf), Mean: each(found.Mean, share),
	}, err
}

// share is nil where there is nothing to take the mean of.
func share(v float64) *float64 {
	if math.IsNaN(v) {
		return nil
	}
	return &v
}

func (s *Server) lifecycle(ctx context.Context, in *lifecycleInput) (lifecycle, error) {
	days, err := in.periods(s.roll.Today(), in.Period)
	if err != nil {
		return lifecycle{}, err
	}
	found, err := s.view(ctx).Lifecycle(ctx, rollcall.LifecycleQuery{Range: days, Kind: in.Kind, Period: in.Period})
	today := s.roll.Today()
	return lifecycle{AskedRange: askedRange(days), Period: in.Period, Items: each(found, func(r rollcall.LifecycleRow) lifecycleRow {
		return lifecycleRow{
			Start: dayOf(r.Start), New: r.New, Returning: r.Returning, Resurrecting: r.Resurrecting, Dormant: r.Dormant,
			Complete: in.Period.Next(r.Start) <= today, ToCome: r.Start > today,
		}
	})}, err
}
