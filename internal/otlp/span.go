package otlp

import (
	"context"
	"slices"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	resources "go.opentelemetry.io/proto/otlp/resource/v1"
	traces "go.opentelemetry.io/proto/otlp/trace/v1"
)

// SpanExporter sends the spans of a [sdk.TracerProvider].
type SpanExporter struct {
	sender *Sender
	failed func(error)
}

var _ sdk.SpanExporter = (*SpanExporter)(nil)

// NewSpanExporter returns an exporter by the sender. failed is told of each batch that is
// lost.
func NewSpanExporter(sender *Sender, failed func(error)) *SpanExporter {
	return &SpanExporter{sender: sender, failed: failed}
}

// ExportSpans implements [sdk.SpanExporter]. Its error is nil: the SDK would only print it.
func (e *SpanExporter) ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	if len(spans) == 0 {
		return nil
	}
	if err := e.sender.Send(ctx, Spans(spans)); err != nil {
		e.failed(err)
	}
	return nil
}

// Shutdown implements [sdk.SpanExporter].
func (e *SpanExporter) Shutdown(context.Context) error {
	e.sender.Close()
	return nil
}

// Spans writes spans of one provider as OTLP has them. Links, events and the state that
// others put into a trace are left out: nothing here makes the first two, and the last is
// what a stranger wrote.
func Spans(spans []sdk.ReadOnlySpan) *traces.TracesData {
	scopes := make(map[string]*traces.ScopeSpans)
	group := &traces.ResourceSpans{Resource: describe(spans[0].Resource())}
	for _, s := range spans {
		scope := s.InstrumentationScope()
		in := scopes[scope.Name]
		if in == nil {
			in = &traces.ScopeSpans{Scope: &common.InstrumentationScope{Name: scope.Name, Version: scope.Version}}
			scopes[scope.Name] = in
			group.ScopeSpans = append(group.ScopeSpans, in)
		}
		in.Spans = append(in.Spans, span(s))
	}
	return &traces.TracesData{ResourceSpans: []*traces.ResourceSpans{group}}
}

func span(s sdk.ReadOnlySpan) *traces.Span {
	id, in := s.SpanContext().SpanID(), s.SpanContext().TraceID()
	out := &traces.Span{
		TraceId: in[:], SpanId: id[:], Flags: uint32(s.SpanContext().TraceFlags()),
		Name: s.Name(), Kind: kind(s.SpanKind()),
		StartTimeUnixNano: nanoseconds(s.StartTime()), EndTimeUnixNano: nanoseconds(s.EndTime()),
		Attributes: pairs(s.Attributes()), DroppedAttributesCount: uint32(s.DroppedAttributes()), //nolint:gosec // at most what there were
		Status: &traces.Status{},
	}
	if p := s.Parent(); p.IsValid() {
		parent := p.SpanID()
		out.ParentSpanId = parent[:]
	}
	switch s.Status().Code {
	case codes.Error:
		out.Status.Code, out.Status.Message = traces.Status_STATUS_CODE_ERROR, s.Status().Description
	case codes.Ok:
		out.Status.Code = traces.Status_STATUS_CODE_OK
	}
	return out
}

func kind(k trace.SpanKind) traces.Span_SpanKind {
	switch k {
	case trace.SpanKindServer:
		return traces.Span_SPAN_KIND_SERVER
	case trace.SpanKindClient:
		return traces.Span_SPAN_KIND_CLIENT
	case trace.SpanKindProducer:
		return traces.Span_SPAN_KIND_PRODUCER
	case trace.SpanKindConsumer:
		return traces.Span_SPAN_KIND_CONSUMER
	default:
		return traces.Span_SPAN_KIND_INTERNAL
	}
}

// describe writes what sends.
func describe(r *resource.Resource) *resources.Resource {
	return &resources.Resource{Attributes: pairs(r.Attributes())}
}

// pairs writes attributes, by name.
func pairs(attributes []attribute.KeyValue) []*common.KeyValue {
	out := make([]*common.KeyValue, 0, len(attributes))
	for _, a := range attributes {
		out = append(out, &common.KeyValue{Key: string(a.Key), Value: value(a.Value)})
	}
	slices.SortFunc(out, byKey)
	return out
}

// value writes the value of an attribute; a list is written as text.
func value(v attribute.Value) *common.AnyValue {
	switch v.Type() {
	case attribute.BOOL:
		return &common.AnyValue{Value: &common.AnyValue_BoolValue{BoolValue: v.AsBool()}}
	case attribute.INT64:
		return &common.AnyValue{Value: &common.AnyValue_IntValue{IntValue: v.AsInt64()}}
	case attribute.FLOAT64:
		return &common.AnyValue{Value: &common.AnyValue_DoubleValue{DoubleValue: v.AsFloat64()}}
	default:
		return text(v.String())
	}
}
