package otlp

import (
	"math"
	"slices"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	"go.opentelemetry.io/otel/sdk/resource"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	metrics "go.opentelemetry.io/proto/otlp/metrics/v1"
)

// Measures writes what a registry of Prometheus has gathered as OTLP has it, under the same
// names. Counters and histograms count since start. A histogram with native buckets becomes
// an exponential one, whose buckets are the same.
func Measures(families []*dto.MetricFamily, from *resource.Resource, scope string, start, now time.Time) *metrics.MetricsData {
	w := writer{start: nanoseconds(start), now: nanoseconds(now)}
	in := &metrics.ScopeMetrics{Scope: &common.InstrumentationScope{Name: scope}}
	for _, f := range families {
		if m := w.family(f); m != nil {
			in.Metrics = append(in.Metrics, m)
		}
	}
	return &metrics.MetricsData{ResourceMetrics: []*metrics.ResourceMetrics{{Resource: describe(from), ScopeMetrics: []*metrics.ScopeMetrics{in}}}}
}

// writer writes the measures of one instant.
type writer struct{ start, now uint64 }

// sinceStart says that a value is the sum of all that came since the start.
const sinceStart = metrics.AggregationTemporality_AGGREGATION_TEMPORALITY_CUMULATIVE

// family writes one measure with all of its series; nil if it is of no known type.
func (w writer) family(f *dto.MetricFamily) *metrics.Metric {
	out := &metrics.Metric{Name: f.GetName(), Description: f.GetHelp()}
	switch f.GetType() {
	case dto.MetricType_COUNTER:
		sum := &metrics.Sum{IsMonotonic: true, AggregationTemporality: sinceStart}
		for _, m := range f.GetMetric() {
			p := w.number(m, m.GetCounter().GetValue())
			p.StartTimeUnixNano = w.start
			sum.DataPoints = append(sum.DataPoints, p)
		}
		out.Data = &metrics.Metric_Sum{Sum: sum}
	case dto.MetricType_GAUGE, dto.MetricType_UNTYPED:
		gauge := &metrics.Gauge{}
		for _, m := range f.GetMetric() {
			v := m.GetGauge().GetValue()
			if m.GetUntyped() != nil {
				v = m.GetUntyped().GetValue()
			}
			gauge.DataPoints = append(gauge.DataPoints, w.number(m, v))
		}
		out.Data = &metrics.Metric_Gauge{Gauge: gauge}
	case dto.MetricType_SUMMARY:
		summary := &metrics.Summary{}
		for _, m := range f.GetMetric() {
			summary.DataPoints = append(summary.DataPoints, w.summary(m))
		}
		out.Data = &metrics.Metric_Summary{Summary: summary}
	case dto.MetricType_HISTOGRAM:
		w.histograms(f, out)
	default:
		return nil
	}
	return out
}

// histograms writes a family of histograms, all of which have native buckets, or none.
func (w writer) histograms(f *dto.MetricFamily, out *metrics.Metric) {
	native := len(f.GetMetric()) > 0 && f.GetMetric()[0].GetHistogram().Schema != nil
	if native {
		h := &metrics.ExponentialHistogram{AggregationTemporality: sinceStart}
		for _, m := range f.GetMetric() {
			h.DataPoints = append(h.DataPoints, w.exponential(m))
		}
		out.Data = &metrics.Metric_ExponentialHistogram{ExponentialHistogram: h}
		return
	}
	h := &metrics.Histogram{AggregationTemporality: sinceStart}
	for _, m := range f.GetMetric() {
		h.DataPoints = append(h.DataPoints, w.classic(m))
	}
	out.Data = &metrics.Metric_Histogram{Histogram: h}
}

func (w writer) number(m *dto.Metric, v float64) *metrics.NumberDataPoint {
	return &metrics.NumberDataPoint{Attributes: labels(m), TimeUnixNano: w.now, Value: &metrics.NumberDataPoint_AsDouble{AsDouble: v}}
}

func (w writer) summary(m *dto.Metric) *metrics.SummaryDataPoint {
	s := m.GetSummary()
	out := &metrics.SummaryDataPoint{
		Attributes: labels(m), StartTimeUnixNano: w.start, TimeUnixNano: w.now,
		Count: s.GetSampleCount(), Sum: s.GetSampleSum(),
	}
	for _, q := range s.GetQuantile() {
		out.QuantileValues = append(out.QuantileValues, &metrics.SummaryDataPoint_ValueAtQuantile{Quantile: q.GetQuantile(), Value: q.GetValue()})
	}
	return out
}

// classic writes buckets with bounds of their own. Prometheus counts in each what is in
// those below too, OTLP does not.
func (w writer) classic(m *dto.Metric) *metrics.HistogramDataPoint {
	h := m.GetHistogram()
	sum := h.GetSampleSum()
	out := &metrics.HistogramDataPoint{
		Attributes: labels(m), StartTimeUnixNano: w.start, TimeUnixNano: w.now,
		Count: h.GetSampleCount(), Sum: &sum,
	}
	below := uint64(0)
	for _, b := range h.GetBucket() {
		if math.IsInf(b.GetUpperBound(), 1) {
			continue
		}
		out.ExplicitBounds = append(out.ExplicitBounds, b.GetUpperBound())
		out.BucketCounts = append(out.BucketCounts, b.GetCumulativeCount()-below)
		below = b.GetCumulativeCount()
	}
	out.BucketCounts = append(out.BucketCounts, h.GetSampleCount()-below)
	return out
}

// exponential writes native buckets. Both count by powers of 2^(2^-schema); bucket i of
// Prometheus ends at the i-th power, that of OTLP begins there.
func (w writer) exponential(m *dto.Metric) *metrics.ExponentialHistogramDataPoint {
	h := m.GetHistogram()
	sum := h.GetSampleSum()
	return &metrics.ExponentialHistogramDataPoint{
		Attributes: labels(m), StartTimeUnixNano: w.start, TimeUnixNano: w.now,
		Count: h.GetSampleCount(), Sum: &sum, Scale: h.GetSchema(),
		ZeroCount: h.GetZeroCount(), ZeroThreshold: h.GetZeroThreshold(),
		Positive: buckets(h.GetPositiveSpan(), h.GetPositiveDelta()),
		Negative: buckets(h.GetNegativeSpan(), h.GetNegativeDelta()),
	}
}

// buckets writes runs of buckets, of each of which the difference to the one before is
// known, as one run.
func buckets(spans []*dto.BucketSpan, deltas []int64) *metrics.ExponentialHistogramDataPoint_Buckets {
	if len(spans) == 0 {
		return nil
	}
	out := &metrics.ExponentialHistogramDataPoint_Buckets{Offset: spans[0].GetOffset() - 1}
	count := int64(0)
	for i, s := range spans {
		if i > 0 {
			out.BucketCounts = append(out.BucketCounts, make([]uint64, s.GetOffset())...)
		}
		for range s.GetLength() {
			count += deltas[0]
			deltas = deltas[1:]
			out.BucketCounts = append(out.BucketCounts, uint64(count)) //nolint:gosec // a count is not negative
		}
	}
	return out
}

func labels(m *dto.Metric) []*common.KeyValue {
	out := make([]*common.KeyValue, 0, len(m.GetLabel()))
	for _, l := range m.GetLabel() {
		out = append(out, &common.KeyValue{Key: l.GetName(), Value: text(l.GetValue())})
	}
	slices.SortFunc(out, byKey)
	return out
}

func byKey(a, b *common.KeyValue) int { return strings.Compare(a.GetKey(), b.GetKey()) }

func text(s string) *common.AnyValue {
	return &common.AnyValue{Value: &common.AnyValue_StringValue{StringValue: s}}
}

// nanoseconds since 1970.
func nanoseconds(t time.Time) uint64 { return uint64(max(t.UnixNano(), 0)) } //nolint:gosec // not negative
