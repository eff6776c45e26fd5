package local

import (
	"bytes"
	"encoding/binary"
	"errors"
	"runtime"
	"sync"

	"github.com/rollcall/rollcall"
)

// load rebuilds memory from the store, partitions in parallel.
func (e *Engine) load() error {
	// What the partitions share.
	if err := e.initMeta(); err != nil {
		return err
	}
	if err := errors.Join(e.loadShared(), e.visits.load(), e.loadSamples(), e.loadOffloaded()); err != nil {
		return err
	}

	// The partitions, on all processors, and beside them the log of events, which none of them needs.
	var events error
	var wg sync.WaitGroup
	wg.Go(func() { events = e.events.load(uninterrupted()) })
	progress := e.opts.Progress
	if progress == nil {
		progress = func(int, int) {}
	}
	err := e.inParallel((*partition).load, progress)
	wg.Wait()
	if err := errors.Join(err, events); err != nil {
		return err
	}

	// What needs all partitions: friends are of several.
	e.outages.loaded(e.latest(0))
	if err := e.loadFriends(); err != nil {
		return err
	}
	if err := e.inParallel((*partition).findReleasable, func(int, int) {}); err != nil {
		return err
	}
	return e.loadErasures()
}

// inParallel calls fn for all partitions, on all processors. progress is told of each that is done.
func (e *Engine) inParallel(fn func(*partition) error, progress func(done, total int)) error {
	next := make(chan *partition)
	faults := make([]error, len(e.parts))
	var wg sync.WaitGroup
	var mu sync.Mutex
	done := 0
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for p := range next {
				faults[p.index] = fn(p)
				mu.Lock()
				done++
				progress(done, len(e.parts))
				mu.Unlock()
			}
		})
	}
	for _, p := range e.parts {
		next <- p
	}
	close(next)
	wg.Wait()
	return errors.Join(faults...)
}

// loadShared reads what the partitions share.
func (e *Engine) loadShared() error {
	e.keys.keys = make(map[rollcall.KeyHash]rollcall.APIKey)
	err := e.store.scan(uninterrupted(), newKey(tabKey, 1), func(k, v []byte) error {
		key, err := decodeAPIKey(string(k[1:]), v)
		if err != nil {
			return damaged("API key", k, err)
		}
		e.keys.keys[key.Hash] = key
		return nil
	})
	if err != nil {
		return err
	}
	if err := errors.Join(e.loadWebhooks(), e.loadPasses(), e.loadAudit()); err != nil {
		return err
	}
	err = e.store.scan(uninterrupted(), newKey(tabKind, 1), func(k, v []byte) error {
		if len(k) != 2 {
			return damaged("kind", k, errDamaged)
		}
		e.kinds.set(k[1], string(v))
		return nil
	})
	if err != nil {
		return err
	}
	if v, ok, err := e.store.get(metaKey(metaStamp)); err != nil || ok {
		if err != nil || len(v) != 8 {
			return damaged("stamp of life", metaKey(metaStamp), errors.Join(err, errDamaged))
		}
		e.outages.stamp.Store(int64(binary.BigEndian.Uint64(v)))
	}
	v, ok, err := e.store.get(metaKey(metaOutages))
	if err != nil || !ok {
		return err
	}
	if err := e.outages.decode(v); err != nil {
		return damaged("outages", metaKey(metaOutages), err)
	}
	return nil
}

// load rebuilds a partition.
func (p *partition) load() error {
	for _, step := range []func() error{
		p.loadIDs, p.loadUsers, p.loadBans, p.loadSessions, p.loadBeats, p.loadAnnouncements, p.loadDays, p.loadFirst, p.loadDirty, p.loadHasArchived,
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// findReleasable notes the numbers that nothing is known of: a crash has left them.
func (p *partition) findReleasable() error {
	for n := range p.dir.Limit() {
		if !p.inUse(n) && p.dir.Has(n) {
			p.releasable = append(p.releasable, n)
		}
	}
	return nil
}

func (p *partition) scan(table byte, fn func(k, v []byte) error) error {
	return p.eng.store.scan(uninterrupted(), newKey(table, 2).u8(p.index), fn)
}

// number24 reads the number a key of three bytes after the partition holds.
func number24(k []byte) uint32 {
	if len(k) < 5 {
		return 0
	}
	return uint32(k[2])<<16 | uint32(k[3])<<8 | uint32(k[4])
}

// loadIDs reads the ids of users: those stored one by one, which are newer, and the blocks.
func (p *partition) loadIDs() error {
	ids := make(map[uint32][]byte)
	err := p.scan(tabID, func(k, v []byte) error {
		ids[number24(k)] = bytes.Clone(v)
		return nil
	})
	if err != nil {
		return err
	}
	loader := p.dir.Load()
	put := func(n uint32, id []byte) error {
		p.onDisk.add(n)
		return loader.Put(n, id)
	}
	err = p.scan(tabBlock, func(k, v []byte) error {
		r := reader{b: v}
		for n := number24(k) << blockShift; n < (number24(k)+1)<<blockShift; n++ {
			id := r.bytes()
			if newer, ok := ids[n]; ok {
				id = newer
				delete(ids, n)
			}
			if len(id) == 0 {
				continue
			}
			if err := put(n, id); err != nil {
				return damaged("ids", k, err)
			}
		}
		if err := r.done(); err != nil {
			return damaged("ids", k, err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for n, id := range ids {
		if err := put(n, id); err != nil {
			return damaged("id", idKey(p.index, n), err)
		}
	}
	if n, err := loader.Done(); err != nil {
		return damaged("ids", blockKey(p.index, n>>blockShift), err)
	}
	return nil
}

func (p *partition) loadUsers() error {
	return p.scan(tabUser, func(k, v []byte) error {
		u, err := decodeUser(v)
		if err != nil {
			return damaged("user", k, err)
		}
		p.users.set(number24(k), u)
		return nil
	})
}

func (p *partition) loadBans() error {
	return p.scan(tabBan, func(k, v []byte) error {
		if len(k) != 18 {
			return damaged("ban", k, errDamaged)
		}
		b, err := decodeBan(rollcall.BanKey(k[2:]), v)
		if err != nil {
			return damaged("ban", k, err)
		}
		p.users.setBan(b)
		return nil
	})
}

// loadFriends reads the lists of all partitions, and who is named.
func (e *Engine) loadFriends() error {
	var list []edge
	owner := ref(0)
	keep := func() {
		if len(list) > 0 {
			e.parts[owner.part()].friends.set(owner.number(), list)
			list = list[:0]
		}
	}
	err := e.store.scan(uninterrupted(), newKey(tabFriend, 1), func(k, v []byte) error {
		if len(k) != 9 || len(v) != 8 || int(k[1]) >= len(e.parts) || int(k[5]) >= len(e.parts) {
			return damaged("friend", k, errDamaged)
		}
		if u := newRef(k[1], number24(k)); u != owner {
			keep()
			owner = u
		}
		friend := ref(binary.BigEndian.Uint32(k[5:]))
		list = append(list, edge{friend, int64(binary.BigEndian.Uint64(v))})
		e.countFriendRef(friend, 1)
		return nil
	})
	keep()
	return err
}
