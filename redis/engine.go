package redis

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/redis/rueidis"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/coldcache"
	"github.com/rollcall/rollcall/internal/enginekit"
)

// Engine is the distributed engine. It keeps nothing that another server on the
// same Redis would have to know.
type Engine struct {
	attendanceFigures

	opts          Options
	client        rueidis.Client
	scripts       *scripts
	loader        loader
	keyPrefixes   []string // of the partitions
	states        []string // keys of their states
	server        [8]byte  // names this server, for leases and requests
	holder        string   // the same as text
	tracesAtOnce  int      // how many an export gathers
	store         uint32   // tells event ids of this data from those of others
	life          heartbeat
	flow          *flow
	clock         clock
	maxCandidates int // candidates a filter without an index looks at
	timelineBound int // events that one look at a timeline reads
	kinds         kindSet
	beats         beats

	coldMonths *coldcache.Months // what was read back from the archive
	snapshot   monthSnapshot
	unfinished unfinishedErasures
	audit      auditTrail
	news       news

	settings           rollcall.Settings
	setup              []byte        // see env
	ticked             atomic.Int64  // time of the latest tick, ms
	lastRetentionSweep atomic.Int64  // minute of the last sweep of last-seen times
	sampled            atomic.Uint32 // the minute that was sampled last, as far as this server knows
	lastPruning        atomic.Int64  // period of the last pruning of reverse edges
	requests           atomic.Uint64 // that were given an id
	sweepFrom          atomic.Int64  // the partition at which the next sweep begins
	workSlot           chan struct{} // has an element while scripts work off what is due
	dueSeen            atomic.Int64  // when more was due than a script ends, as time since flow.start

	state    enginekit.State
	lifetime context.Context // ends with Close
	end      context.CancelFunc
	stop     <-chan struct{} // of lifetime
	work     sync.WaitGroup
}

var _ rollcall.Engine = (*Engine)(nil)

// format is the version of the layout of keys and records.
const format = 15

// Open connects to Redis and prepares it: it gives the servers the scripts,
// notes the layout of the data if there is none yet, and refuses one that is
// not its own. ctx bounds only the opening.
func Open(ctx context.Context, o Options) (*Engine, error) {
	if err := o.fill(); err != nil {
		return nil, err
	}
	a, err := parseURL(o.URL)
	if err != nil {
		return nil, err
	}
	option, err := a.option(o.Timeout)
	if err != nil {
		return nil, err
	}
	e := &Engine{opts: o, maxCandidates: maxCandidates, tracesAtOnce: maxTraces, timelineBound: maxTimelineLook, life: newHeartbeat(o.Partitions), flow: newFlow(), workSlot: make(chan struct{}, 1), news: news{asking: make(chan struct{}, 1)}, audit: auditTrail{turn: make(chan struct{}, 1)}}
	e.attendanceFigures.Days = engineDays{e}
	if e.scripts, err = loadScripts(); err != nil {
		return nil, err
	}
	_, _ = rand.Read(e.server[:]) // never fails
	e.holder = hex.EncodeToString(e.server[:])
	for p := range o.Partitions {
		root := fmt.Sprintf("%s:{%d}", o.Prefix, p)
		e.keyPrefixes, e.states = append(e.keyPrefixes, root), append(e.states, root+":part")
	}
	e.kinds.known = make(map[string]int64)
	e.coldMonths = coldcache.New(o.Partitions, coldCacheBytes)
	e.beats.wake = make(chan struct{}, 1)
	if e.client, err = rueidis.NewClient(option); err != nil {
		return nil, errorOf(err)
	}
	if o.wrap != nil {
		e.client = o.wrap(e.client)
	}
	e.lifetime, e.end = context.WithCancel(context.WithoutCancel(ctx))
	e.stop = e.lifetime.Done()
	if err := e.prepare(ctx); err != nil {
		e.end()
		e.client.Close()
		return nil, err
	}
	e.work.Go(e.keepTime)
	e.work.Go(e.watchNews)
	for range beatWorkers {
		e.work.Go(e.keepBeating)
	}
	return e, nil
}

// key returns a key that belongs to no partition.
func (e *Engine) key(name string) string { return e.opts.Prefix + ":" + name }

// of returns a key of a partition.
func (e *Engine) of(part int, name string) string { return e.keyPrefixes[part] + ":" + name }

func (e *Engine) prepare(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, e.opts.Timeout)
	defer cancel()
	if err := e.loadScripts(ctx); err != nil {
		return err
	}

	// May this user of Redis do all that scripts do?
	var id [4]byte
	_, _ = rand.Read(id[:])
	e.state.Ready.Store(true)
	defer e.state.Ready.Store(false)
	if _, err := e.one(ctx, 0, keyCall(e.of(0, "probe"), &e.scripts.storeProbe)); err != nil {
		return err
	}

	// Is the data there of this layout? New data gets it.
	stands, err := e.meta(ctx,
		"format", strconv.Itoa(format), "partitions", strconv.Itoa(e.opts.Partitions), "store", hex.EncodeToString(id[:]))
	if err != nil {
		return err
	}
	if stands[0] != strconv.Itoa(format) {
		return &rollcall.Error{
			Code: rollcall.CodeConflict, Field: "redis.url",
			Detail: fmt.Sprintf("the data has format %q, this version knows %d", stands[0], format),
		}
	}
	if stands[1] != strconv.Itoa(e.opts.Partitions) {
		return &rollcall.Error{
			Code: rollcall.CodeConflict, Field: "redis.partitions",
			Detail: fmt.Sprintf("the data was created with %s partitions, this server is set to %d", stands[1], e.opts.Partitions),
		}
	}
	store, err := strconv.ParseUint(stands[2], 16, 32)
	if err != nil {
		return damaged("the layout")
	}
	e.store = uint32(store)
	return e.measure(ctx)
}

// meta notes fields of the layout, once, and returns what stands.
func (e *Engine) meta(ctx context.Context, fields ...string) ([]string, error) {
	msg, err := e.one(ctx, 0, keyCall(e.key("meta"), &e.scripts.storeMeta, fields...))
	if err != nil {
		return nil, err
	}
	stands, err := msg.AsStrSlice()
	if err != nil || len(stands) != len(fields)/2 {
		return nil, damaged("the layout")
	}
	return stands, nil
}

// Configure implements [rollcall.Engine].
func (e *Engine) Configure(ctx context.Context, s rollcall.Settings) error {
	e.state.Ready.Store(true)

	// Refuse data that is ahead of the caller's own clock. Without such a clock, scripts hold
	// every time to Redis's.
	if s.OwnClock {
		if err := e.checkAhead(ctx, s.Now); err != nil {
			e.state.Ready.Store(false)
			return err
		}
	}

	// All servers on one Redis need the same time zone and secret.
	fields := []string{"timezone", s.Timezone}
	if s.SecretID != "" {
		fields = append(fields, "secret", s.SecretID)
	}
	stands, err := e.meta(ctx, fields...)
	if err == nil && s.SecretID != "" && stands[1] != s.SecretID {
		err = &rollcall.Error{
			Code: rollcall.CodeConflict, Field: "secret",
			Detail: "is another one than that of the servers that made the data: all servers on one Redis need the same",
		}
	}
	if err == nil && stands[0] != s.Timezone {
		err = &rollcall.Error{
			Code: rollcall.CodeConflict, Field: "timezone",
			Detail: "the data was created with " + stands[0] + ", its days cannot be read as days of " + s.Timezone,
		}
	}
	if err != nil {
		e.state.Ready.Store(false)
		return err
	}
	e.settings = s
	e.packSetup(s)
	return nil
}

// checkOpen returns an error unless the engine can be used.
func (e *Engine) checkOpen() error { return e.state.Err() }

// partOf returns a user's partition.
func (e *Engine) partOf(user string) int { return e.home(uint16(rollcall.HashUser(user))) }

func (e *Engine) home(hash uint16) int { return int(hash) & (len(e.keyPrefixes) - 1) }

func (e *Engine) homeOf(r rollcall.Ref) int {
	if r.Token != nil {
		return e.home(r.Token.Home)
	}
	return e.home(r.ID.Home())
}

// inAllParts runs a script in all partitions.
func (e *Engine) inAllParts(ctx context.Context, now int64, s *script, args ...string) ([]rueidis.RedisMessage, error) {
	calls := make([]call, len(e.keyPrefixes))
	for p := range calls {
		calls[p] = partCall(p, s, args...)
	}
	return e.do(ctx, now, calls...)
}

// byPart sorts things by partition. It returns the partitions that have any,
// and the places of their things.
func (e *Engine) byPart(n int, part func(i int) int) (parts []int, places [][]int) {
	index := make(map[int]int)
	for i := range n {
		p := part(i)
		j, ok := index[p]
		if !ok {
			j = len(parts)
			index[p] = j
			parts, places = append(parts, p), append(places, nil)
		}
		places[j] = append(places[j], i)
	}
	return parts, places
}

// Flush implements [rollcall.Engine]. Beats and touches are where Redis keeps
// them already; what is left is the stamp of life.
func (e *Engine) Flush(ctx context.Context) error {
	_, err := e.inAllParts(ctx, e.life.latest.Load(), &e.scripts.upkeepStamp, "0")
	return err
}

// Close implements [rollcall.Engine].
func (e *Engine) Close() error {
	if e.state.Closed.Load() {
		return nil
	}
	var err error
	if e.state.Ready.Load() {
		err = e.Flush(context.WithoutCancel(e.lifetime)) // the timeout of commands bounds it
		if errors.Is(err, rollcall.ErrUnavailable) {
			err = nil // nothing is lost by it: the stamp of the last tick stands
		}
	}
	if e.state.Closed.Swap(true) {
		return nil
	}
	e.end()
	e.work.Wait()
	e.client.Close()
	return err
}
