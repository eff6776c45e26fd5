package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
)

// profiling serves profiles and traces of the process on a loopback address. It
// needs no key, so nobody but programs of this machine may reach it: a profile names
// functions, and the command line is part of it.
type profiling struct {
	server *http.Server
	ended  chan error
}

// startProfiling listens at once, so that an address that cannot be had ends the
// start of the server. Without an address there is nothing to serve.
func startProfiling(ctx context.Context, address string, log *slog.Logger) (*profiling, error) {
	if address == "" {
		return nil, nil // close does nothing then
	}
	if !loopback(address) {
		return nil, usageError{fmt.Errorf("--pprof: %s is not a loopback address: use 127.0.0.1:PORT", address)}
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("--pprof: listen on %s: %w", address, err)
	}
	p := &profiling{server: newHTTPServer(ownMachineOnly(profiles()), log, limitConnections(listener, 16)), ended: make(chan error, 1)}
	go func() { p.ended <- p.server.Serve(listener) }()
	log.Info("profiles and traces are served", "url", "http://"+listener.Addr().String()+"/debug/pprof/")
	return p, nil
}

// profiles are the pages that go tool pprof and go tool trace read.
func profiles() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	return mux
}

// ownMachineOnly refuses what a browser sends for a page of another site, which may
// call a name of its own that leads to this machine.
func ownMachineOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, err := net.SplitHostPort(r.Host)
		if err != nil {
			host = r.Host
		}
		site := r.Header.Get("Sec-Fetch-Site")
		if !loopback(net.JoinHostPort(host, "0")) || (site != "" && site != "none" && site != "same-origin") {
			http.Error(w, "profiles are served to programs and pages of this machine only", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// close ends what is under way.
func (p *profiling) close() error {
	if p == nil {
		return nil
	}
	err := p.server.Close()
	if ended := <-p.ended; !errors.Is(ended, http.ErrServerClosed) {
		err = errors.Join(err, ended)
	}
	return err
}
