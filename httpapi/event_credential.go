package httpapi

import (
	"context"
	"sync"
	"time"

	"github.com/rollcall/rollcall"
)

// credentialWatch ends the streams whose credential works no more: the API key was
// revoked or has expired, or the session of the console has ended. It looks at all
// credentials every keyCheck as long as there are streams, and at once when one of them
// ends through this server.
type credentialWatch struct {
	life  context.Context // of the server's streams
	roll  *rollcall.Roll
	every time.Duration // between two looks

	mu      sync.Mutex
	next    uint64
	streams map[credential]map[uint64]func()
	look    chan struct{}
	running bool
}

// keyCheck is how long a stream may outlive its key, or its session of the console.
const keyCheck = 5 * time.Second

// credential is what a stream was opened with: an API key, or a session of the console.
// The session ends with its key, so it has no key here.
type credential struct {
	key  string            // id; "" for none
	pass rollcall.PassHash // zero for none
}

// credential returns what the caller was let in with; the zero value for nothing.
func (c *caller) credential() credential {
	if c.console != nil {
		return credential{pass: c.pass}
	}
	return credential{key: c.key.ID}
}

func newCredentialWatch(life context.Context, roll *rollcall.Roll) *credentialWatch {
	return &credentialWatch{
		life: life, roll: roll, every: keyCheck,
		streams: make(map[credential]map[uint64]func()), look: make(chan struct{}, 1),
	}
}

// watch calls end when a credential does not work any more, until unwatch is called.
func (w *credentialWatch) watch(with credential, end func()) (unwatch func()) {
	if with == (credential{}) {
		return func() {} // nobody needs one
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.streams[with] == nil {
		w.streams[with] = make(map[uint64]func())
	}
	n := w.next
	w.next++
	w.streams[with][n] = end
	if !w.running {
		w.running = true
		go w.run(w.life)
	}
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.streams[with], n)
		if len(w.streams[with]) == 0 {
			delete(w.streams, with)
		}
		if len(w.streams) == 0 {
			w.changed() // so that run ends
		}
	}
}

// changed has all credentials looked at now.
func (w *credentialWatch) changed() {
	select {
	case w.look <- struct{}{}:
	default:
	}
}

// run looks at the credentials as long as anybody streams.
func (w *credentialWatch) run(ctx context.Context) {
	tick := time.NewTicker(w.every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-w.look:
		}
		watched, idle := w.watched()
		if idle {
			return
		}
		w.endOf(w.over(ctx, watched))
	}
}

// watched returns the credentials that have streams. Without any, the run ends.
func (w *credentialWatch) watched() (some []credential, idle bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for with := range w.streams {
		some = append(some, with)
	}
	w.running = len(some) > 0
	return some, !w.running
}

// over returns the credentials that work no more. What cannot be looked up works on: the
// next look finds out.
func (w *credentialWatch) over(ctx context.Context, watched []credential) (some []credential) {
	var works map[string]bool // of the keys; nil until they are asked for, and if they are not told
	asked := false
	for _, with := range watched {
		if with.key == "" {
			_, err := w.roll.ConsoleSessionOf(ctx, with.pass)
			if rollcall.CodeOf(err) == rollcall.CodeUnauthenticated {
				some = append(some, with)
			}
			continue
		}
		if !asked {
			works, asked = w.workingKeys(ctx), true
		}
		if works != nil && !works[with.key] {
			some = append(some, with)
		}
	}
	return some
}

// workingKeys returns the ids of the keys that work; nil if they cannot be listed.
func (w *credentialWatch) workingKeys(ctx context.Context) map[string]bool {
	keys, err := w.roll.Keys(ctx)
	if err != nil {
		return nil
	}
	works, now := make(map[string]bool, len(keys)), w.roll.Now()
	for _, key := range keys {
		works[key.ID] = key.ExpiresAt.IsZero() || now.Before(key.ExpiresAt)
	}
	return works
}

// endOf ends the streams of some credentials.
func (w *credentialWatch) endOf(over []credential) {
	var ends []func()
	w.mu.Lock()
	for _, with := range over {
		for _, end := range w.streams[with] {
			ends = append(ends, end)
		}
	}
	w.mu.Unlock()
	for _, end := range ends {
		end()
	}
}
