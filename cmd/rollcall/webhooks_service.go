package main

import (
	"errors"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/webhook"
)

// deliverWebhooks starts to deliver for the webhooks of the store, and has it measured.
func deliverWebhooks(roll *rollcall.Roll, engine rollcall.Engine, allow webhook.Allow, log *slog.Logger, registry *prometheus.Registry) (*webhook.Deliverer, error) {
	d := webhook.New(roll, engine, webhook.Options{Allow: allow, Logger: log})
	var errs []error
	for _, m := range webhookMetrics(d) {
		errs = append(errs, registry.Register(m))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

func webhookMetrics(d *webhook.Deliverer) []prometheus.Collector {
	gauge := func(name, help string, value func(webhook.Figures) float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 { return value(d.Figures()) })
	}
	all := []prometheus.Collector{
		gauge("rollcall_webhooks_served", "Webhooks that this server delivers for.", func(f webhook.Figures) float64 { return float64(f.Served) }),
		gauge("rollcall_webhooks_disabled", "Webhooks of the store that are disabled.", func(f webhook.Figures) float64 { return float64(f.Disabled) }),
		gauge("rollcall_webhooks_parked", "Events that were read for webhooks of this server and are not delivered yet.", func(f webhook.Figures) float64 { return float64(f.Parked) }),
		gauge("rollcall_webhooks_lag_seconds", "Age of the oldest of these events.", func(f webhook.Figures) float64 { return f.Lag.Seconds() }),
	}
	for _, r := range webhook.Results() {
		all = append(all, prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "rollcall_webhooks_deliveries_total", Help: "Attempts to deliver a message, by what became of them, without those of webhooks that are told of invisible users.",
			ConstLabels: prometheus.Labels{"result": string(r)},
		}, func() float64 { return float64(d.Attempts(r)) }))
	}
	return all
}
