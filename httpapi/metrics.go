package httpapi

import (
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/rollcall/rollcall"
)

// Metrics measures commands and requests. It is a [rollcall.Observer]: give it
// to rollcall.Options before the Server that shows it is made.
type Metrics struct {
	registry *prometheus.Registry

	commands       *prometheus.CounterVec
	commandSeconds *prometheus.HistogramVec
	requests       *prometheus.CounterVec
	requestSeconds *prometheus.HistogramVec
	archive        *archiveMetrics
}

var _ rollcall.Observer = (*Metrics)(nil)

// NewMetrics registers its measures with reg. With nil it makes a registry of
// its own, which also measures the process and the Go runtime.
func NewMetrics(reg *prometheus.Registry) (*Metrics, error) {
	m := &Metrics{
		registry: reg,
		commands: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "rollcall_commands_total", Help: "Commands by name and by the code of their error, ok if there was none.",
		}, []string{"command", "code"}),
		commandSeconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "rollcall_command_seconds", Help: "How long commands took.",
			Buckets: prometheus.ExponentialBuckets(1e-6, 4, 12),
		}, []string{"command"}),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "rollcall_http_requests_total", Help: "HTTP requests by route and status.",
		}, []string{"route", "status"}),
		requestSeconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "rollcall_http_request_seconds", Help: "How long HTTP requests took.",
			Buckets: prometheus.ExponentialBuckets(1e-5, 4, 10),
		}, []string{"route"}),
		archive: newArchiveMetrics(),
	}
	own := append(m.archive.collectors(), m.commands, m.commandSeconds, m.requests, m.requestSeconds)
	if reg == nil {
		m.registry = prometheus.NewRegistry()
		own = append(own, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	}
	var errs []error
	for _, c := range own {
		errs = append(errs, m.registry.Register(c))
	}
	return m, errors.Join(errs...)
}

// Registry returns where the measures are registered, for more of them.
func (m *Metrics) Registry() *prometheus.Registry { return m.registry }

// Observe implements [rollcall.Observer].
func (m *Metrics) Observe(command string, took time.Duration, err error) {
	code := "ok"
	if err != nil {
		code = string(rollcall.CodeOf(err))
	}
	m.commands.WithLabelValues(command, code).Inc()
	m.commandSeconds.WithLabelValues(command).Observe(took.Seconds())
}

// request counts one by its route, which unlike its path names nobody.
func (m *Metrics) request(r *http.Request, status int, took time.Duration) {
	route := r.Pattern
	if route == "" || route == "/" {
		route = "none"
	}
	if status == 0 {
		status = http.StatusOK // what net/http sends for a handler that wrote nothing
	}
	m.requests.WithLabelValues(route, strconv.Itoa(status)).Inc()
	m.requestSeconds.WithLabelValues(route).Observe(took.Seconds())
}

func (s *Server) registerMetrics() {
	metrics := op("GET /metrics", "metrics", "Operation", "Measures in the Prometheus text format")
	metrics.Responses = map[string]*huma.Response{"200": {
		Description: "OK", Content: map[string]*huma.MediaType{textType: {Schema: &huma.Schema{Type: huma.TypeString}}},
	}}
	s.registerPlain(metrics, s.metrics)
}

// metrics shows the registry, and what the engine holds at this moment.
func (s *Server) metrics(w http.ResponseWriter, r *http.Request) {
	gatherers := prometheus.Gatherers{s.opts.Metrics.registry}
	if stats, err := s.roll.Stats(r.Context()); err == nil {
		gatherers = append(gatherers, gaugesOf(stats))
	}
	promhttp.HandlerFor(gatherers, promhttp.HandlerOpts{}).ServeHTTP(w, r)
}

// gaugesOf gathers what an engine holds.
func gaugesOf(stats rollcall.Stats) prometheus.Gatherer {
	reg := prometheus.NewRegistry()
	refusing := 0
	if stats.Refusing != "" {
		refusing = 1
	}
	for _, g := range []struct {
		name, help string
		value      float64
	}{
		{"users", "Users in the id directory.", float64(stats.Users)},
		{"known_users", "Users with a last-seen time.", float64(stats.Known)},
		{"sessions", "Live sessions.", float64(stats.Sessions)},
		{"friends", "Directed edges between users.", float64(stats.Friends)},
		{"bans", "Bans in force.", float64(stats.Bans)},
		{"visit_names", "Names that visitors are counted of.", float64(stats.VisitNames)},
		{"outages", "Outages recorded.", float64(stats.Outages)},
		{"memory_bytes", "Memory of the engine's structures.", float64(stats.MemoryBytes())},
		{"disk_bytes", "Size of the data directory.", float64(stats.DiskBytes)},
		{"refusing_writes", "1 while writes are refused.", float64(refusing)},
		{"clock_offset_seconds", "How far the clock that decides is ahead of this machine's.", stats.ClockOffset.Seconds()},
	} {
		gauge := prometheus.NewGauge(prometheus.GaugeOpts{Name: "rollcall_" + g.name, Help: g.help})
		gauge.Set(g.value)
		reg.MustRegister(gauge) // a registry of its own: nothing can clash
	}
	return reg
}
