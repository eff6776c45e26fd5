package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"log/slog"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/sdk/trace"
	"golang.org/x/time/rate"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/httpapi"
	"github.com/rollcall/rollcall/internal/otlp"
)

// scope names the one who measures, to the collector.
const scope = "github.com/rollcall/rollcall"

// telemetry sends traces and measures to a collector of OpenTelemetry, as its variables
// say. Nil sends nothing, and costs nothing.
type telemetry struct {
	log      *slog.Logger
	resource *resource.Resource
	spans    *otlp.Target // nil: no traces
	measures *otlp.Target // nil: no measures
	interval time.Duration

	provider *trace.TracerProvider
	tracer   *tracer // nil: no traces
	pusher   *otlp.Pusher
}

// openTelemetry reads the variables; it returns nil where nothing is asked for. What is
// wrong with them is logged, and then nothing is sent: in a cluster they may be there for
// others, and are no reason not to serve.
func openTelemetry(a *app, log *slog.Logger) *telemetry {
	set := make(map[string]string)
	for _, e := range a.environ {
		if name, value, _ := strings.Cut(e, "="); strings.HasPrefix(name, "OTEL_") {
			set[name] = value
		}
	}
	if len(set) == 0 {
		return nil
	}
	env := func(name string) string { return set[name] }
	t := &telemetry{log: log}
	var faults [4]error
	t.spans, faults[0] = otlp.TargetOf(otlp.Traces, env)
	t.measures, faults[1] = otlp.TargetOf(otlp.Metrics, env)
	t.interval, faults[2] = otlp.Interval(env)
	t.resource, faults[3] = describeServer(a.ctx)
	if err := errors.Join(faults[:]...); err != nil {
		log.Error("no telemetry is sent", "error", err)
		return nil
	}
	if t.spans == nil && t.measures == nil {
		return nil
	}
	if t.spans != nil {
		exporter := otlp.NewSpanExporter(otlp.NewSender(t.spans), t.failed("spans"))
		t.provider = trace.NewTracerProvider(trace.WithResource(t.resource), trace.WithBatcher(exporter))
		t.tracer = newTracer(t.provider)
	}
	log.Info("telemetry is sent", "traces", t.spans != nil, "metrics", t.measures != nil)
	return t
}

// describeServer is what the collector knows of this process. OTEL_SERVICE_NAME and
// OTEL_RESOURCE_ATTRIBUTES say more, or otherwise.
func describeServer(ctx context.Context) (*resource.Resource, error) {
	var instance [8]byte
	_, _ = rand.Read(instance[:]) // never fails: crypto/rand ends the program instead
	return resource.New(ctx,
		resource.WithTelemetrySDK(),
		resource.WithAttributes(
			attribute.String("service.name", "rollcall"),
			attribute.String("service.version", version()),
			attribute.String("service.instance.id", hex.EncodeToString(instance[:])),
		),
		resource.WithFromEnv(),
	)
}

// failed returns what logs that something was lost: once a minute at most.
func (t *telemetry) failed(what string) func(error) {
	allowed := rate.NewLimiter(rate.Every(time.Minute), 1)
	return func(err error) {
		if allowed.Allow() {
			t.log.Warn("telemetry was lost", "what", what, "error", err)
		}
	}
}

// observer adds the tracer to what observes commands.
func (t *telemetry) observer(metrics *httpapi.Metrics) rollcall.Observer {
	if t == nil || t.tracer == nil {
		return metrics
	}
	return &twoObservers{metrics, t.tracer}
}

// httpTracer is what the API tells of its requests; nil for none.
func (t *telemetry) httpTracer() httpapi.Tracer {
	if t == nil || t.tracer == nil {
		return nil
	}
	return t.tracer
}

// push starts to send the measures of the API.
func (t *telemetry) push(ctx context.Context, api *httpapi.Server) {
	if t == nil || t.measures == nil {
		return
	}
	t.pusher = otlp.NewPusher(ctx, otlp.NewSender(t.measures), otlp.PusherOptions{
		Gather: api.Measures, Resource: t.resource, Scope: scope, Interval: t.interval, Failed: t.failed("measures"),
	})
}

// lastWords is how long the server waits at its end for a collector to take what is left.
const lastWords = 5 * time.Second

// close sends what is left. The engine must still be there.
func (t *telemetry) close(ctx context.Context) {
	if t == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWords)
	defer cancel()
	if t.pusher != nil {
		t.pusher.Close(ctx)
	}
	if t.provider == nil {
		return
	}
	if err := t.provider.Shutdown(ctx); err != nil {
		t.failed("spans")(err)
	}
}

// twoObservers tells both.
type twoObservers [2]rollcall.Observer

// Observe implements [rollcall.Observer].
func (o *twoObservers) Observe(ctx context.Context, command string, took time.Duration, err error) {
	o[0].Observe(ctx, command, took, err)
	o[1].Observe(ctx, command, took, err)
}
