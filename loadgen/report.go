package loadgen

import (
	"encoding/json"
	"io"
	"math"
	"time"

	"github.com/rollcall/rollcall"
)

// Report is what a run has measured.
type Report struct {
	Target      string  `json:"target"`
	Where       string  `json:"where,omitempty"`
	Mix         string  `json:"mix"`
	Users       int     `json:"users"`
	Sessions    int     `json:"sessions"` // users who were logged in; 0 if the mix needs none
	Connections int     `json:"connections"`
	Batch       int     `json:"batch,omitempty"` // users of a beat; 0 if the mix has none
	WarmUp      float64 `json:"warm_up_seconds"`
	Seconds     float64 `json:"seconds"` // measured
	// Interrupted says that the run was ended before its time.
	Interrupted bool `json:"interrupted,omitempty"`

	Operations []Figures `json:"operations"` // in the order of the mix
	All        Figures   `json:"all"`

	Schedule *Schedule `json:"schedule,omitempty"` // of a run with a rate
	Arrived  *Arrived  `json:"arrived,omitempty"`  // of beats that nobody answers
}

// Figures are those of one operation, or of all.
type Figures struct {
	Operation Operation `json:"operation"`
	OK        int64     `json:"ok"`
	Rate      float64   `json:"rate"`            // that succeeded in a second
	Users     int64     `json:"users,omitempty"` // in beats that succeeded
	// Errors counts those that failed by their code.
	Errors  map[rollcall.Code]int64 `json:"errors,omitempty"`
	Latency *Latency                `json:"latency_ms,omitempty"` // nil if none succeeded
}

// Failed returns how many failed.
func (f *Figures) Failed() int64 { return (&figures{errors: f.Errors}).failed() }

// Latency is how long operations took that succeeded, in milliseconds. With a rate it
// runs from the instant at which an operation was meant to begin.
type Latency struct {
	Min  float64 `json:"min"`
	Mean float64 `json:"mean"`
	P50  float64 `json:"p50"`
	P90  float64 `json:"p90"`
	P99  float64 `json:"p99"`
	P999 float64 `json:"p99_9"`
	Max  float64 `json:"max"`
}

// Schedule says how well a rate was kept.
type Schedule struct {
	Rate float64 `json:"rate"` // that was asked for
	// Latest is how late an operation began at most, in seconds.
	Latest float64 `json:"latest_seconds"`
	// NotBegun are operations that were meant to begin and had not at the end, and
	// Behind how many seconds of the rate they are.
	NotBegun int64   `json:"not_begun"`
	Behind   float64 `json:"behind_seconds"`
}

// Arrived says what became of beats that were sent and not answered.
type Arrived struct {
	Sent    int64            `json:"sent"`    // users, from the first beat of the run on
	Counted int64            `json:"counted"` // users who were seen
	Dropped map[string]int64 `json:"dropped,omitempty"`
}

// Lost returns how many never came to the other side.
func (a *Arrived) Lost() int64 {
	lost := a.Sent - a.Counted
	for _, n := range a.Dropped {
		lost -= n
	}
	return max(0, lost)
}

// report makes the report of a run that ended then.
func (r *run) report(ended time.Time, interrupted bool) *Report {
	if ended.After(r.schedule.end) {
		ended = r.schedule.end
	}
	seconds := max(0, ended.Sub(r.schedule.measureFrom).Seconds())
	out := &Report{
		Target: r.target.Name, Where: r.target.Where, Mix: r.o.Mix.String(), Users: r.o.Users, Sessions: len(r.crowd.tokens),
		Connections: r.o.Connections, WarmUp: r.o.WarmUp.Seconds(), Seconds: rounded(seconds), Interrupted: interrupted,
	}
	if r.o.Mix.has(Beats) {
		out.Batch = r.o.Batch
	}
	all := newFigures()
	for i, share := range r.o.Mix {
		all.add(r.figures[i])
		out.Operations = append(out.Operations, r.figures[i].report(share.Operation, seconds))
	}
	out.All = all.report("all", seconds)
	if r.o.Rate > 0 {
		n := r.schedule.behind(ended)
		out.Schedule = &Schedule{
			Rate: r.o.Rate, Latest: rounded(time.Duration(r.schedule.longest.Load()).Seconds()),
			NotBegun: n, Behind: rounded(float64(n) / r.o.Rate),
		}
	}
	return out
}

func (f *figures) report(operation Operation, seconds float64) Figures {
	out := Figures{Operation: operation, OK: f.ok, Users: f.users}
	if len(f.errors) > 0 {
		out.Errors = f.errors
	}
	if seconds > 0 {
		out.Rate = rounded(float64(f.ok) / seconds)
	}
	if f.ok > 0 {
		at := func(percentile float64) float64 { return milliseconds(f.latency.ValueAtPercentile(percentile)) }
		out.Latency = &Latency{
			Min: milliseconds(f.latency.Min()), Mean: milliseconds(int64(f.latency.Mean())),
			P50: at(50), P90: at(90), P99: at(99), P999: at(99.9), Max: milliseconds(f.latency.Max()),
		}
	}
	return out
}

// milliseconds turns nanoseconds into milliseconds, to the microsecond.
func milliseconds(ns int64) float64 { return rounded(float64(ns) / 1e6) }

// rounded keeps three digits behind the point.
func rounded(x float64) float64 { return math.Round(x*1000) / 1000 }

// WriteJSON writes the report as one JSON object.
func (r *Report) WriteJSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(r)
}
