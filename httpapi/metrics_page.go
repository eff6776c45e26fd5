package httpapi

import (
	"bytes"
	"context"
	"net/http"
	"strconv"
	"sync"

	"github.com/danielgtaylor/huma/v2"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"golang.org/x/time/rate"
)

func (s *Server) registerMetrics() {
	metrics := op("GET /metrics", "metrics", "Operation", "Measures in the Prometheus text format, or with native histograms in its protobuf format if the request prefers that")
	metrics.Responses = map[string]*huma.Response{"200": {
		Description: "OK", Content: map[string]*huma.MediaType{
			textType:     {Schema: &huma.Schema{Type: huma.TypeString}},
			protobufType: {Schema: &huma.Schema{Type: huma.TypeString}},
		},
	}}
	s.registerPlain(metrics, s.metrics)
}

const protobufType = "application/vnd.google.protobuf"

// The formats of the page. Only protobuf can tell of native buckets.
var (
	metricsText     = expfmt.NewFormat(expfmt.TypeTextPlain)
	metricsProtobuf = expfmt.NewFormat(expfmt.TypeProtoDelim)
)

// metricsFormat is the format that a request prefers. What is neither is text.
func metricsFormat(h http.Header) expfmt.Format {
	if expfmt.NegotiateAccept(h, metricsText, metricsProtobuf).FormatType() == expfmt.TypeProtoDelim {
		return metricsProtobuf
	}
	return metricsText
}

// metrics shows the registry, and what the engine holds.
func (s *Server) metrics(w http.ResponseWriter, r *http.Request) {
	ctx := r.Context()
	format := metricsFormat(r.Header)
	page, err := s.page.in(format, func() ([]*dto.MetricFamily, error) { return s.Measures(ctx) })
	if err != nil {
		s.fail(w, r, err)
		return
	}
	w.Header().Set("Content-Type", string(format))
	w.Header().Set("Content-Length", strconv.Itoa(len(page)))
	w.Header().Add("Vary", "Accept")
	_, _ = w.Write(page) // the client has gone if this fails
}

// metricsPage is the page of /metrics, once in each format. It needs no key, so it is
// made anew up to a rate, for all formats together; beyond that, whoever asks shares the
// last one, which costs nothing more however many ask, or do not read the answer.
type metricsPage struct {
	allowed  *rate.Limiter
	mu       sync.Mutex
	families []*dto.MetricFamily
	last     map[expfmt.Format][]byte // of these families; at most one for each format
}

func newMetricsPage() *metricsPage {
	const perSecond, burst = 2, 20
	return &metricsPage{allowed: rate.NewLimiter(perSecond, burst)}
}

func (p *metricsPage) in(format expfmt.Format, gather func() ([]*dto.MetricFamily, error)) ([]byte, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.families == nil || p.allowed.Allow() {
		families, err := gather()
		if err != nil {
			return nil, err
		}
		p.families, p.last = families, make(map[expfmt.Format][]byte)
	}
	if page, ok := p.last[format]; ok {
		return page, nil
	}
	page, err := encodeMetrics(p.families, format)
	if err == nil {
		p.last[format] = page
	}
	return page, err
}

func encodeMetrics(families []*dto.MetricFamily, format expfmt.Format) ([]byte, error) {
	var page bytes.Buffer
	enc := expfmt.NewEncoder(&page, format)
	for _, f := range families {
		if err := enc.Encode(f); err != nil {
			return nil, err
		}
	}
	return page.Bytes(), nil
}

// Measures returns what /metrics shows, made anew.
func (s *Server) Measures(ctx context.Context) ([]*dto.MetricFamily, error) {
	own := prometheus.NewRegistry()
	own.MustRegister(s.gauges(ctx)) // a registry of its own: nothing can clash
	return prometheus.Gatherers{s.opts.Metrics.registry, own}.Gather()
}
