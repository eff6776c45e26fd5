package local

import (
	"encoding/binary"
	"errors"
	"runtime"
	"sync"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/recency"
)

// load rebuilds memory from the store, partitions in parallel.
func (e *Engine) load() error {
	if err := e.initMeta(); err != nil {
		return err
	}
	if err := errors.Join(e.loadShared(), e.events.load(uninterrupted{}), e.visits.load(), e.loadOffloaded()); err != nil {
		return err
	}
	next := make(chan *partition)
	faults := make([]error, len(e.parts))
	var wg sync.WaitGroup
	var mu sync.Mutex
	done := 0
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for p := range next {
				faults[p.index] = p.load()
				mu.Lock()
				done++
				if e.opts.Progress != nil {
					e.opts.Progress(done, len(e.parts))
				}
				mu.Unlock()
			}
		})
	}
	for _, p := range e.parts {
		next <- p
	}
	close(next)
	wg.Wait()
	if err := errors.Join(faults...); err != nil {
		return err
	}
	e.outages.loaded(e.latest(0))
	if err := e.loadFriends(); err != nil {
		return err
	}
	for _, p := range e.parts {
		for n := range p.dir.Limit() {
			if p.dir.Has(n) && !p.needs(n) {
				p.idle = append(p.idle, n)
			}
		}
	}
	return e.loadErasures()
}

// loadShared reads what the partitions share.
func (e *Engine) loadShared() error {
	e.keys.keys = make(map[rollcall.KeyHash]rollcall.APIKey)
	err := e.store.scan(uninterrupted{}, newKey(tabKey, 1), func(k, v []byte) error {
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
	err = e.store.scan(uninterrupted{}, newKey(tabKind, 1), func(k, v []byte) error {
		if len(k) != 2 {
			return damaged("kind", k, errDamaged)
		}
		e.kinds.enter(k[1], string(v))
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
		p.loadIDs, p.loadUsers, p.loadBans, p.loadSessions, p.loadBeats, p.loadTold, p.loadDays, p.loadFirst, p.loadDirty, p.loadHasArchived,
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

func (p *partition) scan(table byte, fn func(k, v []byte) error) error {
	return p.eng.store.scan(uninterrupted{}, newKey(table, 2).u8(p.index), fn)
}

// number24 reads the number a key of three bytes after the partition holds.
func number24(k []byte) uint32 {
	if len(k) < 5 {
		return 0
	}
	return uint32(k[2])<<16 | uint32(k[3])<<8 | uint32(k[4])
}

func (p *partition) loadIDs() error {
	ids := make(map[uint32]string) // newer than their block
	err := p.scan(tabID, func(k, v []byte) error {
		ids[number24(k)] = string(v)
		return nil
	})
	if err != nil {
		return err
	}
	insert := func(n uint32, id string) error {
		p.onDisk.add(n)
		return p.dir.InsertAt(n, rollcall.HashUser(id), id)
	}
	err = p.scan(tabBlock, func(k, v []byte) error {
		r := reader{b: v}
		for n := number24(k) << blockShift; n < (number24(k)+1)<<blockShift; n++ {
			id := r.string()
			if newer, ok := ids[n]; ok {
				id = newer
				delete(ids, n)
			}
			if id == "" {
				continue
			}
			if err := insert(n, id); err != nil {
				return damaged("ids", k, err)
			}
		}
		if err := r.done(); err != nil {
			return damaged("ids", k, err)
		}
		return nil
	})
	for n, id := range ids {
		err = errors.Join(err, insert(n, id))
	}
	p.dir.Seal()
	return err
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

// loadSessions reads the sessions in the order of their ids, then what touched
// them since.
func (p *partition) loadSessions() error {
	s := &p.sessions
	err := p.scan(tabSession, func(k, v []byte) error {
		if len(k) != 18 {
			return damaged("session", k, errDamaged)
		}
		st, err := decodeSession(rollcall.SessionID(k[2:]), v)
		if err != nil {
			return damaged("session", k, err)
		}
		n, ok := p.find(st.User)
		if !ok {
			return damaged("session: its user has no number", k, errDamaged)
		}
		s.put(&st, n)
		p.clock = max(p.clock, st.LoginAt.UnixMilli())
		return nil
	})
	if err != nil {
		return err
	}
	used := s.limit
	for _, table := range [...]byte{tabTouched, tabTouch} {
		err := p.scan(table, func(k, v []byte) error { return p.loadTouches(k, v, &used) })
		if err != nil {
			return err
		}
	}
	s.limit = used
	s.finishLoad()
	return nil
}

// loadTouches reads a record of touches, and notes the highest slot that one names,
// and the next: what an import brings takes none of those.
func (p *partition) loadTouches(k, v []byte, used *uint32) error {
	s := &p.sessions
	s.noted = true
	if k[0] == tabTouch && len(k) == 10 {
		s.touches = binary.BigEndian.Uint64(k[2:])
	}
	r := reader{b: v}
	for len(r.b) > 0 {
		named, at := r.uint(), r.int()
		if named >= 1<<24 {
			return damaged("touches", k, errDamaged)
		}
		slot := uint32(named)
		*used = max(*used, slot+1)
		if k[0] == tabTouch {
			s.written++
		}
		if slot < s.limit && s.taken(slot) && at > s.seen.Get(slot) {
			s.seen.Set(slot, at)
			s.reorder(slot)
		}
		p.clock = max(p.clock, at)
	}
	if err := r.done(); err != nil {
		return damaged("touches", k, err)
	}
	return nil
}

// taken reports whether a slot is that of a session that has been read.
func (s *sessions) taken(slot uint32) bool {
	pos := s.pos.Get(slot)
	return pos < s.order.Len() && s.order.IsLive(pos) && s.order.Slot(pos) == slot
}

// finishLoad rebuilds, once all sessions are in, what depends on their last
// touch, and the free slots.
func (s *sessions) finishLoad() {
	var slots []uint32
	used := roaring.New()
	for pos, ok := s.order.Next(0); ok; pos, ok = s.order.Next(pos + 1) {
		slots = append(slots, s.order.Slot(pos))
		used.Add(s.order.Slot(pos))
	}
	sortBy(slots, func(slot uint32) int64 { return s.seen.Get(slot) })
	for _, slot := range slots {
		s.enqueue(slot)
		s.flushed = max(s.flushed, s.seen.Get(slot))
	}
	for slot := s.limit; slot > 0; slot-- {
		if !used.Contains(slot - 1) {
			s.freeSlot(slot - 1)
		}
	}
}

// loadBeats takes for every number the latest second of all records.
func (p *partition) loadBeats() error {
	latest := make([]uint32, p.dir.Limit())
	note := func(n, sec uint32) {
		if n < uint32(len(latest)) && p.dir.Has(n) {
			latest[n] = max(latest[n], sec)
		}
	}
	err := p.scan(tabSeen, func(k, v []byte) error {
		if len(v) != 4*seenLen {
			return damaged("last-seen times", k, errDamaged)
		}
		for i := range uint32(seenLen) {
			note(number24(k)<<seenShift|i, binary.BigEndian.Uint32(v[4*i:]))
		}
		return nil
	})
	if err != nil {
		return err
	}
	err = p.scan(tabBeat, func(k, v []byte) error {
		if len(k) != 6 {
			return damaged("beats", k, errDamaged)
		}
		sec, n := binary.BigEndian.Uint32(k[2:]), uint32(0)
		for r := (reader{b: v}); len(r.b) > 0; p.presence.written++ {
			n += uint32(r.uint())
			if r.err != nil {
				return damaged("beats", k, r.err)
			}
			note(n, sec)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return p.applyLatestBeats(latest)
}

func (p *partition) applyLatestBeats(latest []uint32) error {
	s := &p.sessions
	for _, sec := range latest { // what only sessions know of was never flushed
		p.presence.flushed = max(p.presence.flushed, sec)
	}
	err := p.scan(tabHeard, func(k, v []byte) error {
		n := number24(k)
		if len(v) == 4 && n < uint32(len(latest)) && p.dir.Has(n) {
			latest[n] = max(latest[n], binary.BigEndian.Uint32(v))
		}
		p.told.heard = append(p.told.heard, n) // the next flush removes it, also if the number is nobody's
		return nil
	})
	if err != nil {
		return err
	}
	for pos, ok := s.order.Next(0); ok; pos, ok = s.order.Next(pos + 1) {
		slot := s.order.Slot(pos)
		n := s.user.Get(slot)
		latest[n] = max(latest[n], secOf(s.seen.Get(slot)))
	}
	err = p.scan(tabForgot, func(k, v []byte) error {
		p.presence.forgot.Add(number24(k))
		if n := number24(k); len(v) == 4 && n < uint32(len(latest)) && latest[n] <= binary.BigEndian.Uint32(v) {
			latest[n] = 0
		}
		return nil
	})
	if err != nil {
		return err
	}
	err = p.scan(tabGone, func(k, _ []byte) error {
		if n := number24(k); n < uint32(len(latest)) && latest[n] != 0 && !p.loggedInSince(n) {
			p.presence.gone.Add(n)
		} else { // their last-seen time was lost in a crash, or that they came back: the mark goes with the next flush
			p.presence.ungone = append(p.presence.ungone, n)
		}
		return nil
	})
	if err != nil {
		return err
	}
	newest := uint32(0)
	for n, sec := range latest {
		if sec != 0 {
			p.presence.seen.Put(uint32(n), sec, p.presence.gone.Contains(uint32(n)))
			newest = max(newest, sec)
		}
	}
	var t recency.Tally
	p.presence.seen.Rebuild(&t)
	t.Flush(&p.eng.seconds)
	p.clock = max(p.clock, int64(newest)*1000)
	return nil
}

// loggedInSince reports whether a user who had gone has logged in since: who goes has
// no session left. A beat before the login may have taken the mark away, which a
// crash brought back.
func (p *partition) loggedInSince(n uint32) (has bool) {
	p.sessions.ofUser.each(n, func(uint32) bool {
		has = true
		return false
	})
	return has
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
	err := e.store.scan(uninterrupted{}, newKey(tabFriend, 1), func(k, v []byte) error {
		if len(k) != 9 || len(v) != 8 || int(k[1]) >= len(e.parts) || int(k[5]) >= len(e.parts) {
			return damaged("friend", k, errDamaged)
		}
		if u := newRef(k[1], number24(k)); u != owner {
			keep()
			owner = u
		}
		friend := ref(binary.BigEndian.Uint32(k[5:]))
		list = append(list, edge{friend, int64(binary.BigEndian.Uint64(v))})
		e.named(friend, 1)
		return nil
	})
	keep()
	return err
}
