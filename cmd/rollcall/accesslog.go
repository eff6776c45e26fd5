package main

import (
	"log/slog"
	"net/http"
	"time"
)

// logged logs every request at debug: never its query or headers, which may
// hold credentials.
func logged(next http.Handler, log *slog.Logger) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !log.Enabled(r.Context(), slog.LevelDebug) {
			next.ServeHTTP(w, r)
			return
		}
		begin := time.Now()
		answer := &answerWriter{ResponseWriter: w, status: http.StatusOK}
		next.ServeHTTP(answer, r)
		log.DebugContext(r.Context(), "request", "method", r.Method, "path", r.URL.Path, "status", answer.status,
			"bytes", answer.bytes, "took", time.Since(begin), "from", r.RemoteAddr)
	})
}

// answerWriter remembers what was answered.
type answerWriter struct {
	http.ResponseWriter
	status  int
	bytes   int64
	started bool
}

func (w *answerWriter) WriteHeader(status int) {
	if !w.started && status >= http.StatusOK { // 1xx are not the answer yet
		w.status, w.started = status, true
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *answerWriter) Write(p []byte) (int, error) {
	w.started = true
	n, err := w.ResponseWriter.Write(p)
	w.bytes += int64(n)
	return n, err
}

// Flush implements http.Flusher, which streams need.
func (w *answerWriter) Flush() {
	w.started = true
	_ = http.NewResponseController(w.ResponseWriter).Flush() // a writer that cannot has nothing to flush
}

// Unwrap lets http.ResponseController reach the connection.
func (w *answerWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
