package httpapi

import (
	"context"
	"sync"
	"time"

	"github.com/rollcall/rollcall"
)

// keyWatch ends the streams of API keys that are revoked or expire. All keys are
// looked at every keyCheck as long as there are streams, and at once when one is
// revoked through this server.
type keyWatch struct {
	life context.Context // of the server's streams
	roll *rollcall.Roll

	mu      sync.Mutex
	next    uint64
	streams map[string]map[uint64]func() // by the id of the key
	look    chan struct{}
	running bool
}

// keyCheck is how long a stream may outlive its key.
const keyCheck = 5 * time.Second

func newKeyWatch(life context.Context, roll *rollcall.Roll) *keyWatch {
	return &keyWatch{life: life, roll: roll, streams: make(map[string]map[uint64]func()), look: make(chan struct{}, 1)}
}

// watch calls end when a key does not work any more, until unwatch is called.
func (k *keyWatch) watch(id string, end func()) (unwatch func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.streams[id] == nil {
		k.streams[id] = make(map[uint64]func())
	}
	n := k.next
	k.next++
	k.streams[id][n] = end
	if !k.running {
		k.running = true
		go k.run(k.life)
	}
	return func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		delete(k.streams[id], n)
		if len(k.streams[id]) == 0 {
			delete(k.streams, id)
		}
		if len(k.streams) == 0 {
			k.changed() // so that run ends
		}
	}
}

// changed has all keys looked at now.
func (k *keyWatch) changed() {
	select {
	case k.look <- struct{}{}:
	default:
	}
}

// run looks at the keys as long as anybody streams.
func (k *keyWatch) run(ctx context.Context) {
	tick := time.NewTicker(keyCheck)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-k.look:
		}
		k.mu.Lock()
		idle := len(k.streams) == 0
		k.running = !idle
		k.mu.Unlock()
		if idle {
			return
		}
		if keys, err := k.roll.Keys(ctx); err == nil { // else the next look finds out
			k.endOthers(keys)
		}
	}
}

// watchConsole calls end when a session of the console has ended, unless life ends
// before. To have a stream open is no use of the session.
func (k *keyWatch) watchConsole(life context.Context, text string, end func()) {
	tick := time.NewTicker(keyCheck)
	defer tick.Stop()
	for {
		select {
		case <-life.Done():
			return
		case <-tick.C:
		}
		if _, err := k.roll.ConsoleSession(life, text); rollcall.CodeOf(err) == rollcall.CodeUnauthenticated {
			end()
			return
		}
	}
}

// endOthers ends the streams of all keys but those that work.
func (k *keyWatch) endOthers(keys []rollcall.APIKey) {
	works, now := make(map[string]bool, len(keys)), k.roll.Now()
	for _, key := range keys {
		works[key.ID] = key.ExpiresAt.IsZero() || now.Before(key.ExpiresAt)
	}
	var ends []func()
	k.mu.Lock()
	for id, streams := range k.streams {
		if works[id] {
			continue
		}
		for _, end := range streams {
			ends = append(ends, end)
		}
	}
	k.mu.Unlock()
	for _, end := range ends {
		end()
	}
}
