package httpapi

import (
	"context"

	"github.com/rollcall/rollcall"
)

// stats describes the server, its engine and what it holds.
type stats struct {
	Version  string  `json:"version"`
	Now      instant `json:"now" doc:"the time that decides"`
	Today    day     `json:"today"`
	Timezone string  `json:"timezone"`

	Engine      string       `json:"engine" doc:"local or redis"`
	Partitions  int          `json:"partitions"`
	Users       int          `json:"users" doc:"known by id"`
	CountKnown  int          `json:"known" doc:"with a last-seen time"`
	Sessions    int          `json:"sessions" doc:"live"`
	Friends     int          `json:"friends" doc:"directed edges"`
	Bans        int          `json:"bans"`
	VisitNames  int          `json:"visit_names" doc:"that visitors are counted of"`
	Outages     int          `json:"outages" doc:"recorded"`
	LastOutages []outage     `json:"latest_outages" nullable:"false" doc:"the last ones, oldest first, as far as they are remembered"`
	MemoryBytes int64        `json:"memory_bytes"`
	Memory      []memoryPart `json:"memory" nullable:"false"`
	DiskBytes   int64        `json:"disk_bytes"`
	Refusing    string       `json:"refusing,omitempty" doc:"why writes are refused; absent while they are not"`
}

type memoryPart struct {
	Name  string `json:"name"`
	Bytes int64  `json:"bytes"`
}

type outage struct {
	From  instant `json:"from" doc:"the last sign of life before it"`
	Until instant `json:"until" doc:"the end of the grace behind it, within which nothing expires"`
}

func (s *Server) registerStats() {
	register(s, op("GET /v1/stats", "stats", "Administration", "The server, its engine and what it holds"), s.stats)
}

func (s *Server) stats(ctx context.Context, _ *struct{}) (stats, error) {
	e, err := s.view(ctx).Stats(ctx)
	return stats{
		Version: s.opts.Version, Now: instantOf(s.roll.Now()), Today: dayOf(s.roll.Today()), Timezone: s.roll.Timezone().String(),
		Engine: e.Engine, Partitions: e.Partitions, Users: e.Users, CountKnown: e.CountKnown, Sessions: e.Sessions,
		Friends: e.Friends, Bans: e.Bans, VisitNames: e.VisitNames, Outages: e.Outages, MemoryBytes: e.MemoryBytes(),
		Memory:      each(e.Memory, func(p rollcall.MemoryPart) memoryPart { return memoryPart(p) }),
		LastOutages: each(e.LatestOutages, func(o rollcall.Outage) outage { return outage{instantOf(o.From), instantOf(o.Until)} }),
		DiskBytes:   e.DiskBytes, Refusing: e.Refusing,
	}, err
}
