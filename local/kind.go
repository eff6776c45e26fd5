package local

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/rollcall/rollcall"
)

// kindTable numbers the kinds of users of an engine. The default kind always has room.
type kindTable struct {
	store *store
	// reserved is held by a command that may make a kind, from before it locks a
	// partition until the kind is made, so that the room it found is still there.
	reserved sync.Mutex

	mu    sync.RWMutex
	names []string // by index; "" for one that was removed
}

// has reports whether a kind has a number, or is the default kind.
func (t *kindTable) has(kind string) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return kind == rollcall.DefaultKind || slices.Contains(t.names, kind)
}

// reserve refuses kinds that would be too many, before a command changes anything. The
// command makes the others with index, when nothing else can refuse it, and then calls
// release. reserve is called without any lock.
func (t *kindTable) reserve(kinds ...string) (release func(), err error) {
	isNew := func(kind string) bool { return kind != "" && !t.has(kind) }
	if !slices.ContainsFunc(kinds, isNew) {
		return func() {}, nil
	}
	t.reserved.Lock()
	wanted := make(map[string]bool)
	for _, kind := range kinds {
		if isNew(kind) {
			wanted[kind] = true
			if t.free() < len(wanted) {
				t.reserved.Unlock()
				return nil, tooManyKinds(kind)
			}
		}
	}
	return t.reserved.Unlock, nil
}

func tooManyKinds(kind string) error {
	return rollcall.Invalid("kind", "there are %d kinds already, the limit; %q would be one more", rollcall.MaxKinds, kind)
}

// free returns how many kinds may still be made.
func (t *kindTable) free() int {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.freeLocked()
}

func (t *kindTable) freeLocked() int {
	left := rollcall.MaxKinds - 1 // one is the default kind's
	for _, name := range t.names {
		if name != "" && name != rollcall.DefaultKind {
			left--
		}
	}
	return left
}

func kindKey(i uint8) key { return newKey(tabKind, 2).u8(i) }

// lookup returns the number of a kind.
func (t *kindTable) lookup(kind string) (uint8, bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	i := slices.Index(t.names, kind)
	return uint8(max(i, 0)), i >= 0 && kind != ""
}

// index returns the number of a kind. A new kind gets the number of a removed one, or the
// next. The store has it before any record refers to it.
func (t *kindTable) index(kind string) (uint8, error) {
	if i, ok := t.lookup(kind); ok {
		return i, nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if i := slices.Index(t.names, kind); i >= 0 {
		return uint8(i), nil
	}
	if kind != rollcall.DefaultKind && t.freeLocked() < 1 {
		return 0, tooManyKinds(kind)
	}
	i := slices.Index(t.names, "")
	if i < 0 {
		i = len(t.names)
	}
	if err := t.store.put(kindKey(uint8(i)), []byte(kind)); err != nil {
		return 0, err
	}
	t.set(uint8(i), kind)
	return uint8(i), nil
}

// set gives a kind a number.
func (t *kindTable) set(i uint8, kind string) {
	for len(t.names) <= int(i) {
		t.names = append(t.names, "")
	}
	t.names[i] = kind
}

// of returns the number of a kind, or of all kinds if it is "".
func (t *kindTable) of(kind string) []uint8 {
	t.mu.RLock()
	defer t.mu.RUnlock()
	var out []uint8
	for i, name := range t.names {
		if name != "" && (kind == "" || kind == name) {
			out = append(out, uint8(i))
		}
	}
	return out
}

// all returns the kinds by number, "" for one that was removed.
func (t *kindTable) all() []string {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return slices.Clone(t.names)
}

// Kinds implements [rollcall.Kinds].
func (e *Engine) Kinds(context.Context) ([]rollcall.KindUse, error) {
	if err := e.readable(); err != nil {
		return nil, err
	}
	e.rlockAll()
	defer e.runlockAll()
	var out []rollcall.KindUse
	names := e.kinds.all()
	if !slices.Contains(names, rollcall.DefaultKind) {
		names = append(names, rollcall.DefaultKind)
	}
	for _, kind := range names {
		if kind != "" {
			out = append(out, e.kindUse(kind))
		}
	}
	slices.SortFunc(out, func(a, b rollcall.KindUse) int { return strings.Compare(a.Kind, b.Kind) })
	return out, nil
}

// kindUse counts the users, sessions and days of a kind, with all partitions locked.
func (e *Engine) kindUse(kind string) rollcall.KindUse {
	use := rollcall.KindUse{Kind: kind}
	days := make(map[int32]bool)
	index, numbered := e.kinds.lookup(kind)
	for _, p := range e.parts {
		use.Users += p.users.ofKind[kind]
		use.Sessions += int(p.sessions.withValue(p.sessions.byKind, kind).GetCardinality())
		for id, set := range p.days.sets {
			if numbered && id.kind == index && !set.IsEmpty() {
				days[id.day] = true
			}
		}
	}
	if numbered {
		for _, id := range e.offloaded.inRange([]uint8{index}, math.MinInt32, math.MaxInt32) {
			days[id.day] = true
		}
	}
	use.Days = len(days)
	return use
}

// DeleteKind implements [rollcall.Kinds].
func (e *Engine) DeleteKind(_ context.Context, kind string) error {
	if err := e.writable(); err != nil {
		return err
	}
	e.kinds.reserved.Lock()
	defer e.kinds.reserved.Unlock()
	for _, p := range e.parts {
		p.mu.Lock()
	}
	err := e.deleteKind(kind)
	for _, p := range e.parts {
		p.mu.Unlock()
	}
	if err != nil {
		return err
	}
	return e.store.syncAll()
}

// deleteKind removes a kind that nothing is of. All partitions are locked, so no command
// has its number in hand. Figures and notes under the number go too, as another kind may
// get it.
func (e *Engine) deleteKind(kind string) error {
	index, ok := e.kinds.lookup(kind)
	switch use := e.kindUse(kind); {
	case kind == rollcall.DefaultKind:
		return &rollcall.Error{Code: rollcall.CodeConflict, Field: "kind", Detail: "this kind is always there"}
	case !ok:
		return rollcall.NotFound("kind")
	case !use.Unused():
		return rollcall.KindInUseError(use)
	}

	// The archive must know of all changes before their notes go.
	b := e.store.newBatch()
	err := b.Delete(kindKey(index), nil)
	for _, p := range e.parts {
		if e.settings.Archive.Configured() && p.days.hasDirtyKind(index) {
			return errors.Join(b.Close(), &rollcall.Error{
				Code: rollcall.CodeConflict, Field: "kind",
				Detail: "marks of it were taken back, and the archive has not been told yet: run the archive first",
			})
		}
		prefix := newKey(tabDirty, 3).u8(p.index).u8(index)
		err = errors.Join(err, b.DeleteRange(prefix, prefix.after(), nil))
	}
	figures := newKey(tabFigures, 2).u8(index)
	if err = errors.Join(err, b.DeleteRange(figures, figures.after(), nil)); err == nil {
		err = e.store.queue(b)
	}
	if err := errors.Join(err, b.Close()); err != nil {
		return err
	}

	// The store does not have it any more: follow in memory.
	for _, p := range e.parts {
		p.days.forgetKind(index)
	}
	e.figureCache.forgetKind(index)
	e.kinds.mu.Lock()
	defer e.kinds.mu.Unlock()
	e.kinds.names[index] = ""
	return nil
}

// hasDirtyKind reports whether maps of a kind have changed since they were archived.
func (t *dayTable) hasDirtyKind(kind uint8) bool {
	for m := range t.dirty {
		if m.kind == kind {
			return true
		}
	}
	return false
}

// forgetKind removes the notes about a kind that no mark is of.
func (t *dayTable) forgetKind(kind uint8) {
	for m := range t.dirty {
		if m.kind == kind {
			delete(t.dirty, m)
		}
	}
	for id := range t.sets {
		if id.kind == kind {
			delete(t.sets, id)
		}
	}
}

// forgetKind removes the figures of a kind.
func (c *figureCache) forgetKind(kind uint8) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.invalidations++ // those being made are not kept
	for id := range c.figures {
		if id.kind == kind {
			delete(c.figures, id)
		}
	}
}
