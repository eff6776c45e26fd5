package otlp

import (
	"context"
	"time"

	dto "github.com/prometheus/client_model/go"
	"go.opentelemetry.io/otel/sdk/resource"
)

// PusherOptions say what a [Pusher] sends.
type PusherOptions struct {
	Gather   func(context.Context) ([]*dto.MetricFamily, error)
	Resource *resource.Resource
	Scope    string
	Interval time.Duration // between two exports
	Failed   func(error)   // is told of each export that is lost
}

// Interval returns how often measures are sent: OTEL_METRIC_EXPORT_INTERVAL, 60 s unless
// set.
func Interval(env func(string) string) (time.Duration, error) {
	const name = "OTEL_METRIC_EXPORT_INTERVAL"
	return milliseconds(name, env(name), time.Minute)
}

// Pusher sends measures at an interval. It holds one goroutine, which Close ends.
type Pusher struct {
	o      PusherOptions
	sender *Sender
	start  time.Time
	cancel context.CancelFunc
	ended  chan struct{}
}

// NewPusher starts to send, for the first time after an interval.
func NewPusher(ctx context.Context, sender *Sender, o PusherOptions) *Pusher {
	ctx, cancel := context.WithCancel(ctx)
	p := &Pusher{o: o, sender: sender, start: time.Now(), cancel: cancel, ended: make(chan struct{})}
	go func() {
		defer close(p.ended)
		p.run(ctx)
	}()
	return p
}

func (p *Pusher) run(ctx context.Context) {
	ticks := time.NewTicker(p.o.Interval)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
			p.push(ctx)
		}
	}
}

func (p *Pusher) push(ctx context.Context) {
	families, err := p.o.Gather(ctx)
	if err == nil {
		err = p.sender.Send(ctx, Measures(families, p.o.Resource, p.o.Scope, p.start, time.Now()))
	}
	if err != nil && ctx.Err() == nil {
		p.o.Failed(err)
	}
}

// Close sends once more, until the context ends, and then no more.
func (p *Pusher) Close(ctx context.Context) {
	p.cancel()
	<-p.ended
	p.push(ctx)
	p.sender.Close()
}
