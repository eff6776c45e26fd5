package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	eventRate    = 1000 // a second
	eventSeconds = 10 * time.Second
	stallReaders = 1000
)

// measureEvents has readers take streams of a server in a process of its own.
func measureEvents(ctx context.Context, sizes []int, friends int) (section, error) {
	s := section{
		title: "Streams of events",
		about: fmt.Sprintf("One server, in a process of its own, which also makes %d events a second by logins and kicks of users, each of whom is a friend of %d readers. "+
			"Readers are connections to this process. A reader of friends has %d friends and hears of each who comes or goes; a reader of events follows the events of one user. "+
			"The latency runs from the instant that the event carries until the reader has it, so it includes the wait for the disk. "+
			"Memory is what the resident size of the server grew by, for each reader; some seconds of events are included.", eventRate, friendsOfReader, friends),
	}
	t := table{head: []string{"engine", "readers", "of", "events/s told", "p50", "p99", "longest", "memory a reader"}}
	for _, onRedis := range []bool{false, true} {
		for _, readers := range sizes {
			for _, friends := range []int{friends, 0} {
				row, err := eventLatency(ctx, onRedis, readers, friends)
				if err != nil {
					return s, err
				}
				t.add(row.cells()...)
				s.within("P17", row.name()+": from change to reader, p99", row.p99, time.Second)
				s.atMost("P17", row.name()+": memory of a reader", row.each, 20_000, func(n float64) string { return fmt.Sprintf("%.1f KB", n/1000) })
			}
		}
	}
	s.tables = []table{t}
	if len(sizes) == 1 {
		return s, nil
	}
	stall, err := eventStall(ctx)
	s.tables = append(s.tables, stall)
	return s, err
}

// eventRun is a server of streams, and its readers.
type eventRun struct {
	site    eventSite
	cmd     *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Reader
	peer    *peer
	readers []*eventReader
	work    sync.WaitGroup
	live    atomic.Bool // latencies count
}

// eventReader is one connection, and the latencies it met.
type eventReader struct {
	conn net.Conn
	took []time.Duration
}

// startEvents starts a server for so many readers with so many friends each.
func startEvents(ctx context.Context, onRedis bool, readers, friends int) (*eventRun, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	r := &eventRun{cmd: exec.CommandContext(ctx, self, "-child", eventServer, "-size", strconv.Itoa(readers))} //nolint:gosec // this very binary
	r.cmd.Env = append(os.Environ(), friendsVariable+"="+strconv.Itoa(max(friends, friendsOfReader)))
	if onRedis {
		if r.peer, err = startPeer(ctx); err != nil {
			return nil, err
		}
		r.cmd.Env = append(r.cmd.Env, redisVariable+"=redis://127.0.0.1:"+r.peer.port)
	}
	r.cmd.Stderr = os.Stderr
	if r.in, err = r.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := r.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	r.out = bufio.NewReader(out)
	if err := r.cmd.Start(); err != nil {
		return nil, err
	}
	line, err := r.out.ReadBytes('\n')
	if err != nil {
		return nil, errors.Join(err, r.cmd.Wait())
	}
	return r, json.Unmarshal(line, &r.site)
}

// tell has the server do something.
func (r *eventRun) tell(command string) error {
	if _, err := fmt.Fprintln(r.in, command); err != nil {
		return err
	}
	_, err := r.out.ReadString('\n')
	return err
}

func (r *eventRun) stop() error {
	for _, reader := range r.readers {
		_ = reader.conn.Close() // it has been read
	}
	r.work.Wait()
	err := errors.Join(r.in.Close(), r.cmd.Wait())
	if r.peer != nil {
		err = errors.Join(err, r.peer.stop())
	}
	return err
}

// resident returns the resident size of the server.
func (r *eventRun) resident() (int64, error) {
	return residentBytesOf(strconv.Itoa(r.cmd.Process.Pid))
}

// connect opens a stream; its frames are read until it ends.
func (r *eventRun) connect(ctx context.Context, path, token string) error {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", r.site.Address)
	if err != nil {
		return err
	}
	auth := ""
	if token != "" {
		auth = "Authorization: Bearer " + token + "\r\n"
	}
	if _, err := fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: %s\r\n%s\r\n", path, r.site.Address, auth); err != nil {
		return err
	}
	in := bufio.NewReaderSize(conn, 2<<10)
	status, err := in.ReadString('\n')
	if err != nil || !strings.Contains(status, " 200 ") {
		return errors.Join(err, fmt.Errorf("%s: %s", path, status))
	}
	reader := &eventReader{conn: conn}
	r.readers = append(r.readers, reader)
	r.work.Go(func() { r.read(reader, in) })
	return nil
}

// read takes frames until the connection ends. Events and changes carry their instant.
func (r *eventRun) read(reader *eventReader, in *bufio.Reader) {
	counts := false
	for {
		line, err := in.ReadSlice('\n')
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return
		}
		if name, ok := bytes.CutPrefix(line, []byte("event: ")); ok {
			counts = !bytes.HasPrefix(name, []byte("snapshot"))
		}
		if !counts || !r.live.Load() {
			continue
		}
		if _, rest, ok := bytes.Cut(line, []byte(`"at":"`)); ok {
			text, _, _ := bytes.Cut(rest, []byte{'"'})
			if at, err := time.Parse(time.RFC3339Nano, string(text)); err == nil {
				reader.took = append(reader.took, time.Since(at))
			}
		}
	}
}

// connectAll connects the readers.
func (r *eventRun) connectAll(ctx context.Context, n int, friends bool) error {
	for i := range n {
		path, token := fmt.Sprint("/v1/events?user=u", i), ""
		if friends {
			path, token = "/v1/me/friends/events", r.site.Tokens[i]
		}
		if err := r.connect(ctx, path, token); err != nil {
			return fmt.Errorf("reader %d: %w", i, err)
		}
	}
	return nil
}

// sorted returns what all readers met.
func (r *eventRun) sorted() []time.Duration {
	var all []time.Duration
	for _, reader := range r.readers {
		all = append(all, reader.took...)
	}
	slices.Sort(all)
	return all
}

// streamed is what readers met.
type streamed struct {
	engine, of        string
	readers           int
	rate, each        float64 // events a second told to all, and bytes of memory a reader
	p50, p99, longest time.Duration
}

func (r streamed) name() string {
	return fmt.Sprintf("%s, %s readers of %s", r.engine, count(float64(r.readers)), r.of)
}

func (r streamed) cells() []string {
	return []string{
		r.engine, count(float64(r.readers)), r.of, count(r.rate), millis(r.p50), millis(r.p99), millis(r.longest), fmt.Sprintf("%.1f KB", r.each/1000),
	}
}

// eventLatency measures readers with so many friends each; 0 for readers of events.
func eventLatency(ctx context.Context, onRedis bool, readers, friends int) (row streamed, err error) {
	r, err := startEvents(ctx, onRedis, readers, friends)
	if err != nil {
		return row, err
	}
	defer func() { err = errors.Join(err, r.stop()) }()
	if err := r.tell("settle"); err != nil {
		return row, err
	}
	before, err := r.resident()
	if err != nil {
		return row, err
	}
	if err := r.connectAll(ctx, readers, friends > 0); err != nil {
		return row, err
	}
	if err := r.tell(fmt.Sprint("rate ", eventRate)); err != nil {
		return row, err
	}
	// The first seconds are not counted: the streams begin.
	if err := wait(ctx, 3*time.Second); err != nil {
		return row, err
	}
	r.live.Store(true)
	if err := wait(ctx, eventSeconds); err != nil {
		return row, err
	}
	r.live.Store(false)
	after, err := r.resident()
	if err != nil {
		return row, err
	}
	for _, reader := range r.readers {
		_ = reader.conn.Close() // it has been read
	}
	r.work.Wait()
	all := r.sorted()
	if len(all) == 0 {
		return row, errors.New("nobody was told of an event")
	}
	row = streamed{
		engine: "embedded", of: "events", readers: readers,
		rate: float64(len(all)) / eventSeconds.Seconds(), each: float64(after-before) / float64(readers),
		p50: all[len(all)/2], p99: all[len(all)*99/100], longest: all[len(all)-1],
	}
	if onRedis {
		row.engine = "Redis"
	}
	if friends > 0 {
		row.of = "friends"
	}
	return row, nil
}

func millis(d time.Duration) string { return fmt.Sprintf("%.0f ms", float64(d)/1e6) }

// eventStall has one reader of all events take nothing while the others read on.
func eventStall(ctx context.Context) (t table, err error) {
	t = table{head: []string{"readers of events", "when", "p50", "p99", "longest"}}
	r, err := startEvents(ctx, false, stallReaders, 0)
	if err != nil {
		return t, err
	}
	defer func() { err = errors.Join(err, r.stop()) }()
	if err := r.connectAll(ctx, stallReaders-1, false); err != nil {
		return t, err
	}
	if err := r.tell(fmt.Sprint("rate ", eventRate)); err != nil {
		return t, err
	}
	if err := wait(ctx, 3*time.Second); err != nil {
		return t, err
	}
	measure := func(when string, until func() (bool, error)) error {
		for _, reader := range r.readers {
			reader.took = nil
		}
		r.live.Store(true)
		for {
			if err := wait(ctx, 500*time.Millisecond); err != nil {
				return err
			}
			if over, err := until(); over || err != nil {
				break
			}
		}
		r.live.Store(false)
		if err := wait(ctx, 200*time.Millisecond); err != nil { // nobody appends any more
			return err
		}
		all := r.sorted()
		t.add(strconv.Itoa(len(r.readers)), when, millis(all[len(all)/2]), millis(all[len(all)*99/100]), millis(all[len(all)-1]))
		return nil
	}
	soon := func() func() (bool, error) {
		end := time.Now().Add(eventSeconds)
		return func() (bool, error) { return time.Now().After(end), nil }
	}
	if err := measure("before", soon()); err != nil {
		return t, err
	}
	stalled, err := r.stalled(ctx)
	if err != nil {
		return t, err
	}
	defer stalled.Close()
	began := time.Now()
	if err := measure("while one more takes nothing", r.cutOff); err != nil {
		return t, err
	}
	t.note = fmt.Sprintf("The stalled reader wanted all events and was cut off %.1f s after it connected.", time.Since(began).Seconds())
	return t, measure("after it was cut off", soon())
}

// stalled opens a stream of all events and takes nothing of it.
func (r *eventRun) stalled(ctx context.Context) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", r.site.Address)
	if err != nil {
		return nil, err
	}
	if err := conn.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
		return nil, err
	}
	_, err = fmt.Fprintf(conn, "GET /v1/events HTTP/1.1\r\nHost: %s\r\n\r\n", r.site.Address)
	return conn, err
}

// cutOff reports whether a reader of events was cut off.
func (r *eventRun) cutOff() (bool, error) {
	resp, err := http.Get("http://" + r.site.Address + "/metrics") //nolint:noctx // of our own server
	if err != nil {
		return false, err
	}
	text, err := io.ReadAll(resp.Body)
	return bytes.Contains(text, []byte(`rollcall_streams_ended_total{cause="behind",kind="events"} 1`)), errors.Join(err, resp.Body.Close())
}
