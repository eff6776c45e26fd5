package httpapi

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/common/expfmt"
	"golang.org/x/time/rate"

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
	refusals       *prometheus.CounterVec
	archive        *archiveMetrics
	backups        *backupMetrics
	streams        *streamMetrics
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
			Buckets: []float64{1e-5, 1e-4, 1e-3, 1e-2, 1e-1},
		}, []string{"command"}),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "rollcall_http_requests_total", Help: "HTTP requests by route and status.",
		}, []string{"route", "status"}),
		requestSeconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "rollcall_http_request_seconds", Help: "How long HTTP requests took: verify, touch, beat, login, streams, and others.",
			Buckets: []float64{1e-4, 1e-3, 1e-2, 1e-1, 1},
		}, []string{"class"}),
		refusals: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "rollcall_refused_callers_total", Help: "Requests refused for who made them: with a credential that is not known, or with one that may not.",
		}, []string{"event"}),
		archive: newArchiveMetrics(),
		backups: &backupMetrics{},
		streams: newStreamMetrics(),
	}
	own := append(m.archive.collectors(), m.commands, m.commandSeconds, m.requests, m.requestSeconds, m.refusals)
	own = append(own, m.streams.collectors()...)
	own = append(own, m.backups.collectors()...)
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
	m.requestSeconds.WithLabelValues(classOf(route)).Observe(took.Seconds())
}

// classOf puts routes into few classes: a histogram of each route would be most
// of what /metrics has to say.
func classOf(route string) string {
	switch route {
	case "GET /v1/verify", "POST /v1/verify":
		return "verify"
	case "POST /v1/touch":
		return "touch"
	case "POST /v1/beats":
		return "beat"
	case "POST /v1/sessions":
		return "login"
	case "GET /v1/events", "GET /v1/me/friends/events":
		return "stream"
	default:
		return "other"
	}
}

func (s *Server) registerMetrics() {
	metrics := op("GET /metrics", "metrics", "Operation", "Measures in the Prometheus text format")
	metrics.Responses = map[string]*huma.Response{"200": {
		Description: "OK", Content: map[string]*huma.MediaType{textType: {Schema: &huma.Schema{Type: huma.TypeString}}},
	}}
	s.registerPlain(metrics, s.metrics)
}

// metrics shows the registry, and what the engine holds.
func (s *Server) metrics(w http.ResponseWriter, r *http.Request) {
	ctx := r.Context()
	text, err := s.page.text(func() ([]byte, error) { return s.gather(ctx) })
	if err != nil {
		s.fail(w, r, err)
		return
	}
	w.Header().Set("Content-Type", string(metricsFormat))
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	_, _ = w.Write(text) // the client has gone if this fails
}

// metricsPage is the text of /metrics. It needs no key, so it is made anew up to
// a rate; beyond that, whoever asks shares the last one, which costs nothing more
// however many ask, or do not read the answer.
type metricsPage struct {
	allowed *rate.Limiter
	mu      sync.Mutex
	last    []byte
}

func newMetricsPage() *metricsPage {
	const perSecond, burst = 2, 20
	return &metricsPage{allowed: rate.NewLimiter(perSecond, burst)}
}

func (p *metricsPage) text(gather func() ([]byte, error)) ([]byte, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.last != nil && !p.allowed.Allow() {
		return p.last, nil
	}
	text, err := gather()
	if err == nil {
		p.last = text
	}
	return text, err
}

var metricsFormat = expfmt.NewFormat(expfmt.TypeTextPlain)

func (s *Server) gather(ctx context.Context) ([]byte, error) {
	own := prometheus.NewRegistry()
	own.MustRegister(s.gauges(ctx)) // a registry of its own: nothing can clash
	families, err := prometheus.Gatherers{s.opts.Metrics.registry, own}.Gather()
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	enc := expfmt.NewEncoder(&text, metricsFormat)
	for _, f := range families {
		if err := enc.Encode(f); err != nil {
			return nil, err
		}
	}
	return text.Bytes(), nil
}
