package main

import (
	"crypto/tls"
	"fmt"
)

// tls returns how to serve HTTPS, nil for plain HTTP.
func (c *config) tls() (*tls.Config, error) {
	if c.tlsCert == "" {
		return nil, nil //nolint:nilnil // no certificate is not an error
	}
	pair, err := tls.LoadX509KeyPair(c.tlsCert, c.tlsKey)
	if err != nil {
		return nil, fmt.Errorf("tls.cert: %w", err)
	}
	return &tls.Config{
		Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"},
	}, nil
}
