package main

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rollcall/rollcall/udpbeat"
)

const (
	doorCallers = 4
	doorFor     = 4 * time.Second
	doorPool    = 200 // requests made before the clock runs, for each caller
)

// measureDoors measures heartbeats of random users that come to a server, by HTTP and
// by UDP.
func measureDoors(ctx context.Context, sizes []int) (section, error) {
	s := section{
		title: "Heartbeats by HTTP and by UDP",
		about: fmt.Sprintf("A server of its own, asked on the same machine by this process. HTTP: `POST /v1/beats` of 1,000 random users out of all, from %d connections for %v. ", doorCallers, doorFor) +
			fmt.Sprintf("UDP: gateway beats of as many users as fit, from %d senders with a key each, as fast as they can; counted is what the server says, dropped what came and was more than it kept up with. Every user was seen before. Medians of three.", doorCallers),
	}
	t := table{head: []string{"users", "HTTP", "UDP, counted", "sent", "dropped"}}
	for _, n := range sizes {
		d, err := openDoors(ctx, n)
		if err != nil {
			return s, err
		}
		rates, err := d.measure(ctx)
		if err := errors.Join(err, d.stop()); err != nil {
			return s, err
		}
		t.add(count(float64(n)), perSecond(rates.http), perSecond(rates.counted), perSecond(rates.sent), perSecond(rates.dropped))
		s.atLeast("P4", "users a second by HTTP, in beats of 1,000", rates.http, 1e6, perSecond)
		s.atLeast("P4", "users a second by UDP", rates.counted, 1e6, perSecond)
	}
	s.tables = append(s.tables, t)
	return s, nil
}

// doors is a server whose users have all been seen.
type doors struct {
	*served
	users int
}

func openDoors(ctx context.Context, users int) (*doors, error) {
	s, err := startServed(ctx)
	if err != nil {
		return nil, err
	}
	d := &doors{s, users}
	w, err := dialWire(ctx, s.address)
	for from := 0; err == nil && from < users; from += beatBatch {
		names := make([]string, 0, beatBatch)
		for u := from; u < min(from+beatBatch, users); u++ {
			names = append(names, strconv.Itoa(u))
		}
		err = w.ask(beatRequest(names))
	}
	if err != nil {
		return nil, errors.Join(err, s.stop())
	}
	return d, w.Close()
}

func beatRequest(users []string) []byte {
	body := `{"users":["` + strings.Join(users, `","`) + `"]}`
	return []byte("POST /v1/beats HTTP/1.1\r\nHost: rollcall\r\nAuthorization: Bearer " + servedKey +
		"\r\nContent-Type: application/json\r\nContent-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n" + body)
}

// random returns as many random users as one batch has.
func (d *doors) random(rng *rand.Rand) []string {
	out := make([]string, beatBatch)
	for i := range out {
		out[i] = strconv.Itoa(rng.IntN(d.users))
	}
	return out
}

// doorRates are users a second: by HTTP; and by UDP those counted, sent and dropped.
type doorRates struct{ http, counted, sent, dropped float64 }

// measure returns the medians of all runs.
func (d *doors) measure(ctx context.Context) (doorRates, error) {
	var byHTTP, counted, sent, dropped []float64
	for range runs {
		rate, err := d.overHTTP(ctx)
		if err != nil {
			return doorRates{}, err
		}
		c, s, x, err := d.overUDP(ctx)
		if err != nil {
			return doorRates{}, err
		}
		byHTTP, counted, sent, dropped = append(byHTTP, rate), append(counted, c), append(sent, s), append(dropped, x)
	}
	return doorRates{median(byHTTP), median(counted), median(sent), median(dropped)}, nil
}

// askTogether calls work from some callers at once, until the time is up, and returns how
// long that took.
func askTogether(callers int, during time.Duration, work func(caller, turn int) error) (time.Duration, error) {
	var all sync.WaitGroup
	failed := make([]error, callers)
	began := time.Now()
	for i := range callers {
		all.Go(func() {
			for turn := 0; time.Since(began) < during && failed[i] == nil; turn++ {
				failed[i] = work(i, turn)
			}
		})
	}
	all.Wait()
	return time.Since(began), errors.Join(failed...)
}

func (d *doors) overHTTP(ctx context.Context) (float64, error) {
	wires, pools, sent := make([]*wire, doorCallers), make([][][]byte, doorCallers), make([]int, doorCallers)
	for i := range wires {
		var err error
		if wires[i], err = dialWire(ctx, d.address); err != nil {
			return 0, err
		}
		defer wires[i].Close()
		rng := rand.New(rand.NewPCG(uint64(i), 2)) //nolint:gosec // load, not secrets
		for range doorPool {
			pools[i] = append(pools[i], beatRequest(d.random(rng)))
		}
	}
	took, err := askTogether(doorCallers, doorFor, func(caller, turn int) error {
		sent[caller] += beatBatch
		return wires[caller].ask(pools[caller][turn%doorPool])
	})
	total := 0
	for _, n := range sent {
		total += n
	}
	return float64(total) / took.Seconds(), err
}

// overUDP returns how many users a second were counted, sent, and dropped.
func (d *doors) overUDP(ctx context.Context) (counted, sent, dropped float64, err error) {
	senders, pools := make([]*udpbeat.Sender, doorCallers), make([][][]string, doorCallers)
	for i := range senders {
		if senders[i], err = d.sender(ctx); err != nil {
			return 0, 0, 0, err
		}
		defer senders[i].Close()
		rng := rand.New(rand.NewPCG(uint64(i), 3)) //nolint:gosec // load, not secrets
		for range doorPool {
			pools[i] = append(pools[i], d.random(rng))
		}
	}
	// The server knows a new key after two seconds; the metrics are made twice a second.
	if err := rest(ctx, 4*time.Second); err != nil {
		return 0, 0, 0, err
	}
	before, err := d.measures(ctx, "rollcall_udp_")
	if err != nil {
		return 0, 0, 0, err
	}
	took, err := askTogether(doorCallers, doorFor, func(caller, turn int) error {
		return senders[caller].Beat(ctx, pools[caller][turn%doorPool]...)
	})
	if err := errors.Join(err, rest(ctx, time.Second)); err != nil {
		return 0, 0, 0, err
	}
	after, err := d.measures(ctx, "rollcall_udp_")
	for _, s := range senders {
		sent += float64(s.Sent())
	}
	for name := range after {
		if n := after[name] - before[name]; strings.Contains(name, "dropped") {
			dropped += n
		} else {
			counted += n
		}
	}
	return counted / took.Seconds(), sent / took.Seconds(), dropped / took.Seconds(), err
}

// sender returns a sender with an API key of its own.
func (d *doors) sender(ctx context.Context) (*udpbeat.Sender, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+d.address+"/v1/keys", strings.NewReader(`{"role":"writer"}`))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+servedKey)
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	var made struct {
		ID      string
		BeatKey string `json:"beat_key"`
	}
	if err := json.NewDecoder(res.Body).Decode(&made); err != nil {
		return nil, err
	}
	key, err := hex.DecodeString(made.BeatKey)
	if err != nil || len(key) != len(udpbeat.Key{}) {
		return nil, fmt.Errorf("a key cannot be made: %s", res.Status)
	}
	return udpbeat.Dial(ctx, d.udp, made.ID, udpbeat.Key(key))
}

// rest waits.
func rest(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
