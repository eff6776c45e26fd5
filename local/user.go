package local

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/arena"
	"github.com/rollcall/rollcall/internal/column"
	"github.com/rollcall/rollcall/internal/enginekit"
)

// userTable holds the settings of users, and the bans.
type userTable struct {
	record    column.Column[arena.Handle]
	texts     arena.Arena
	records   int
	invisible *roaring.Bitmap
	ofKind    map[string]int // users whose record names the kind
	bans      map[rollcall.BanKey]rollcall.Ban
	banEnds   banEnds
}

// userRecord is a user's settings. frozen is the last-seen second that the public is shown
// while the user is invisible.
type userRecord struct {
	kind, name string
	invisible  bool
	frozen     uint32
}

func (t *userTable) init() {
	t.invisible = roaring.New()
	t.ofKind = make(map[string]int)
	t.bans = make(map[rollcall.BanKey]rollcall.Ban)
	t.banEnds.place = make(map[rollcall.BanKey]int)
}

func (r *userRecord) encode() []byte {
	w := writer{}
	w.string(r.kind)
	w.string(r.name)
	if r.invisible {
		w.u8(1)
	} else {
		w.u8(0)
	}
	w.uint(uint64(r.frozen))
	return w.b
}

func decodeUser(b []byte) (userRecord, error) {
	r := reader{b: b}
	u := userRecord{kind: r.string(), name: r.string(), invisible: r.u8() == 1, frozen: uint32(r.uint())}
	return u, r.done()
}

func (t *userTable) has(n uint32) bool { return t.record.Get(n) != 0 }

func (t *userTable) get(n uint32) userRecord {
	h := t.record.Get(n)
	if h == 0 {
		return userRecord{}
	}
	u, _ := decodeUser(t.texts.Get(h)) // our own bytes, in memory
	return u
}

func (t *userTable) set(n uint32, u userRecord) {
	t.drop(n)
	t.record.Set(n, t.texts.Put(u.encode()))
	t.records++
	if u.kind != "" {
		t.ofKind[u.kind]++
	}
	if u.invisible {
		t.invisible.Add(n)
	}
}

func (t *userTable) drop(n uint32) {
	if h := t.record.Get(n); h != 0 {
		if kind := t.get(n).kind; kind != "" {
			if t.ofKind[kind]--; t.ofKind[kind] == 0 {
				delete(t.ofKind, kind)
			}
		}
		t.texts.Free(h)
		t.record.Set(n, 0)
		t.records--
	}
	t.invisible.Remove(n)
}

func (t *userTable) banOf(k rollcall.BanKey, now int64) (rollcall.Ban, bool) {
	b, ok := t.bans[k]
	return b, ok && now < b.Until.UnixMilli()
}

func (t *userTable) memory() int {
	return t.record.Bytes() + t.texts.Bytes() + int(t.invisible.GetSizeInBytes()) + 320*len(t.bans)
}

// User implements [rollcall.Users].
func (e *Engine) User(_ context.Context, user string) (rollcall.User, error) {
	if err := e.readable(); err != nil {
		return rollcall.User{}, err
	}
	rec := e.recordOf(user)
	return rec.user(user), nil
}

// KindsOf implements [rollcall.Users].
func (e *Engine) KindsOf(_ context.Context, users []string) ([]string, error) {
	if err := e.readable(); err != nil {
		return nil, err
	}
	out := make([]string, len(users))
	for i, user := range users {
		rec := e.recordOf(user)
		out[i] = rec.user(user).Kind
	}
	return out, nil
}

// recordOf returns a user's record, empty if there is none.
func (e *Engine) recordOf(user string) userRecord {
	p := e.partitionOf(user)
	p.mu.RLock()
	defer p.mu.RUnlock()
	if n, ok := p.find(user); ok {
		return p.users.get(n)
	}
	return userRecord{}
}

func (r *userRecord) user(id string) rollcall.User {
	return rollcall.User{ID: id, Kind: cmp.Or(r.kind, rollcall.DefaultKind), Name: r.name, Invisible: r.invisible}
}

// PutUser implements [rollcall.Users].
func (e *Engine) PutUser(_ context.Context, at time.Time, user string, patch rollcall.UserPatch) (rollcall.User, error) {
	now, err := e.enterWrite(at)
	if err != nil {
		return rollcall.User{}, err
	}
	if patch.Kind != nil {
		release, err := e.kinds.reserve(*patch.Kind)
		if err != nil {
			return rollcall.User{}, err
		}
		defer release()
	}
	p := e.partitionOf(user)
	p.mu.Lock()
	tx := p.newTx()
	rec, err := p.putUser(tx, p.advance(now), user, patch)
	if err != nil {
		tx.freeNewNumbers()
	}
	p.mu.Unlock()
	if err != nil {
		return rollcall.User{}, tx.abort(err)
	}
	return rec.user(user), tx.wait()
}

// putUser is PutUser with the partition locked.
func (p *partition) putUser(tx *tx, now int64, user string, patch rollcall.UserPatch) (userRecord, error) {
	n, known := p.find(user)
	var old userRecord
	if known {
		old = p.users.get(n)
	}
	rec := old
	if patch.Kind != nil {
		rec.kind = *patch.Kind
	}
	if patch.Name != nil {
		rec.name = *patch.Name
	}
	if patch.Invisible != nil {
		rec.invisible = *patch.Invisible
	}
	if rec.invisible && !old.invisible && known {
		rec.frozen = p.presence.seen.Last(n)
	}

	// A record that says no more than the defaults is not made.
	if rec == old {
		return rec, tx.apply()
	}

	n, err := tx.ensureNumber(user)
	if err != nil {
		return rec, err
	}
	if rec.kind != "" {
		if _, err := p.eng.kinds.index(rec.kind); err != nil {
			return rec, err
		}
	}
	if err := tx.batch.Set(userKey(p.index, n), rec.encode(), nil); err != nil {
		return rec, err
	}

	// To the public, who turns invisible goes offline.
	if rec.invisible != old.invisible {
		if err := tx.announceVisibility(n, now, rec.invisible); err != nil {
			return rec, err
		}
	}
	if err := tx.apply(); err != nil {
		return rec, err
	}
	p.removeOverdue(tx)
	p.sessions.compactStep()
	p.idStored(n)
	p.users.set(n, rec)
	return rec, nil
}

// announceVisibility appends what the public is told of a user who turns invisible, or
// visible again. A logged out user in the leave grace is announced offline at once, while
// the audience is still the one that was told they are online.
func (tx *tx) announceVisibility(n uint32, now int64, invisible bool) error {
	online, err := tx.appendOverdue(n, now)
	if err != nil || !online {
		return err
	}
	if _, leaving := tx.p.announcements.logoutGraces.of(n); leaving {
		tx.appendPresence(n, now, true)
		return tx.batch.Set(goneKey(tx.p.index, n), nil, nil)
	}
	if tx.p.eng.settings.PresenceEvents {
		e := tx.p.eventOf(waitingEvent{at: now, n: n, offline: invisible, audience: enginekit.ForPublic})
		tx.events = append(tx.events, e)
	}
	return nil
}

// Unban implements [rollcall.Users].
func (e *Engine) Unban(_ context.Context, at time.Time, user string, k rollcall.BanKey) (bool, error) {
	now, err := e.enterWrite(at)
	if err != nil {
		return false, err
	}
	p := e.partitionOf(user)
	if err := e.dropDoubles(p, k); err != nil { // durable with what follows
		return false, err
	}

	// Without a ban there is nothing to do, but a ban may just have been lifted: wait for that.
	p.mu.Lock()
	_, found := p.users.banOf(k, p.advance(now))
	if !found {
		p.mu.Unlock()
		return false, p.newTx().wait()
	}
	tx := p.newTx()
	err = p.appendOverdueOf(tx, nil, []rollcall.Ban{{User: user}}, p.clock)
	tx.appendEvent(rollcall.UserUnbanned, p.clock, user, rollcall.Event{})
	err = cmp.Or(err, tx.batch.Delete(banKey(p.index, k), nil))
	if err == nil {
		err = tx.apply()
	}
	if err == nil {
		p.users.dropBan(k)
		p.removeOverdue(tx)
		p.sessions.compactStep()
	}
	p.mu.Unlock()
	if err != nil {
		return false, tx.abort(err)
	}
	return true, tx.wait()
}

// BanOf implements [rollcall.Users].
func (e *Engine) BanOf(_ context.Context, at time.Time, user string, k rollcall.BanKey) (rollcall.Ban, bool, error) {
	now, err := e.enter(at)
	if err != nil {
		return rollcall.Ban{}, false, err
	}
	p := e.partitionOf(user)
	p.mu.RLock()
	defer p.mu.RUnlock()
	b, ok := p.users.banOf(k, p.latest(now))
	if !ok {
		return rollcall.Ban{}, false, nil
	}
	return b, true, nil
}

// Bans implements [rollcall.Users].
func (e *Engine) Bans(_ context.Context, at time.Time, r rollcall.PageRequest) (rollcall.Page[rollcall.Ban], error) {
	now, err := e.enter(at)
	if err != nil {
		return rollcall.Page[rollcall.Ban]{}, err
	}
	var bans []rollcall.Ban
	e.rlockAll()
	for _, p := range e.parts {
		for k := range p.users.bans {
			if b, ok := p.users.banOf(k, p.latest(now)); ok {
				bans = append(bans, b)
			}
		}
	}
	e.runlockAll()
	slices.SortFunc(bans, func(a, b rollcall.Ban) int { return strings.Compare(enginekit.BanPlace(a), enginekit.BanPlace(b)) })
	return enginekit.PageOf(oncePerKey(bans), r, enginekit.BanPlace), nil
}

// oncePerKey leaves out copies of a ban. The ban of an erased user has no name, so an
// import enters it in every partition in which the user may be.
func oncePerKey(bans []rollcall.Ban) []rollcall.Ban {
	named := make(map[rollcall.BanKey]bool)
	for i := len(bans) - 1; i >= 0 && bans[i].User != ""; i-- {
		named[bans[i].Key] = true
	}
	return slices.DeleteFunc(bans, func(b rollcall.Ban) bool {
		double := b.User == "" && named[b.Key]
		named[b.Key] = true
		return double
	})
}

// dropDoubles removes the copies of a ban from all partitions but one.
func (e *Engine) dropDoubles(but *partition, k rollcall.BanKey) error {
	for _, p := range e.parts {
		if p == but {
			continue
		}
		if err := p.dropBan(k); err != nil {
			return err
		}
	}
	return nil
}

func (p *partition) dropBan(k rollcall.BanKey) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, ok := p.users.bans[k]; !ok {
		return nil
	}
	b := p.eng.store.newBatch()
	err := b.Delete(banKey(p.index, k), nil)
	if err == nil {
		err = p.eng.store.queue(b)
	}
	if err == nil {
		p.users.dropBan(k)
	}
	return errors.Join(err, b.Close())
}
