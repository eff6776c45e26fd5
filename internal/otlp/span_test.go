package otlp

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	traces "go.opentelemetry.io/proto/otlp/trace/v1"
)

func TestSpansAreWrittenAsTheyAre(t *testing.T) {
	kept := tracetest.NewInMemoryExporter()
	provider := sdk.NewTracerProvider(sdk.WithSyncer(kept), sdk.WithResource(resource.NewSchemaless(attribute.Bool("b", true))))
	one, two := provider.Tracer("one", trace.WithInstrumentationVersion("v1")), provider.Tracer("two")
	at := time.Unix(100, 7)
	ctx, parent := one.Start(t.Context(), "parent", trace.WithSpanKind(trace.SpanKindServer), trace.WithTimestamp(at))
	_, child := two.Start(ctx, "child", trace.WithAttributes(
		attribute.String("s", "x"), attribute.Int("i", 2), attribute.Float64("f", 0.5), attribute.IntSlice("l", []int{1, 2})))
	child.SetStatus(codes.Error, "why")
	child.End()
	parent.SetStatus(codes.Ok, "")
	parent.End(trace.WithTimestamp(at.Add(time.Second)))

	out := Spans(kept.GetSpans().Snapshots())
	require.Len(t, out.GetResourceSpans(), 1)
	require.True(t, out.GetResourceSpans()[0].GetResource().GetAttributes()[0].GetValue().GetBoolValue())
	scopes := out.GetResourceSpans()[0].GetScopeSpans()
	require.Len(t, scopes, 2)
	require.Equal(t, "two", scopes[0].GetScope().GetName())
	require.Equal(t, "one v1", scopes[1].GetScope().GetName()+" "+scopes[1].GetScope().GetVersion())
	c, p := scopes[0].GetSpans()[0], scopes[1].GetSpans()[0]
	require.Equal(t, p.GetSpanId(), c.GetParentSpanId())
	require.Empty(t, p.GetParentSpanId())
	require.Equal(t, p.GetTraceId(), c.GetTraceId())
	require.Len(t, p.GetTraceId(), 16)
	require.Equal(t, traces.Span_SPAN_KIND_SERVER, p.GetKind())
	require.Equal(t, traces.Span_SPAN_KIND_INTERNAL, c.GetKind())
	require.EqualValues(t, 100_000_000_007, p.GetStartTimeUnixNano())
	require.EqualValues(t, 101_000_000_007, p.GetEndTimeUnixNano())
	require.Equal(t, traces.Status_STATUS_CODE_OK, p.GetStatus().GetCode())
	require.Equal(t, traces.Status_STATUS_CODE_ERROR, c.GetStatus().GetCode())
	require.Equal(t, "why", c.GetStatus().GetMessage())
	var said string
	for _, a := range c.GetAttributes() {
		said += a.GetKey() + "=" + a.GetValue().String() + " "
	}
	require.Regexp(t, `^f=double_value:\s*0.5 i=int_value:\s*2 l=string_value:\s*"\[1,2\]" s=string_value:\s*"x" $`, said)
}
