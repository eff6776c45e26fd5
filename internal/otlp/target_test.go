package otlp

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func env(set map[string]string) func(string) string {
	return func(name string) string { return set[name] }
}

func TestNothingIsSentUnlessItIsAskedFor(t *testing.T) {
	for _, set := range []map[string]string{
		nil,
		{"OTEL_SERVICE_NAME": "x", "OTEL_EXPORTER_OTLP_HEADERS": "a=b"},
		{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c", "OTEL_SDK_DISABLED": "true"},
		{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c", "OTEL_TRACES_EXPORTER": "none"},
		{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c", "OTEL_TRACES_EXPORTER": "zipkin"},
		{"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": "http://c"},
	} {
		target, err := TargetOf(Traces, env(set))
		require.NoError(t, err)
		require.Nil(t, target, "%v", set)
	}
}

func TestVariablesOfASignalGoBeforeThoseOfAll(t *testing.T) {
	for _, c := range []struct {
		set  map[string]string
		want Target
	}{
		{
			map[string]string{"OTEL_TRACES_EXPORTER": "otlp"},
			Target{URL: "http://localhost:4318/v1/traces", Header: http.Header{}, Timeout: 10 * time.Second},
		},
		{
			map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "https://c:1/base/", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf", "OTEL_EXPORTER_OTLP_COMPRESSION": "gzip"},
			Target{URL: "https://c:1/base/v1/traces", Header: http.Header{}, Timeout: 10 * time.Second, Gzip: true},
		},
		{
			map[string]string{
				"OTEL_EXPORTER_OTLP_ENDPOINT": "https://c", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://t/here",
				"OTEL_EXPORTER_OTLP_HEADERS": "a=b", "OTEL_EXPORTER_OTLP_TRACES_HEADERS": "authorization=Bearer%20x, tenant = a=b,",
				"OTEL_EXPORTER_OTLP_TIMEOUT": "9", "OTEL_EXPORTER_OTLP_TRACES_TIMEOUT": "2500",
				"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http/protobuf",
			},
			Target{URL: "http://t/here", Header: http.Header{"Authorization": {"Bearer x"}, "Tenant": {"a=b"}}, Timeout: 2500 * time.Millisecond},
		},
	} {
		target, err := TargetOf(Traces, env(c.set))
		require.NoError(t, err)
		require.Equal(t, c.want, *target)
	}
}

func TestAFaultNamesItsVariable(t *testing.T) {
	for name, value := range map[string]string{
		"OTEL_EXPORTER_OTLP_ENDPOINT":           "c:4317",
		"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT":   "ftp://user:password@c",
		"OTEL_EXPORTER_OTLP_PROTOCOL":           "grpc",
		"OTEL_EXPORTER_OTLP_TIMEOUT":            "10s",
		"OTEL_EXPORTER_OTLP_METRICS_TIMEOUT":    "0",
		"OTEL_EXPORTER_OTLP_COMPRESSION":        "zstd",
		"OTEL_EXPORTER_OTLP_HEADERS":            "password",
		"OTEL_EXPORTER_OTLP_METRICS_HEADERS":    "a=password%0d%0ab",
		"OTEL_EXPORTER_OTLP_CERTIFICATE":        "/nowhere",
		"OTEL_EXPORTER_OTLP_METRICS_CLIENT_KEY": "/nowhere",
	} {
		set := map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c", name: value}
		_, err := TargetOf(Metrics, env(set))
		require.ErrorContains(t, err, name+": ")
		require.NotContains(t, err.Error(), "password", "values may be secrets")
	}
	_, err := Interval(env(map[string]string{"OTEL_METRIC_EXPORT_INTERVAL": "1m"}))
	require.ErrorContains(t, err, "OTEL_METRIC_EXPORT_INTERVAL: must be 1 to 3600000 milliseconds")
}

func TestCertificatesAreRead(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1)}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	dir := t.TempDir()
	write := func(name, kind string, bytes []byte) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: bytes}), 0o600))
		return path
	}
	certificateFile := write("cert", "CERTIFICATE", certificate)
	set := map[string]string{
		"OTEL_EXPORTER_OTLP_ENDPOINT": "https://c", "OTEL_EXPORTER_OTLP_CERTIFICATE": certificateFile,
		"OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE": certificateFile, "OTEL_EXPORTER_OTLP_CLIENT_KEY": write("key", "PRIVATE KEY", private),
	}
	target, err := TargetOf(Traces, env(set))
	require.NoError(t, err)
	require.NotNil(t, target.TLS.RootCAs)
	require.Len(t, target.TLS.Certificates, 1)

	set["OTEL_EXPORTER_OTLP_CERTIFICATE"] = set["OTEL_EXPORTER_OTLP_CLIENT_KEY"]
	_, err = TargetOf(Traces, env(set))
	require.ErrorContains(t, err, "OTEL_EXPORTER_OTLP_CERTIFICATE: the file holds no certificate")
}
