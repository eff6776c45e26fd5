package main

import (
	"crypto/tls"
	"fmt"
	"sync/atomic"
)

// keyPair is the certificate that HTTPS is served with. It can be read again while
// the server runs.
type keyPair struct {
	certFile, keyFile string
	pair              atomic.Pointer[tls.Certificate]
}

// keyPair reads the certificate that is configured; nil for plain HTTP.
func (c *config) keyPair() (*keyPair, error) {
	if c.tlsCert == "" {
		return nil, nil //nolint:nilnil // no certificate is not an error
	}
	out := &keyPair{certFile: c.tlsCert, keyFile: c.tlsKey}
	err := out.load()
	return out, err
}

// load reads the files. After an error the pair before it stays in use.
func (k *keyPair) load() error {
	pair, err := tls.LoadX509KeyPair(k.certFile, k.keyFile)
	if err != nil {
		return fmt.Errorf("tls.cert: %w", err)
	}
	k.pair.Store(&pair)
	return nil
}

// config is how to serve HTTPS: each connection gets the pair in use when it
// begins.
func (k *keyPair) config() *tls.Config {
	return &tls.Config{
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return k.pair.Load(), nil },
		MinVersion:     tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"},
	}
}
