package local

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/rollcall/rollcall"
)

// keyTable holds the API keys of an engine, by the hash of their text.
type keyTable struct {
	mu   sync.RWMutex
	keys map[rollcall.KeyHash]rollcall.APIKey
}

func apiKeyKey(id string) key { return newKey(tabKey, 1+len(id)).raw([]byte(id)) }

// PutKey implements [rollcall.Admin].
func (e *Engine) PutKey(_ context.Context, k rollcall.APIKey) error {
	if err := e.readable(); err != nil {
		return err
	}
	e.keys.mu.Lock()
	defer e.keys.mu.Unlock()
	if _, had := e.keys.keys[k.Hash]; !had && len(e.keys.keys) >= rollcall.MaxAPIKeys {
		return &rollcall.Error{Code: rollcall.CodeConflict, Detail: "there are as many API keys as one store holds: revoke some"}
	}
	b := e.store.newBatch()
	if err := b.Set(apiKeyKey(k.ID), encodeAPIKey(k), nil); err != nil {
		return err
	}
	if err := e.store.write(b); err != nil {
		return err
	}
	e.keys.keys[k.Hash] = k
	return nil
}

// Key implements [rollcall.Admin].
func (e *Engine) Key(_ context.Context, hash rollcall.KeyHash) (rollcall.APIKey, error) {
	if err := e.readable(); err != nil {
		return rollcall.APIKey{}, err
	}
	e.keys.mu.RLock()
	defer e.keys.mu.RUnlock()
	k, ok := e.keys.keys[hash]
	if !ok {
		return k, rollcall.NotFound("API key")
	}
	return k, nil
}

// Keys implements [rollcall.Admin].
func (e *Engine) Keys(context.Context) ([]rollcall.APIKey, error) {
	if err := e.readable(); err != nil {
		return nil, err
	}
	e.keys.mu.RLock()
	defer e.keys.mu.RUnlock()
	out := make([]rollcall.APIKey, 0, len(e.keys.keys))
	for _, k := range e.keys.keys {
		out = append(out, k)
	}
	slices.SortFunc(out, func(a, b rollcall.APIKey) int {
		if c := a.CreatedAt.Compare(b.CreatedAt); c != 0 {
			return c
		}
		return slices.Compare([]byte(a.ID), []byte(b.ID))
	})
	return out, nil
}

// DeleteKey implements [rollcall.Admin].
func (e *Engine) DeleteKey(_ context.Context, id string) error {
	if err := e.readable(); err != nil {
		return err
	}
	e.keys.mu.Lock()
	defer e.keys.mu.Unlock()
	for hash, k := range e.keys.keys {
		if k.ID != id {
			continue
		}
		b := e.store.newBatch()
		if err := b.Delete(apiKeyKey(id), nil); err != nil {
			return err
		}
		if err := e.store.write(b); err != nil {
			return err
		}
		delete(e.keys.keys, hash)
		return nil
	}
	return rollcall.NotFound("API key")
}

// Ready implements [rollcall.Admin].
func (e *Engine) Ready(context.Context) error {
	if err := e.readable(); err != nil {
		return err
	}
	if err := e.store.writable(); err != nil {
		return err
	}
	ticked := e.lastTick.Load()
	return rollcall.CheckSetBack(time.UnixMilli(e.outages.stamp.Load()), time.UnixMilli(ticked))
}

// Compact implements [rollcall.Admin].
func (e *Engine) Compact(ctx context.Context) error {
	e.closing.RLock()
	defer e.closing.RUnlock()
	if err := e.readable(); err != nil {
		return err
	}
	if err := e.flushAll(); err != nil {
		return err
	}
	return e.store.compact(ctx)
}

// Stats implements [rollcall.Admin].
func (e *Engine) Stats(_ context.Context, v rollcall.Viewer) (rollcall.Stats, error) {
	if err := e.readable(); err != nil {
		return rollcall.Stats{}, err
	}
	st := rollcall.Stats{Engine: "local", Partitions: len(e.parts), Outages: int(e.outages.count.Load())}
	for _, o := range e.outages.all() {
		st.LatestOutages = append(st.LatestOutages, rollcall.Outage{From: time.UnixMilli(o.from).UTC(), Until: time.UnixMilli(o.until).UTC()})
	}
	var ids, presence, sessions, users, friends, days, waiting int
	for _, p := range e.parts {
		p.mu.RLock()
		st.Users += p.dir.Len()
		st.CountKnown += p.presence.seen.CountKnown()
		st.Sessions += p.sessions.order.Live()
		if v == rollcall.ViewerPublic && !p.users.invisible.IsEmpty() {
			st.CountKnown -= p.invisibleSeen(0)
			st.Sessions -= int(p.sessions.ofUsers(p.users.invisible.ToArray()).GetCardinality())
		}
		st.Friends += p.friends.edges
		st.Bans += len(p.users.bans)
		ids += p.dir.Bytes() + p.onDisk.words.Bytes() + 4*cap(p.unstored)
		presence += p.presence.seen.Bytes() + int(p.presence.gone.GetSizeInBytes())
		sessions += p.sessions.memory()
		waiting += p.announcements.bytes()
		users += p.users.memory()
		friends += p.friends.memory() + p.friendRefs.Bytes()
		days += p.days.memory()
		p.mu.RUnlock()
	}
	var visits int
	st.VisitNames, visits = e.visits.memory()
	db, release, err := e.store.use()
	if err != nil {
		return rollcall.Stats{}, err
	}
	m := db.Metrics()
	release()
	st.DiskBytes = int64(m.DiskSpaceUsage()) + e.store.journal.Bytes()
	for _, part := range []struct {
		name  string
		bytes int
	}{
		{"ids", ids},
		{"presence", presence + e.seconds.Bytes()},
		{"sessions", sessions},
		{"users", users},
		{"friends", friends},
		{"attendance", days + e.figureCache.memory()},
		{"archive read back", e.offloaded.memory()},
		{"visits", visits},
		{"events waiting", waiting},
		{"store", int(m.BlockCache.Size) + int(m.MemTable.Size)},
	} {
		st.Memory = append(st.Memory, rollcall.MemoryPart{Name: part.name, Bytes: int64(part.bytes)})
	}
	if err := e.store.writable(); err != nil {
		st.Refusing = err.Error()
	}
	return st, nil
}
