package main

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/udpbeat"
)

// listenUDP opens the listener of UDP beats and has it measured. Without an address
// there is none.
func listenUDP(roll *rollcall.Roll, address string, log *slog.Logger, registry *prometheus.Registry) (*udpbeat.Listener, error) {
	if address == "" {
		return nil, nil //nolint:nilnil // off is no error
	}
	l, err := udpbeat.Listen(roll, address, udpbeat.Options{Logger: log})
	if err != nil {
		return nil, fmt.Errorf("listen for UDP beats on %s: %w", address, err)
	}
	log.Info("beats by UDP are counted", "udp", l.Addr().String())
	var errs []error
	for _, m := range udpMetrics(l) {
		errs = append(errs, registry.Register(m))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

func udpMetrics(l *udpbeat.Listener) []prometheus.Collector {
	counter := func(name, help string, labels prometheus.Labels, value func() uint64) prometheus.Collector {
		return prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help, ConstLabels: labels}, func() float64 { return float64(value()) })
	}
	const accepted, dropped = "rollcall_udp_beats_total", "rollcall_udp_dropped_total"
	all := []prometheus.Collector{
		counter(accepted, "Beats by UDP that counted, of sessions or of users.", prometheus.Labels{"of": "sessions"}, func() uint64 { n, _ := l.Accepted(); return n }),
		counter(accepted, "Beats by UDP that counted, of sessions or of users.", prometheus.Labels{"of": "users"}, func() uint64 { _, n := l.Accepted(); return n }),
	}
	for _, r := range udpbeat.Reasons() {
		all = append(all, counter(dropped, "UDP datagrams, and beats in them, that did not count, by the reason.",
			prometheus.Labels{"reason": r.String()}, func() uint64 { return l.Dropped(r) }))
	}
	return all
}
