package httpapi

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

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
		commandSeconds: prometheus.NewHistogramVec(
			seconds("rollcall_command_seconds", "How long commands took.", 1e-5, 1e-4, 1e-3, 1e-2, 1e-1),
			[]string{"command"}),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "rollcall_http_requests_total", Help: "HTTP requests by route and status.",
		}, []string{"route", "status"}),
		requestSeconds: prometheus.NewHistogramVec(
			seconds("rollcall_http_request_seconds", "How long HTTP requests took: verify, touch, beat, login, streams, and others.", 1e-4, 1e-3, 1e-2, 1e-1, 1),
			[]string{"class"}),
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

// seconds are the options of a histogram of times. Besides its few classic buckets it has
// native ones, of which a scrape in the protobuf format tells: each a tenth wider than the
// one below, so that a quantile is within 5 % of the truth. They take memory as times
// fall into them, up to a limit; past it they are merged two by two.
func seconds(name, help string, buckets ...float64) prometheus.HistogramOpts {
	return prometheus.HistogramOpts{
		Name: name, Help: help, Buckets: buckets,
		NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: 100, NativeHistogramMinResetDuration: time.Hour,
	}
}

// Registry returns where the measures are registered, for more of them.
func (m *Metrics) Registry() *prometheus.Registry { return m.registry }

// Observe implements [rollcall.Observer].
func (m *Metrics) Observe(_ context.Context, command string, took time.Duration, err error) {
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
