package httpapi

import (
	"context"
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rollcall/rollcall"
)

// engineMetrics are values that are asked for, and not counted along the way.
type engineMetrics []prometheus.Metric

// Describe implements prometheus.Collector.
func (m engineMetrics) Describe(descs chan<- *prometheus.Desc) {
	for _, v := range m {
		descs <- v.Desc()
	}
}

// Collect implements prometheus.Collector.
func (m engineMetrics) Collect(values chan<- prometheus.Metric) {
	for _, v := range m {
		values <- v
	}
}

func (m *engineMetrics) add(name, help string, kind prometheus.ValueType, value float64, labels prometheus.Labels) {
	desc := prometheus.NewDesc("rollcall_"+name, help, nil, labels)
	*m = append(*m, prometheus.MustNewConstMetric(desc, kind, value))
}

// gauges asks the engine what it holds. /metrics needs no key, so it is asked as
// the public: nothing shows that invisible users are there. What the engine
// cannot say is left out.
func (s *Server) gauges(ctx context.Context) engineMetrics {
	var m engineMetrics
	engine := "unknown"
	stats, err := s.public.Stats(ctx)
	if err == nil {
		engine = stats.Engine
		refusing := 0.0
		if stats.Refusing != "" {
			refusing = 1
		}
		for _, v := range []struct {
			name, help string
			value      float64
		}{
			{"users", "Users in the id directory.", float64(stats.Users)},
			{"known_users", "Users with a last-seen time.", float64(stats.CountKnown)},
			{"sessions", "Live sessions.", float64(stats.Sessions)},
			{"friends", "Directed edges between users.", float64(stats.Friends)},
			{"bans", "Bans in force.", float64(stats.Bans)},
			{"visit_names", "Names that visitors are counted of.", float64(stats.VisitNames)},
			{"memory_bytes", "Memory of the engine's structures.", float64(stats.MemoryBytes())},
			{"disk_bytes", "Size of the data directory.", float64(stats.DiskBytes)},
			{"refusing_writes", "1 while writes are refused.", refusing},
			{"clock_offset_seconds", "How far the clock that decides is ahead of this machine's.", stats.ClockOffset.Seconds()},
		} {
			m.add(v.name, v.help, prometheus.GaugeValue, v.value, nil)
		}
		m.add("outages_total", "Outages recorded.", prometheus.CounterValue, float64(stats.Outages), nil)
		m.add("visits_other_total", "Calls for a name of visits that was one too many, counted under other.", prometheus.CounterValue, float64(stats.OtherVisits), nil)
	}
	if online, err := s.public.OnlineCount(ctx, 0); err == nil {
		m.add("online_users", "Users online, by the default window.", prometheus.GaugeValue, float64(online), nil)
	}
	s.addMinute(ctx, &m)
	m.add("build_info", "1, with what runs.", prometheus.GaugeValue, 1,
		prometheus.Labels{"version": s.opts.Version, "go_version": runtime.Version(), "engine": engine})
	return m
}

// sampleAge is how far back the latest sample is looked for: one minute is under way,
// and one may be about to be sampled.
const sampleAge = 3 * time.Minute

// addMinute adds what happened in the latest minute that was sampled. It is of the whole
// store, so all servers on one Redis say the same: take the greatest, not the sum.
func (s *Server) addMinute(ctx context.Context, m *engineMetrics) {
	now := s.public.Now()
	samples, err := s.public.Samples(ctx, rollcall.SampleQuery{Step: rollcall.StepMinute, From: now.Add(-sampleAge), To: now})
	if err != nil || len(samples) == 0 {
		return
	}
	last := samples[len(samples)-1]
	m.add("minute_logins", "Sessions that began in the latest minute that was sampled, on all servers.", prometheus.GaugeValue, float64(last.Logins), nil)
	m.add("minute_beats", "Signs of life of users in that minute, on all servers.", prometheus.GaugeValue, float64(last.Beats), nil)
	for _, cause := range rollcall.Causes() {
		m.add("minute_ends", "Sessions that ended in that minute, by cause, on all servers.", prometheus.GaugeValue,
			float64(last.Ends[cause]), prometheus.Labels{"cause": string(cause)})
	}
}
