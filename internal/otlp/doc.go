// Package otlp sends spans and measures to a collector by OTLP, the protocol of
// OpenTelemetry (https://opentelemetry.io/docs/specs/otlp/): Protobuf over HTTP. It is set
// up by the variables that OpenTelemetry names
// (https://opentelemetry.io/docs/specs/otel/protocol/exporter/).
//
// Spans are made by the SDK of OpenTelemetry, measures by the registry of Prometheus. The
// exporters of the SDK would do this too, and link all of gRPC: 19 MB.
package otlp
