package main

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/httpapi"
	"github.com/rollcall/rollcall/respapi"
)

// listenRESP opens the listener of RESP and has it measured. Without an address there is
// none. It takes TLS where HTTP does, with the same certificate.
func (c *config) listenRESP(roll *rollcall.Roll, cert *keyPair, log *slog.Logger, registry *prometheus.Registry) (*respapi.Listener, error) {
	if c.resp == "" {
		return nil, nil //nolint:nilnil // off is no error
	}
	o := respapi.Options{
		NoKeys: c.http.Auth == httpapi.AuthOff, Dialect: c.dialect, Retention: c.roll.Retention, Version: version(), Logger: log,
		KeyLimit: respapi.Limit(c.http.RateLimits.Key), FailureLimit: respapi.Limit(c.http.RateLimits.Failures),
		MaxConnections: min(connectionLimit()/2, 10_000),
	}
	if cert != nil {
		o.TLS = respTLS(cert)
	}
	l, err := respapi.Listen(roll, c.resp, o)
	if err != nil {
		return nil, fmt.Errorf("listen for RESP on %s: %w", c.resp, err)
	}
	log.Info("RESP is served", "resp", l.Addr().String(), "tls", cert != nil)
	if err := registry.Register(respMetrics{l}); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// respTLS is the configuration of HTTPS without its protocols, of which RESP is none.
func respTLS(cert *keyPair) *tls.Config {
	conf := cert.config()
	conf.NextProtos = nil
	return conf
}

// respMetrics reads the counts of a listener.
type respMetrics struct{ l *respapi.Listener }

var (
	respCommands    = prometheus.NewDesc("rollcall_resp_commands_total", "RESP commands, by verb and outcome: answered, refused for the client's fault, or failed for the server's.", []string{"verb", "outcome"}, nil)
	respConnections = prometheus.NewDesc("rollcall_resp_connections", "RESP connections there are.", nil, nil)
	respAccepted    = prometheus.NewDesc("rollcall_resp_connections_total", "RESP connections there have been: served, cut off by a limit (these were served too), or turned away for want of room.", []string{"outcome"}, nil)
)

// Describe implements [prometheus.Collector].
func (m respMetrics) Describe(ch chan<- *prometheus.Desc) {
	ch <- respCommands
	ch <- respConnections
	ch <- respAccepted
}

// Collect implements [prometheus.Collector].
func (m respMetrics) Collect(ch chan<- prometheus.Metric) {
	for of, n := range m.l.Commands() {
		if n > 0 { // most verbs nobody uses
			ch <- prometheus.MustNewConstMetric(respCommands, prometheus.CounterValue, float64(n), of.Verb, of.Outcome.String())
		}
	}
	ch <- prometheus.MustNewConstMetric(respConnections, prometheus.GaugeValue, float64(m.l.Connections()))
	served, cut, away := m.l.Accepted()
	for outcome, n := range map[string]uint64{"served": served, "cut": cut, "turned_away": away} {
		ch <- prometheus.MustNewConstMetric(respAccepted, prometheus.CounterValue, float64(n), outcome)
	}
}
