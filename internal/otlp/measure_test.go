package otlp

import (
	"math"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/resource"
	metrics "go.opentelemetry.io/proto/otlp/metrics/v1"
)

// written gathers one collector, and returns its family as it is sent.
func written(t *testing.T, c prometheus.Collector) *metrics.Metric {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(c)
	families, err := registry.Gather()
	require.NoError(t, err)
	from := resource.NewSchemaless(attribute.String("service.name", "test"))
	out := Measures(families, from, "scope", time.Unix(1, 0), time.Unix(2, 0))
	require.Len(t, out.GetResourceMetrics(), 1)
	require.Equal(t, "test", out.GetResourceMetrics()[0].GetResource().GetAttributes()[0].GetValue().GetStringValue())
	all := out.GetResourceMetrics()[0].GetScopeMetrics()[0]
	require.Equal(t, "scope", all.GetScope().GetName())
	require.Len(t, all.GetMetrics(), 1)
	return all.GetMetrics()[0]
}

func TestCountersGaugesAndSummaries(t *testing.T) {
	counter := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "a_total", Help: "How many."}, []string{"y", "x"})
	counter.WithLabelValues("2", "1").Add(3)
	m := written(t, counter)
	require.Equal(t, "a_total How many.", m.GetName()+" "+m.GetDescription())
	require.True(t, m.GetSum().GetIsMonotonic())
	require.Equal(t, sinceStart, m.GetSum().GetAggregationTemporality())
	point := m.GetSum().GetDataPoints()[0]
	require.InDelta(t, 3, point.GetAsDouble(), 0)
	require.EqualValues(t, 1e9, point.GetStartTimeUnixNano())
	require.EqualValues(t, 2e9, point.GetTimeUnixNano())
	require.Equal(t, "x=1 y=2", point.GetAttributes()[0].GetKey()+"="+point.GetAttributes()[0].GetValue().GetStringValue()+
		" "+point.GetAttributes()[1].GetKey()+"="+point.GetAttributes()[1].GetValue().GetStringValue())

	gauge := prometheus.NewGauge(prometheus.GaugeOpts{Name: "b"})
	gauge.Set(-4)
	require.InDelta(t, -4, written(t, gauge).GetGauge().GetDataPoints()[0].GetAsDouble(), 0)

	untyped := prometheus.NewUntypedFunc(prometheus.UntypedOpts{Name: "c"}, func() float64 { return 5 })
	require.InDelta(t, 5, written(t, untyped).GetGauge().GetDataPoints()[0].GetAsDouble(), 0)

	summary := prometheus.NewSummary(prometheus.SummaryOpts{Name: "d", Objectives: map[float64]float64{0.5: 0.01}})
	summary.Observe(7)
	s := written(t, summary).GetSummary().GetDataPoints()[0]
	require.EqualValues(t, 1, s.GetCount())
	require.InDelta(t, 7, s.GetSum(), 0)
	require.InDelta(t, 7, s.GetQuantileValues()[0].GetValue(), 0)
	require.InDelta(t, 0.5, s.GetQuantileValues()[0].GetQuantile(), 0)
}

func TestABucketOfAClassicHistogramCountsWhatIsInItAlone(t *testing.T) {
	h := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "h", Buckets: []float64{1, 2, 3}})
	for _, v := range []float64{0.5, 1, 1.5, 2.5, 2.6, 9} {
		h.Observe(v)
	}
	p := written(t, h).GetHistogram().GetDataPoints()[0]
	require.Equal(t, []float64{1, 2, 3}, p.GetExplicitBounds())
	require.Equal(t, []uint64{2, 1, 2, 1}, p.GetBucketCounts())
	require.EqualValues(t, 6, p.GetCount())
	require.InDelta(t, 17.1, p.GetSum(), 1e-9)
}

// TestNativeBucketsAreTheSame looks for each value in the bucket whose bounds, by the
// formula of OpenTelemetry, are around it.
func TestNativeBucketsAreTheSame(t *testing.T) {
	h := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "h", NativeHistogramBucketFactor: 1.1})
	values := []float64{0, 1e-5, 1.1e-5, 0.001, 0.25, 0.26, 1, 1, 1.09, 80, -3, -3.1, -1000}
	for _, v := range values {
		h.Observe(v)
	}
	p := written(t, h).GetExponentialHistogram().GetDataPoints()[0]
	require.EqualValues(t, len(values), p.GetCount())
	require.EqualValues(t, 1, p.GetZeroCount())
	base := math.Exp2(math.Exp2(-float64(p.GetScale())))
	count := func(b *metrics.ExponentialHistogramDataPoint_Buckets, sign float64) (found uint64) {
		for i, n := range b.GetBucketCounts() {
			low := math.Pow(base, float64(int(b.GetOffset())+i))
			within := uint64(0)
			for _, v := range values {
				if v *= sign; v > low*(1+1e-12) && v <= low*base*(1+1e-12) {
					within++
				}
			}
			require.Equal(t, within, n, "(%g, %g]", low, low*base)
			found += n
		}
		return found
	}
	require.EqualValues(t, 9, count(p.GetPositive(), 1))
	require.EqualValues(t, 3, count(p.GetNegative(), -1))

	empty := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "h", NativeHistogramBucketFactor: 1.1})
	p = written(t, empty).GetExponentialHistogram().GetDataPoints()[0]
	require.Zero(t, p.GetCount())
	require.Empty(t, p.GetPositive().GetBucketCounts())
}
