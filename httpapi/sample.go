package httpapi

import (
	"context"

	"github.com/rollcall/rollcall"
)

type samplesInput struct {
	From instant `query:"from" doc:"the first instant; a day before to unless said, 30 days for step=1h"`
	To   instant `query:"to" doc:"the instant at which the range ends, which is not part of it; now unless said"`
	Step string  `query:"step" default:"1m" enum:"1m,1h" doc:"a sample for each minute, of at most 8 days, or for each hour of UTC, of at most 400 days"`
}

// sample is what was counted in a minute or an hour.
type sample struct {
	At          instant        `json:"at" doc:"when the minute or hour began"`
	Online      int            `json:"online" doc:"users online for the server's own window, when the minute was sampled; of an hour the mean of its minutes, rounded"`
	OnlineMin   *int           `json:"online_min,omitempty" doc:"of an hour: the least of its minutes"`
	OnlineMax   *int           `json:"online_max,omitempty" doc:"of an hour: the greatest of its minutes"`
	Sessions    int            `json:"sessions" doc:"live sessions; of an hour the mean of its minutes, rounded"`
	SessionsMin *int           `json:"sessions_min,omitempty" doc:"of an hour: the least of its minutes"`
	SessionsMax *int           `json:"sessions_max,omitempty" doc:"of an hour: the greatest of its minutes"`
	Logins      int            `json:"logins" doc:"sessions that began"`
	Ends        map[string]int `json:"ends" doc:"sessions that ended, by cause; without the zeros"`
	Beats       int            `json:"beats" doc:"signs of life of users: beats, logins and touches"`
}

// sampleList is the samples of a range.
type sampleList struct {
	Step  string   `json:"step" enum:"1m,1h"`
	Items []sample `json:"items" nullable:"false" doc:"in order; a minute in which no server ran is not among them, nor is the minute under way"`
}

func (s *Server) registerSamples() {
	register(s, op("GET /v1/online/history", "online-history", "Presence", "Users online, live sessions, logins, ends and beats, by minute or hour"), s.samples)
}

func (s *Server) samples(ctx context.Context, in *samplesInput) (sampleList, error) {
	out := sampleList{Step: in.Step}
	q := rollcall.SampleQuery{Step: rollcall.Step(in.Step)}
	var err error
	if q.From, err = in.From.parse("from"); err != nil {
		return out, err
	}
	if q.To, err = in.To.parse("to"); err != nil {
		return out, err
	}
	found, err := s.view(ctx).Samples(ctx, q)
	out.Items = each(found, func(one rollcall.Sample) sample { return sampleOf(one, q.Step) })
	return out, err
}

func sampleOf(s rollcall.Sample, step rollcall.Step) sample {
	out := sample{
		At: instantOf(s.At), Online: s.Online, Sessions: s.Sessions,
		Logins: s.Logins, Ends: make(map[string]int, len(s.Ends)), Beats: s.Beats,
	}
	for cause, n := range s.Ends {
		out.Ends[string(cause)] = n
	}
	if step == rollcall.StepHour {
		out.OnlineMin, out.OnlineMax = &s.OnlineMin, &s.OnlineMax
		out.SessionsMin, out.SessionsMax = &s.SessionsMin, &s.SessionsMax
	}
	return out
}
