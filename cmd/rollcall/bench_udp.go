package main

import (
	"bufio"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/loadgen"
	"github.com/rollcall/rollcall/udpbeat"
)

const (
	// benchKeyTTL is when the key of a run expires that could not be revoked.
	benchKeyTTL = 26 * time.Hour
	// countEvery is how often the metrics are read: the server makes them anew twice
	// a second.
	countEvery = 500 * time.Millisecond
	// countWait is how long beats may take to be counted.
	countWait = 10 * time.Second
)

// openUDP opens a sender of beats. It makes an API key of its own, as no two senders
// may share one, and revokes it at the end.
func (b *bench) openUDP(a *app, address string) error {
	keys := &remoteKeys{app: a, base: strings.TrimRight(b.place.server, "/"), key: b.place.key, http: &http.Client{Timeout: countWait}}
	made, err := keys.create(rollcall.RoleWriter, "rollcall bench", benchKeyTTL)
	if err != nil {
		return err
	}
	b.closers = append(b.closers, func() error {
		ctx, stop := context.WithTimeout(context.WithoutCancel(a.ctx), countWait)
		defer stop()
		keys.app = a.with(ctx) // also after Ctrl-C
		return keys.revoke(made.ID)
	})
	key, err := hex.DecodeString(made.BeatKey)
	if err != nil || len(key) != len(udpbeat.Key{}) {
		return errors.New("the server gave no beat key: is it a Rollcall that takes UDP beats?")
	}
	sender, err := udpbeat.Dial(a.ctx, address, made.ID, udpbeat.Key(key))
	if err != nil {
		return err
	}
	b.closers = append(b.closers, sender.Close)
	before, err := b.firstBeat(a.ctx, sender)
	if err != nil {
		return fmt.Errorf("no beat by UDP is counted (%s)\nIs %s the udp.listen of %s?", message(err), address, b.place.server)
	}
	sent := sender.Sent()
	b.Beater, b.Where = sender, address
	b.arrived = func(a *app) (*loadgen.Arrived, error) {
		ctx, stop := context.WithTimeout(context.WithoutCancel(a.ctx), countWait)
		defer stop()
		return b.count(ctx, before, int64(sender.Sent()-sent)) //nolint:gosec // far below
	}
	return nil
}

// firstBeat sends beats until one is counted, as the server takes a moment to know a
// new key. It returns the counts from then on.
func (b *bench) firstBeat(ctx context.Context, sender *udpbeat.Sender) (udpCounts, error) {
	ctx, stop := context.WithTimeout(ctx, countWait)
	defer stop()
	before, err := b.udpCounts(ctx)
	if err != nil {
		return before, err
	}
	for {
		if err := sender.Beat(ctx, "rollcall-bench-0"); err != nil {
			return before, err
		}
		select {
		case <-ctx.Done():
			return before, fmt.Errorf("none in %v", countWait)
		case <-time.After(countEvery):
		}
		now, err := b.udpCounts(ctx)
		if err != nil || now.users > before.users {
			return now, err
		}
	}
}

// count waits until all beats have been counted, as far as they arrive.
func (b *bench) count(ctx context.Context, before udpCounts, sent int64) (*loadgen.Arrived, error) {
	var out *loadgen.Arrived
	for {
		now, err := b.udpCounts(ctx)
		if err != nil {
			return out, err
		}
		last := out
		out = &loadgen.Arrived{Sent: sent, Counted: now.users - before.users, Dropped: map[string]int64{}}
		for reason, n := range now.dropped {
			if n > before.dropped[reason] {
				out.Dropped[reason] = n - before.dropped[reason]
			}
		}
		if out.Lost() == 0 || (last != nil && last.Lost() == out.Lost()) {
			return out, nil
		}
		select {
		case <-ctx.Done():
			return out, nil // what has been counted is the answer
		case <-time.After(2 * countEvery):
		}
	}
}

// udpCounts are the counters of the server's listener.
type udpCounts struct {
	users   int64
	dropped map[string]int64 // by reason
}

// udpCounts reads them from the metrics.
func (b *bench) udpCounts(ctx context.Context) (udpCounts, error) {
	out := udpCounts{dropped: map[string]int64{}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimRight(b.place.server, "/")+"/metrics", nil)
	if err != nil {
		return out, err
	}
	res, err := (&http.Client{Timeout: countWait}).Do(req)
	if err != nil {
		return out, err
	}
	defer func() { _ = res.Body.Close() }() // all of it that is wanted has been read
	if res.StatusCode != http.StatusOK {
		return out, fmt.Errorf("the metrics of the server cannot be read: %s", res.Status)
	}
	const most = 8 << 20
	lines := bufio.NewScanner(io.LimitReader(res.Body, most))
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), " ")
		n, err := strconv.ParseFloat(value, 64)
		if err != nil {
			continue // a comment
		}
		if name == `rollcall_udp_beats_total{of="users"}` {
			out.users = int64(n)
		}
		if reason, ok := strings.CutPrefix(name, `rollcall_udp_dropped_total{reason="`); ok {
			out.dropped[strings.TrimSuffix(reason, `"}`)] = int64(n)
		}
	}
	return out, lines.Err()
}
