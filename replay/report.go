package replay

import (
	"context"
	"encoding/json"
	"io"
	"math"
	"strconv"
	"time"

	"github.com/rollcall/rollcall"
)

// Report is what Rollcall saw in a log. Its JSON form is that of
// "rollcall replay --json"; the parts that the HTTP API also gives have the
// shapes they have there.
type Report struct {
	Rows       int            `json:"rows"`
	Rejected   int            `json:"rejected"`
	Users      int            `json:"users"`
	Sessions   int            `json:"sessions"`
	Peak       Peak           `json:"peak"`
	Series     []Point        `json:"series"`
	Retention  Retentions     `json:"retention"`
	Lifecycle  []Lifecycle    `json:"lifecycle"`
	Streaks    []Streak       `json:"streaks"`
	ActiveDays map[string]int `json:"active_days"`
	Probes     []Probe        `json:"probes"`

	// First names the first lines that were rejected.
	First []Rejected `json:"-"`
	// From and To are the times of the first and the last row, in unix seconds.
	From, To int64 `json:"-"`
	zone     *time.Location
}

// Peak is the most users that were online at once, for a window of 5 minutes,
// and the first second they were; null in a log without rows.
type Peak struct {
	At     instant `json:"at"`
	Online int     `json:"online"`
}

// instant is a time as the HTTP API writes it.
type instant time.Time

// MarshalJSON implements json.Marshaler; the zero time is null.
func (t instant) MarshalJSON() ([]byte, error) {
	if time.Time(t).IsZero() {
		return []byte("null"), nil
	}
	return json.Marshal(time.Time(t).UTC().Format("2006-01-02T15:04:05.000Z"))
}

// Point is a day and the users active on it, in its week and in its 28 days.
type Point struct {
	Day rollcall.Day `json:"day"`
	DAU int          `json:"dau"`
	WAU int          `json:"wau"`
	MAU int          `json:"mau"`
}

// Retentions are the weekly triangles of first-time cohorts.
type Retentions struct {
	On        Retention `json:"on"`
	OnOrAfter Retention `json:"on_or_after"`
}

// Retention is a triangle.
type Retention struct {
	Period  string     `json:"period"`
	Cohort  string     `json:"cohort"`
	Measure string     `json:"measure"`
	Cohorts []Cohort   `json:"cohorts"`
	Mean    []*float64 `json:"mean"` // null where nothing is complete
}

// Cohort is a row of a triangle.
type Cohort struct {
	Start    rollcall.Day `json:"start"`
	Size     int          `json:"size"`
	Retained []int        `json:"retained"`
	Complete []bool       `json:"complete"`
}

// Lifecycle is a week of the users' life.
type Lifecycle struct {
	Start        rollcall.Day `json:"start"`
	New          int          `json:"new"`
	Returning    int          `json:"returning"`
	Resurrecting int          `json:"resurrecting"`
	Dormant      int          `json:"dormant"`
}

// Streak is a user's longest run of days.
type Streak struct {
	User    string `json:"user"`
	Longest int    `json:"longest"`
	Current int    `json:"current"`
	AtRisk  bool   `json:"at_risk"`
}

// Probe is what was asked at an instant.
type Probe struct {
	At            int64               `json:"at"`
	Online        map[string]int      `json:"online"` // by window in seconds
	SessionsTotal int                 `json:"sessions_total"`
	Sessions      []ProbeSession      `json:"sessions"`
	Friends       map[string][]string `json:"friends,omitempty"`
}

// ProbeSession is a live session; as JSON, [user, login in unix seconds].
type ProbeSession struct {
	User  string
	Login int64
}

// MarshalJSON implements json.Marshaler.
func (s ProbeSession) MarshalJSON() ([]byte, error) { return json.Marshal([]any{s.User, s.Login}) }

// WriteJSON writes the report as JSON, indented.
func (r *Report) WriteJSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(r)
}

func newReport(l *log, o Options) *Report {
	r := &Report{
		Rows: len(l.acts), Rejected: l.rejected, First: l.first, zone: o.Timezone,
		Series: []Point{}, Lifecycle: []Lifecycle{}, Streaks: []Streak{}, ActiveDays: map[string]int{}, Probes: []Probe{},
	}
	r.Retention.On, r.Retention.OnOrAfter = newRetention(rollcall.MeasureOn), newRetention(rollcall.MeasureOnOrAfter)
	acted := make(map[uint32]bool)
	for _, a := range l.acts {
		acted[a.user] = true
	}
	r.Users = len(acted)
	if n := len(l.acts); n > 0 {
		r.From, r.To = l.acts[0].at, l.acts[n-1].at
	}
	return r
}

func seconds(d time.Duration) string { return strconv.Itoa(int(d / time.Second)) }

// topStreaks is how many streaks a report has.
const topStreaks = 20

// figures asks for all there is to say about the days, from the first to the
// last one with a row; of a very long log, about its last ten years.
func (p *player) figures(ctx context.Context) error {
	span, ok, err := p.roll.AttendanceSpan(ctx, "")
	if err != nil || !ok {
		return err
	}
	span.From = max(span.From, span.To-rollcall.MaxDayRange+1)
	points, err := p.roll.Series(ctx, rollcall.SeriesQuery{Range: span})
	if err != nil {
		return err
	}
	for _, d := range points {
		p.report.Series = append(p.report.Series, Point{d.Day, d.DAU, d.WAU, d.MAU})
	}
	weeks := span
	weeks.From = max(span.From, span.To-7*(rollcall.MaxPeriods-1)+1)
	if p.report.Retention.On, err = p.retention(ctx, weeks, rollcall.MeasureOn); err != nil {
		return err
	}
	if p.report.Retention.OnOrAfter, err = p.retention(ctx, weeks, rollcall.MeasureOnOrAfter); err != nil {
		return err
	}
	flows, err := p.roll.Lifecycle(ctx, rollcall.LifecycleQuery{Range: weeks})
	if err != nil {
		return err
	}
	for _, f := range flows {
		p.report.Lifecycle = append(p.report.Lifecycle, Lifecycle(f))
	}
	streaks, err := p.roll.Streaks(ctx, "", span, topStreaks)
	if err != nil {
		return err
	}
	for _, s := range streaks {
		p.report.Streaks = append(p.report.Streaks, Streak{s.User, s.Longest, s.Current, s.AtRisk})
	}
	counts, err := p.roll.ActiveDays(ctx, "", span)
	for days, n := range counts {
		if n > 0 {
			p.report.ActiveDays[strconv.Itoa(days)] = n
		}
	}
	return err
}

func newRetention(m rollcall.Measure) Retention {
	return Retention{
		Period: string(rollcall.PeriodWeek), Cohort: string(rollcall.CohortFirst), Measure: string(m),
		Cohorts: []Cohort{}, Mean: []*float64{},
	}
}

func (p *player) retention(ctx context.Context, weeks rollcall.DayRange, m rollcall.Measure) (Retention, error) {
	out := newRetention(m)
	got, err := p.roll.Retention(ctx, rollcall.RetentionQuery{
		Range: weeks, Measure: m, Period: rollcall.PeriodWeek, Cohort: rollcall.CohortFirst,
	})
	if err != nil {
		return out, err
	}
	out.Mean = make([]*float64, len(got.Mean))
	for _, row := range got.Rows {
		out.Cohorts = append(out.Cohorts, Cohort{Start: row.Start, Size: row.Size, Retained: row.Retained, Complete: row.Complete})
	}
	for k, share := range got.Mean {
		if !math.IsNaN(share) {
			out.Mean[k] = &share
		}
	}
	return out, nil
}
