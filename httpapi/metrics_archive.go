package httpapi

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rollcall/rollcall"
)

// archiveMetrics measures runs of the archive.
type archiveMetrics struct {
	runs       *prometheus.CounterVec
	rows, days prometheus.Counter
	lastMillis atomic.Int64 // when the latest that completed began; 0 for none known
}

func newArchiveMetrics() *archiveMetrics {
	m := &archiveMetrics{
		runs: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "rollcall_archive_runs_total", Help: "Runs of the archive that this server did, by how they ended.",
		}, []string{"state"}),
		rows: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "rollcall_archive_rows_written_total", Help: "User-months that this server copied into the archive.",
		}),
		days: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "rollcall_archive_offloads_total", Help: "Days that left the hot store in runs of this server.",
		}),
	}
	for _, state := range []rollcall.ArchiveState{rollcall.RunCompleted, rollcall.RunFailed} {
		m.runs.WithLabelValues(string(state)) // so that it is there before the first
	}
	return m
}

func (m *archiveMetrics) collectors() []prometheus.Collector {
	return []prometheus.Collector{
		m.runs, m.rows, m.days,
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "rollcall_archive_last_success_timestamp_seconds", Help: "When the latest run began that completed, on whatever server; NaN if none is known.",
		}, func() float64 { return m.last() }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "rollcall_archive_lag_seconds", Help: "How long ago that was: no mark that waits to be copied is older; NaN if none is known.",
		}, func() float64 { return float64(time.Now().UnixMilli())/1000 - m.last() }),
	}
}

func (m *archiveMetrics) last() float64 {
	if at := m.lastMillis.Load(); at != 0 {
		return float64(at) / 1000
	}
	return math.NaN()
}

// Archived measures a run of the archive that ended. One that is not this
// server's own only tells when one completed.
func (m *Metrics) Archived(run rollcall.ArchiveRun, own bool) {
	a := m.archive
	if own {
		a.runs.WithLabelValues(string(run.State)).Inc()
		a.rows.Add(float64(run.RowsWritten))
		a.days.Add(float64(run.DaysOffloaded))
	}
	if run.State != rollcall.RunCompleted {
		return
	}
	at := run.StartedAt.UnixMilli()
	for before := a.lastMillis.Load(); at > before && !a.lastMillis.CompareAndSwap(before, at); {
		before = a.lastMillis.Load()
	}
}
