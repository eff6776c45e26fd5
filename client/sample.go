package client

import (
	"context"
	"net/http"
	"time"

	"github.com/rollcall/rollcall"
)

// sample is what was counted in a minute or an hour, on the wire. The least and the
// greatest stand in those of hours alone.
type sample struct {
	At          time.Time
	Online      int
	OnlineMin   *int `json:"online_min"`
	OnlineMax   *int `json:"online_max"`
	Sessions    int
	SessionsMin *int `json:"sessions_min"`
	SessionsMax *int `json:"sessions_max"`
	Logins      int
	Ends        map[rollcall.Cause]int
	Beats       int
}

func (s sample) domain() rollcall.Sample {
	or := func(v *int, mean int) int {
		if v == nil {
			return mean
		}
		return *v
	}
	out := rollcall.Sample{
		At: s.At, Online: s.Online, OnlineMin: or(s.OnlineMin, s.Online), OnlineMax: or(s.OnlineMax, s.Online),
		Sessions: s.Sessions, SessionsMin: or(s.SessionsMin, s.Sessions), SessionsMax: or(s.SessionsMax, s.Sessions),
		Logins: s.Logins, Ends: s.Ends, Beats: s.Beats,
	}
	if out.Ends == nil {
		out.Ends = make(map[rollcall.Cause]int)
	}
	return out
}

// Samples returns what was counted in each minute or hour of a range; see
// [rollcall.Roll.Samples].
func (c *Client) Samples(ctx context.Context, query rollcall.SampleQuery) ([]rollcall.Sample, error) {
	q := newParams()
	q.text("step", string(query.Step))
	q.text("from", instant(query.From))
	q.text("to", instant(query.To))
	var answer items[sample]
	err := c.do(ctx, call{method: http.MethodGet, path: "/v1/online/history", query: q.Values}, &answer)
	return each(answer.Items, sample.domain), err
}
