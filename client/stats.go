package client

import (
	"context"
	"net/http"
	"time"

	"github.com/rollcall/rollcall"
)

// Server is what a server says of itself.
type Server struct {
	Version  string
	Now      time.Time      // the time that decides
	Today    rollcall.Day   // in the server's time zone
	Timezone *time.Location // of the civil day
}

// stats is what GET /v1/stats answers.
type stats struct {
	Version  string
	Now      time.Time
	Today    rollcall.Day
	Timezone string

	Engine     string
	Partitions int
	Users      int
	CountKnown int `json:"known"`
	Sessions   int
	Friends    int
	Bans       int
	VisitNames int `json:"visit_names"`
	Outages    int
	Latest     []rollcall.Outage `json:"latest_outages"`
	Memory     []rollcall.MemoryPart
	DiskBytes  int64 `json:"disk_bytes"`
	Refusing   string
}

func (c *Client) stats(ctx context.Context) (stats, error) {
	var answer stats
	err := c.do(ctx, call{method: http.MethodGet, path: "/v1/stats"}, &answer)
	return answer, err
}

// Stats describes the engine; see [rollcall.Roll.Stats].
func (c *Client) Stats(ctx context.Context) (rollcall.Stats, error) {
	s, err := c.stats(ctx)
	if len(s.Memory) == 0 {
		s.Memory = nil
	}
	if len(s.Latest) == 0 {
		s.Latest = nil
	}
	return rollcall.Stats{
		Engine: s.Engine, Partitions: s.Partitions, Users: s.Users, CountKnown: s.CountKnown, Sessions: s.Sessions,
		Friends: s.Friends, Bans: s.Bans, VisitNames: s.VisitNames, Outages: s.Outages, LatestOutages: s.Latest, Memory: s.Memory,
		DiskBytes: s.DiskBytes, Refusing: s.Refusing,
	}, err
}

// Server returns the server's version, time and time zone. It fails if this
// machine does not know the zone.
func (c *Client) Server(ctx context.Context) (Server, error) {
	s, err := c.stats(ctx)
	if err != nil {
		return Server{}, err
	}
	zone, err := time.LoadLocation(s.Timezone)
	if err != nil {
		return Server{}, &rollcall.Error{Code: rollcall.CodeInternal, Detail: "the server's time zone is not known here", Err: err}
	}
	return Server{Version: s.Version, Now: s.Now, Today: s.Today, Timezone: zone}, nil
}

// Ready returns nil if the server can read and write, else why not. It asks once.
func (c *Client) Ready(ctx context.Context) error {
	r := call{method: http.MethodGet, path: "/readyz"}
	if f := c.attempt(ctx, &r, nil, nil); f != nil {
		return f.err
	}
	return nil
}
