package local

import (
	"context"
	"errors"
	"hash/maphash"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/axiomhq/hyperloglog"
	"github.com/cockroachdb/pebble/v2"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/enginekit"
)

// visits holds the names, and for each the sketch of its newest hour. Older hours are in
// the store alone.
type visits struct {
	store  *store
	zone   *time.Location
	seed   maphash.Seed
	latest atomic.Int64 // ms: the latest time seen, behind which time does not go back

	mu          sync.RWMutex // held for reading to use a name, for writing to add or remove one
	names       map[string]*visitedName
	forgottenTo int64 // s: the hours before this one have been removed
}

// visitedName is one name.
type visitedName struct {
	name   string
	oldest int64 // s: no hour in the store began earlier

	mu         sync.Mutex
	hour       int64               // s: when the newest hour began
	sketch     *hyperloglog.Sketch // of that hour; nil while it is not needed
	unstored   bool                // visitors were noted since the sketch was stored
	storedHash uint64              // hash of the sketch as it was last stored; 0 if it was not
}

func newVisits(s *store) visits {
	return visits{store: s, zone: time.UTC, seed: maphash.MakeSeed(), names: make(map[string]*visitedName)}
}

// hourAt advances the time to ms and returns when its civil hour began, in seconds.
func (v *visits) hourAt(ms int64) int64 {
	latest := v.latest.Load()
	for ms > latest && !v.latest.CompareAndSwap(latest, ms) {
		latest = v.latest.Load()
	}
	start, _ := rollcall.HourOf(enginekit.TimeOf(max(ms, latest)), v.zone)
	return start.Unix()
}

// Visit implements [rollcall.Visits].
func (e *Engine) Visit(_ context.Context, at time.Time, name string, visitors []string) (noted string, err error) {
	now, err := e.enterWrite(at)
	if err != nil || len(visitors) == 0 {
		return name, err
	}
	v := &e.visits
	hour := v.hourAt(now)
	v.mu.RLock()
	if one := v.names[name]; one != nil {
		defer v.mu.RUnlock()
		return name, v.note(one, hour, visitors)
	}
	v.mu.RUnlock()

	v.mu.Lock()
	defer v.mu.Unlock()
	if v.names[name] == nil && v.full() {
		name = rollcall.VisitsOther
	}
	one := v.names[name]
	if one == nil {
		one = &visitedName{name: name, oldest: hour, hour: hour}
	}
	if err := v.note(one, hour, visitors); err != nil {
		return name, err
	}
	v.names[name] = one
	return name, nil
}

// full reports whether there is no room for another name.
func (v *visits) full() bool {
	n := len(v.names)
	if v.names[rollcall.VisitsOther] != nil {
		n--
	}
	return n >= rollcall.MaxVisitNames
}

// note adds visitors to a name's sketch of an hour.
func (v *visits) note(one *visitedName, hour int64, visitors []string) error {
	one.mu.Lock()
	defer one.mu.Unlock()
	if err := v.ensureHour(one, hour); err != nil {
		return err
	}
	for _, visitor := range visitors {
		one.sketch.Insert([]byte(visitor))
	}
	one.unstored = true
	return nil
}

// ensureHour makes sure that a name has the sketch of an hour in memory, or of a later one
// if another visit was faster.
func (v *visits) ensureHour(one *visitedName, hour int64) error {
	// The hour is over: its sketch is not written again after this.
	if hour > one.hour {
		if err := v.put(one); err != nil {
			return err
		}
		one.hour, one.sketch, one.storedHash = hour, nil, 0
	}
	if one.sketch != nil {
		return nil
	}
	k := visitKey(one.name, one.hour)
	b, ok, err := v.store.get(k)
	if err != nil {
		return err
	}
	if !ok {
		one.sketch = hyperloglog.New14()
		return nil
	}
	sketch, err := decodeSketch(b)
	if err != nil {
		return damaged("visits", k, err)
	}
	one.sketch = sketch
	return nil
}

// put stores a name's sketch if it has changed. It is durable with the next sync.
func (v *visits) put(one *visitedName) error {
	if !one.unstored {
		return nil
	}
	b, err := encodeSketch(one.sketch)
	if err != nil {
		return err
	}

	// Visitors who were noted before change nothing: then there is nothing to write.
	if hash := maphash.Bytes(v.seed, b); hash != one.storedHash {
		if err := v.store.put(visitKey(one.name, one.hour), b); err != nil {
			return err
		}
		one.storedHash = hash
	}
	one.unstored = false
	return nil
}

// flush stores what was noted since the last flush, and frees the sketches of hours that
// are over.
func (v *visits) flush() error {
	now := v.hourAt(0)
	v.mu.RLock()
	defer v.mu.RUnlock()
	for _, one := range v.names {
		one.mu.Lock()
		err := v.put(one)
		if err == nil && one.hour < now {
			one.sketch = nil
		}
		one.mu.Unlock()
		if err != nil {
			return err
		}
	}
	return nil
}

// forgetBefore removes the hours that ended by an instant, and the names without any other.
func (v *visits) forgetBefore(by time.Time) error {
	start, _ := rollcall.HourOf(by, v.zone)
	line := start.Unix()
	v.mu.Lock()
	defer v.mu.Unlock()
	if line <= v.forgottenTo {
		return nil
	}
	b := v.store.newBatch()
	for _, one := range v.names {
		if one.oldest >= line {
			continue
		}
		if err := b.DeleteRange(visitKey(one.name, 0), visitKey(one.name, line), nil); err != nil {
			return errors.Join(err, b.Close())
		}
	}
	if !b.Empty() {
		if err := v.store.queue(b); err != nil {
			return errors.Join(err, b.Close())
		}
	}
	maps.DeleteFunc(v.names, func(_ string, one *visitedName) bool {
		one.oldest = max(one.oldest, line)
		return one.hour < line
	})
	v.forgottenTo = line
	return b.Close()
}

// VisitNames implements [rollcall.Visits].
func (e *Engine) VisitNames(context.Context) ([]rollcall.VisitName, error) {
	if err := e.readable(); err != nil {
		return nil, err
	}
	e.visits.mu.RLock()
	defer e.visits.mu.RUnlock()
	out := make([]rollcall.VisitName, 0, len(e.visits.names))
	for _, name := range slices.Sorted(maps.Keys(e.visits.names)) {
		one := e.visits.names[name]
		one.mu.Lock()
		out = append(out, rollcall.VisitName{Name: name, Last: time.Unix(one.hour, 0).UTC()})
		one.mu.Unlock()
	}
	return out, nil
}

// DeleteVisitName implements [rollcall.Visits].
func (e *Engine) DeleteVisitName(_ context.Context, name string) error {
	if err := e.writable(); err != nil {
		return err
	}
	if err := e.visits.removeName(name); err != nil {
		return err
	}
	return e.store.syncAll()
}

// removeName removes a name and all its hours. No flush is under way meanwhile, and later
// ones do not find the name.
func (v *visits) removeName(name string) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.names[name] == nil {
		return rollcall.NotFound("name")
	}
	b := v.store.newBatch()
	hours := visitPrefix(name)
	err := b.DeleteRange(hours, hours.after(), nil)
	if err == nil {
		err = v.store.queue(b)
	}
	if err = errors.Join(err, b.Close()); err == nil {
		delete(v.names, name)
	}
	return err
}

// memory returns the number of names, and the memory that they take at most: a sketch of
// few visitors takes less.
func (v *visits) memory() (names, bytes int) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	for name, one := range v.names {
		bytes += len(name)
		one.mu.Lock()
		if one.sketch != nil {
			bytes += sketchLen
		}
		one.mu.Unlock()
	}
	return len(v.names), bytes
}

// load finds the names in the store, and the first and last hour of each.
func (v *visits) load() error {
	db, release, err := v.store.use()
	if err != nil {
		return err
	}
	defer release()
	table := newKey(tabVisit, 1)
	it, err := db.NewIter(&pebble.IterOptions{LowerBound: table, UpperBound: table.after()})
	if err != nil {
		return storeError(err)
	}
	for ok := it.First(); ok; {
		name, oldest, fine := visitOfKey(it.Key())
		if !fine {
			err = damaged("visits", it.Key(), errDamaged)
			break
		}
		end := visitPrefix(name).after()
		newest := oldest
		if it.SeekLT(end) {
			_, newest, _ = visitOfKey(it.Key())
		}
		v.names[name] = &visitedName{name: name, oldest: oldest, hour: newest}
		v.latest.Store(max(v.latest.Load(), newest*1000))
		ok = it.SeekGE(end)
	}
	return errors.Join(err, storeError(it.Error()), storeError(it.Close()))
}
