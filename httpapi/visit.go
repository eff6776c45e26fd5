package httpapi

import (
	"context"
	"strings"
	"time"

	"github.com/rollcall/rollcall"
)

type visitsInput struct {
	Body struct {
		Name     string   `json:"name,omitempty" doc:"of what they visited, such as a site or a page; up to 64 bytes"`
		Visitors []string `json:"visitors" nullable:"false" maxItems:"10000" doc:"ids of 1 to 128 bytes, which need not be those of users"`
	} `nameHint:"VisitsRequest"`
}

type visitorsInput struct {
	Name string             `query:"name" doc:"of what was visited; the one without a name unless said"`
	From string             `query:"from" doc:"first day, or the instant at which an hour begins; 28 days up to to unless said (24 hours by hour)" example:"2026-02-01"`
	To   string             `query:"to" doc:"last day, or the instant at which the last hour ends; today unless said (this hour by hour)" example:"2026-02-28"`
	By   rollcall.VisitUnit `query:"by" default:"day" enum:"hour,day"`
}

// visitors are estimates of how many there were.
type visitors struct {
	Name          string             `json:"name"`
	By            rollcall.VisitUnit `json:"by"`
	Total         int                `json:"total" doc:"different visitors in the whole range"`
	StandardError float64            `json:"standard_error" doc:"of each estimate, relative to it"`
	Items         []visitCount       `json:"items" nullable:"false"`
}

type visitCount struct {
	Start    instant `json:"start" doc:"when the hour or day begins, or the range in it"`
	Visitors int     `json:"visitors"`
}

func (s *Server) registerVisits() {
	visit := op("POST /v1/visits", "visit", "Visits", "Note visitors in the hour it is")
	visit.Description = "Visitors are counted by a sketch (HyperLogLog) and not kept; noting one again changes nothing."
	register(s, visit, s.visit)
	count := op("GET /v1/visits", "count-visitors", "Visits", "Estimate how many different visitors there were")
	count.Description = "In a range of up to 400 days by day, or 31 by hour. Whoever came in several hours or days counts once in the total."
	register(s, count, s.visitors)
}

func (s *Server) visit(ctx context.Context, in *visitsInput) (accepted, error) {
	err := s.view(ctx).Visit(ctx, in.Body.Name, in.Body.Visitors...)
	return accepted{len(in.Body.Visitors)}, err
}

func (s *Server) visitors(ctx context.Context, in *visitorsInput) (visitors, error) {
	q, err := s.visitQuery(in)
	if err != nil {
		return visitors{}, err
	}
	found, err := s.view(ctx).Visitors(ctx, q)
	return visitors{
		Name: q.Name, By: q.By, Total: found.Total, StandardError: found.StandardError,
		Items: each(found.Items, func(c rollcall.VisitCount) visitCount { return visitCount{instantOf(c.Start), c.Visitors} }),
	}, err
}

func (s *Server) visitQuery(in *visitorsInput) (rollcall.VisitQuery, error) {
	q := rollcall.VisitQuery{Name: in.Name, By: in.By}
	var err error
	switch {
	case in.To != "":
		q.To, err = s.visitEnd("to", in.To, 1)
	case in.By == rollcall.VisitsByHour:
		_, q.To = s.roll.HourAt(s.roll.Now())
	default:
		q.To = s.roll.DayStart(s.roll.Today() + 1)
	}
	if err != nil {
		return q, err
	}
	switch {
	case in.From != "":
		q.From, err = s.visitEnd("from", in.From, 0)
	case in.By == rollcall.VisitsByHour:
		q.From, _ = s.roll.HourAt(q.To.Add(-24 * time.Hour))
	default:
		q.From = s.roll.DayStart(s.roll.DayAt(q.To.Add(-1)) + 1 - defaultDays)
	}
	return q, err
}

// visitEnd reads an end of a range: an instant, or a day and so many days more.
func (s *Server) visitEnd(field, text string, more rollcall.Day) (time.Time, error) {
	if strings.Contains(text, "T") {
		return instant(text).parse(field)
	}
	d, err := day(text).parse(field)
	return s.roll.DayStart(d + more), err
}
