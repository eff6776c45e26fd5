package otlp

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"
)

// Signal is what is sent: it names the variables, and the path at the collector.
type Signal string

// The signals that are sent.
const (
	Traces  Signal = "traces"
	Metrics Signal = "metrics"
)

// Target is where one signal is sent, and how.
type Target struct {
	URL     string
	Header  http.Header
	Timeout time.Duration // of one export with all its retries
	Gzip    bool
	TLS     *tls.Config // nil for the usual
}

// TargetOf reads the target of a signal from variables, which env returns by name; "" is
// as if not set. It is nil where the signal is not asked for: no endpoint is named, or
// OTEL_SDK_DISABLED or the signal's exporter says so. An error names the variable.
func TargetOf(signal Signal, env func(string) string) (*Target, error) {
	v := variables{signal: strings.ToUpper(string(signal)), env: env}
	if strings.EqualFold(env("OTEL_SDK_DISABLED"), "true") {
		return nil, nil //nolint:nilnil // off is no error
	}
	endpoint, name := v.get("ENDPOINT")
	switch exporter := env("OTEL_" + v.signal + "_EXPORTER"); {
	case exporter == "otlp" && endpoint == "":
		endpoint, name = "http://localhost:4318", "OTEL_EXPORTER_OTLP_ENDPOINT"
	case exporter != "" && exporter != "otlp", endpoint == "":
		return nil, nil //nolint:nilnil // off is no error
	}
	if protocol, name := v.get("PROTOCOL"); protocol != "" && protocol != "http/protobuf" {
		return nil, fmt.Errorf("%s: must be http/protobuf, is %.40q", name, protocol)
	}
	at, err := url.Parse(endpoint)
	if err != nil || (at.Scheme != "http" && at.Scheme != "https") || at.Host == "" {
		return nil, fmt.Errorf("%s: must be the URL of a collector, such as http://127.0.0.1:4318", name) // it may hold a password
	}
	if name == "OTEL_EXPORTER_OTLP_ENDPOINT" { // the one of all signals
		at = at.JoinPath("v1", string(signal))
	}
	t := &Target{URL: at.String()}
	var faults [4]error
	t.Header, faults[0] = v.header()
	t.Timeout, faults[1] = v.timeout()
	t.Gzip, faults[2] = v.gzip()
	t.TLS, faults[3] = v.tls()
	return t, errors.Join(faults[:]...)
}

// variables are those of one signal: each has one of its own, which goes before the one of
// all signals.
type variables struct {
	signal string
	env    func(string) string
}

// get returns a value and the name of the variable that has it.
func (v variables) get(name string) (value, from string) {
	from = "OTEL_EXPORTER_OTLP_" + v.signal + "_" + name
	if value = v.env(from); value != "" {
		return value, from
	}
	from = "OTEL_EXPORTER_OTLP_" + name
	return v.env(from), from
}

// header reads a list such as "authorization=Bearer%20x,tenant=a".
func (v variables) header() (http.Header, error) {
	list, name := v.get("HEADERS")
	out := make(http.Header)
	for pair := range strings.SplitSeq(list, ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		key, value, ok := strings.Cut(pair, "=")
		value, err := url.PathUnescape(strings.TrimSpace(value))
		if key = strings.TrimSpace(key); !ok || err != nil || key == "" || strings.ContainsAny(key+value, "\r\n\x00") {
			return nil, fmt.Errorf("%s: must be name=value, …, with values as in a URL", name) // they may be secrets
		}
		out.Add(key, value)
	}
	return out, nil
}

func (v variables) timeout() (time.Duration, error) {
	text, name := v.get("TIMEOUT")
	return milliseconds(name, text, 10*time.Second)
}

// milliseconds reads a time of 1 ms to 1 h; one that is not set is the usual.
func milliseconds(name, text string, usual time.Duration) (time.Duration, error) {
	if text == "" {
		return usual, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > 3_600_000 {
		return 0, fmt.Errorf("%s: must be 1 to 3600000 milliseconds, is %.40q", name, text)
	}
	return time.Duration(n) * time.Millisecond, nil
}

func (v variables) gzip() (bool, error) {
	switch text, name := v.get("COMPRESSION"); text {
	case "", "none":
		return false, nil
	case "gzip":
		return true, nil
	default:
		return false, fmt.Errorf("%s: must be gzip or none, is %.40q", name, text)
	}
}

// tls reads the files of the certificates.
func (v variables) tls() (*tls.Config, error) {
	authority, name := v.get("CERTIFICATE")
	certificate, _ := v.get("CLIENT_CERTIFICATE")
	key, keyName := v.get("CLIENT_KEY")
	if authority == "" && certificate == "" && key == "" {
		return nil, nil //nolint:nilnil // the usual is no error
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if authority != "" {
		file, err := os.ReadFile(authority) //nolint:gosec // whoever runs the server names it
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(file) {
			return nil, fmt.Errorf("%s: the file holds no certificate", name)
		}
	}
	if certificate != "" || key != "" {
		pair, err := tls.LoadX509KeyPair(certificate, key)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", keyName, err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}
