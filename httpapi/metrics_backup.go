package httpapi

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// backupMetrics tells of the latest backup that was whole.
type backupMetrics struct {
	lastMillis atomic.Int64 // when it began; 0 for none known
	lastBytes  atomic.Int64
}

func (m *backupMetrics) collectors() []prometheus.Collector {
	return []prometheus.Collector{
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "rollcall_backup_last_success_timestamp_seconds", Help: "When the latest backup began that was sent whole; NaN if none is known.",
		}, m.last),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "rollcall_backup_age_seconds", Help: "How long ago that was; NaN if none is known.",
		}, func() float64 { return float64(time.Now().UnixMilli())/1000 - m.last() }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "rollcall_backup_last_bytes", Help: "The size of that backup, packed; NaN if none is known.",
		}, func() float64 {
			if m.lastMillis.Load() == 0 {
				return math.NaN()
			}
			return float64(m.lastBytes.Load())
		}),
	}
}

func (m *backupMetrics) last() float64 {
	if at := m.lastMillis.Load(); at != 0 {
		return float64(at) / 1000
	}
	return math.NaN()
}

// BackedUp tells of a backup that was sent whole: when it began, and its size.
func (m *Metrics) BackedUp(at time.Time, bytes int64) {
	m.backups.lastBytes.Store(bytes)
	m.backups.lastMillis.Store(at.UnixMilli())
}
