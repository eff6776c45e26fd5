package main

import (
	"context"
	"net/http"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/rollcall/rollcall"
)

// tracer makes a span of each request, and one of each command below it. A span says which
// route and which command, how it ended, and how long it took: nothing of whom it was about
// or where it came from.
type tracer struct {
	tracer trace.Tracer
	remote propagation.TraceContext
}

func newTracer(provider *sdk.TracerProvider) *tracer {
	return &tracer{tracer: provider.Tracer(scope, trace.WithInstrumentationVersion(version()))}
}

// Begin implements httpapi.Tracer. A caller's traceparent (https://www.w3.org/TR/trace-context/)
// makes the span part of the caller's trace. What else is said of the trace, tracestate, may be
// anything, and goes no further.
func (t *tracer) Begin(r *http.Request) (ctx context.Context, end func(route string, status int)) {
	ctx = t.remote.Extract(r.Context(), propagation.HeaderCarrier(r.Header))
	if caller := trace.SpanContextFromContext(ctx); caller.IsValid() {
		ctx = trace.ContextWithRemoteSpanContext(ctx, caller.WithTraceState(trace.TraceState{}))
	}
	method := knownMethod(r.Method)
	ctx, span := t.tracer.Start(ctx, method, trace.WithSpanKind(trace.SpanKindServer))
	return ctx, func(route string, status int) {
		defer span.End()
		if !span.IsRecording() {
			return
		}
		span.SetAttributes(attribute.String("http.request.method", method))
		if route != "" {
			span.SetName(method + " " + route)
			span.SetAttributes(attribute.String("http.route", route))
		}
		if status != 0 {
			span.SetAttributes(attribute.Int("http.response.status_code", status))
		}
		if status >= http.StatusInternalServerError {
			span.SetStatus(codes.Error, "")
		}
	}
}

// knownMethod is the method of a request, or what OpenTelemetry has for those that a
// stranger made up.
func knownMethod(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		return method
	}
	return "_OTHER"
}

// Observe implements [rollcall.Observer]. What the server does by itself is no part of a
// request, and not traced.
func (t *tracer) Observe(ctx context.Context, command string, took time.Duration, err error) {
	if !trace.SpanFromContext(ctx).IsRecording() {
		return
	}
	end := time.Now()
	_, span := t.tracer.Start(ctx, command, trace.WithTimestamp(end.Add(-took)))
	if err != nil {
		code := rollcall.CodeOf(err)
		span.SetAttributes(attribute.String("error.type", string(code)))
		switch code {
		case rollcall.CodeUnavailable, rollcall.CodeStorageFull, rollcall.CodeInternal:
			span.SetStatus(codes.Error, "")
		}
	}
	span.End(trace.WithTimestamp(end))
}
