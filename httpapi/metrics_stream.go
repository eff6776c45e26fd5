package httpapi

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
)

// streamMetrics measure streams: of events, and of live friends.
type streamMetrics struct {
	open    *prometheus.GaugeVec
	ended   *prometheus.CounterVec
	refused *prometheus.CounterVec
}

func newStreamMetrics() *streamMetrics {
	kind := []string{"kind"}
	return &streamMetrics{
		open: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "rollcall_streams", Help: "Streams that are open: events, pages of events that wait, and live friends.",
		}, kind),
		ended: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "rollcall_streams_ended_total", Help: "Streams that ended, by cause: the client left or took nothing, it fell behind, its session or key ended, the server stopped.",
		}, []string{"kind", "cause"}),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "rollcall_streams_refused_total", Help: "Streams that were refused as too many were open.",
		}, kind),
	}
}

func (m *streamMetrics) collectors() []prometheus.Collector {
	return []prometheus.Collector{m.open, m.ended, m.refused}
}

// count counts the end of a stream by its cause.
func (m *streamMetrics) count(kind streamKind, err error) {
	why := "client"
	for name, cause := range map[string]error{
		"behind": errBehind, "shutdown": errStopping, "key": errRevoked, "session": errEnded,
	} {
		if errors.Is(err, cause) {
			why = name
		}
	}
	m.ended.WithLabelValues(string(kind), why).Inc()
}
