package local

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/cockroachdb/pebble/v2"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/dayset"
	"github.com/rollcall/rollcall/internal/enginekit"
)

// assumeTheWorst makes sure that no answer is wrong because of a record that cannot be read. The
// record might have said that a user left, was forgotten, or turned invisible, that a map is
// dirty, or that a day was offloaded. So all of these are assumed.
func (r *repair) assumeTheWorst() error {
	m := r.mend
	if len(m.lost) == 0 {
		return r.renewMeta()
	}
	if err := m.flush(); err != nil {
		return err
	}
	c := newChecker(r.target, Report{})
	c.allIDs()
	live, err := r.liveUsers(c.byID)
	if err != nil {
		return err
	}

	// Users without a session, whose records of leaving or being forgotten may be lost.
	now := binary.BigEndian.AppendUint32(nil, secOf(m.now))
	for of := range c.ids {
		if live[of] || !m.lost.has(forgetKey(of.part(), of.number())) && !m.lost.has(goneKey(of.part(), of.number())) {
			continue
		}
		if k := forgetKey(of.part(), of.number()); m.lost.has(k) && !r.holds(k) {
			m.do(setting(k, now))
		}
		if k := goneKey(of.part(), of.number()); m.lost.has(k) && !r.holds(k) {
			m.do(setting(k, nil))
		}
	}
	for _, step := range []func() error{
		func() error { return r.assumeHidden(c.byID) }, r.assumeDirty, r.assumeOffloaded, r.renewMeta,
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// holds reports whether the copy has a key.
func (r *repair) holds(k key) bool {
	_, ok, err := r.target.get(k)
	return ok && err == nil
}

// liveUsers returns who has a live session.
func (r *repair) liveUsers(numbers map[string]ref) (map[ref]bool, error) {
	live := make(map[ref]bool)
	return live, r.target.scan(r.ctx, newKey(tabSession, 1), func(k, v []byte) error {
		if len(k) == 18 {
			if st, err := decodeSession(rollcall.SessionID(k[2:]), v); err == nil {
				if of, ok := numbers[st.User]; ok {
					live[of] = true
				}
			}
		}
		return nil
	})
}

// assumeHidden makes users invisible whose settings are lost, if events say that they were.
func (r *repair) assumeHidden(numbers map[string]ref) error {
	m := r.mend
	if !m.lost.overlap(key{tabUser}) {
		return nil
	}
	hidden, err := r.hiddenByEvents()
	if err != nil {
		return err
	}
	n := 0
	for user, is := range hidden {
		of, ok := numbers[user]
		k := userKey(of.part(), of.number())
		if !is || !ok || !m.lost.has(k) || r.holds(k) {
			continue
		}
		n++
		rec := userRecord{invisible: true}
		m.do(setting(k, rec.encode()))
	}
	if n > 0 {
		r.out.Notes = append(r.out.Notes, fmt.Sprintf("%d users whose settings are lost are invisible, as events say that they were.", n))
	}
	return nil
}

// hiddenByEvents returns who was invisible by the latest event about them.
func (r *repair) hiddenByEvents() (map[string]bool, error) {
	hidden, at := make(map[string]bool), make(map[string]uint64)
	for family, table := range familyTables {
		err := r.target.scan(r.ctx, newKey(table, 1), func(k, v []byte) error {
			events, err := decodeEvents(family, k, v)
			if err != nil {
				return nil //nolint:nilerr // the check that follows names it
			}
			for _, e := range events {
				if e.User != "" && e.seq >= at[e.User] {
					at[e.User] = e.seq
					hidden[e.User] = e.audience == enginekit.ForAdmin || e.audience == enginekit.ForPublic && e.Type == rollcall.UserOffline
				}
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return hidden, nil
}

// assumeDirty makes all maps dirty of which the note may be lost, so that the archive gets them again.
func (r *repair) assumeDirty() error {
	m := r.mend
	if !m.lost.overlap(key{tabDirty}) {
		return nil
	}
	return r.target.scan(r.ctx, newKey(tabDay, 1), func(k, v []byte) error {
		set := roaring.New()
		if len(k) != 8 || dayset.Decode(v, uint32(k[7]), set) != nil {
			return nil //nolint:nilerr // the check that follows names it
		}
		to := dirtyKey(k[1], dayOfKey(k).month(), k[7])
		if !m.lost.has(to) {
			return nil
		}
		m.do(func(b *pebble.Batch) error {
			return mergeNumbers(b, addMarks, set.ToArray(), to)
		})
		return m.err
	})
}

// assumeOffloaded notes all days as offloaded that may have been. The archive, which is then asked,
// knows which were.
func (r *repair) assumeOffloaded() error {
	m := r.mend
	if !m.lost.overlap(key{tabOffloaded}) && !m.lost.overlap(key{tabHasArchived}) {
		return nil
	}
	from := make(map[uint8]int32) // by kind: the first day that can have been offloaded
	some := false
	err := r.target.scan(r.ctx, newKey(tabHasArchived, 1), func(_, _ []byte) error {
		some = true
		return errStop
	})
	if err != nil && !isStop(err) {
		return err
	}
	if !some { // no day was offloaded, or the check that follows finds out by first days
		return nil
	}
	err = r.target.scan(r.ctx, newKey(tabFirst, 1), func(k, _ []byte) error {
		if id := dayOfKey(k); len(k) == 8 {
			if day, ok := from[id.kind]; !ok || id.day < day {
				from[id.kind] = id.day
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	today := int32(m.now / (24 * time.Hour).Milliseconds())
	for kind, day := range from {
		for day = max(day, today-maxArchived); day < today; day++ {
			if k := offloadedKey(dayID{kind, day}); m.lost.has(k) {
				m.do(setting(k, nil))
			}
		}
	}
	return m.err
}

// maxArchived bounds the days that are noted without proof.
const maxArchived = 20000

// renewMeta makes anew what holds for the whole store. The epoch is always new, so that readers of
// events begin anew: some of what they saw may be lost.
func (r *repair) renewMeta() error {
	m := r.mend
	m.do(newEpoch)
	lost := func(name string) bool { return m.lost.has(metaKey(name)) && !r.holds(metaKey(name)) }
	if lost(metaStamp) {
		// An outage that is dated too early would revive sessions that clients were told have
		// ended.
		m.do(setting(metaKey(metaStamp), stampRecord(m.now)))
		r.addLoss("when the server was last alive", "Sessions whose idle time passed while it was down have ended.")
	}
	if lost(metaTimezone) {
		r.addLoss("the time zone", "The next start takes the one that is configured: make sure that it is the one from before.")
	}
	if lost(metaSecret) {
		r.out.Notes = append(r.out.Notes, "What stands for the secret is lost: the next start takes the one that is there. It must be the one from before.")
	}
	if lost(metaOutages) {
		r.out.Notes = append(r.out.Notes, "Notes of outages are lost: sessions that they kept alive may have ended.")
	}
	return m.err
}
