package local

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/cockroachdb/pebble/v2"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/dayset"
	"github.com/rollcall/rollcall/internal/enginekit"
)

// namedUsers are told of a loss by name.
const namedUsers = 50

// beCareful sees to it that what may have stood in a range that cannot be read
// makes no wrong answer: it might have said that somebody left, or hid, or was
// forgotten.
func (r *repair) beCareful() error {
	m := r.mend
	if len(m.lost) == 0 {
		return r.careForMeta()
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
		func() error { return r.careForHidden(c.byID) }, r.careForMaps, r.careForArchive, r.careForMeta,
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

// careForHidden hides those whose settings are lost and of whom the events say
// that the public was not to see them.
func (r *repair) careForHidden(numbers map[string]ref) error {
	m := r.mend
	if !m.lost.hits(key{tabUser}) {
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
					hidden[e.User] = e.aud == enginekit.ForAdmin || e.aud == enginekit.ForPublic && e.Type == rollcall.UserOffline
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

// careForMaps has the archive copy anew what it may not have copied: notes of
// which maps changed are lost.
func (r *repair) careForMaps() error {
	m := r.mend
	if !m.lost.hits(key{tabDirty}) {
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
			return mergeNumbers(b, dayset.AppendAdd, set.ToArray(), func(uint8) key { return to })
		})
		return m.err
	})
}

// careForArchive has the archive asked about all days that may have left for it:
// it decides which did.
func (r *repair) careForArchive() error {
	m := r.mend
	if !m.lost.hits(key{tabOffloaded}) && !m.lost.hits(key{tabHasArchived}) {
		return nil
	}
	from := make(map[uint8]int32) // by kind, the first day that can have left
	some := false
	err := r.target.scan(r.ctx, newKey(tabHasArchived, 1), func(_, _ []byte) error {
		some = true
		return errStop
	})
	if err != nil && !isStop(err) {
		return err
	}
	if !some { // nothing ever left, or the check finds by their first days who has marks there
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

// maxArchived bounds the days that the archive is asked about for want of notes.
const maxArchived = 20000

// careForMeta makes anew what holds for the whole store. Readers of events begin
// anew in any case: some of what they saw may be lost.
func (r *repair) careForMeta() error {
	m := r.mend
	m.do(newEpoch)
	lost := func(name string) bool { return m.lost.has(metaKey(name)) && !r.holds(metaKey(name)) }
	if lost(metaStamp) {
		// What clients were told has ended must not live again for an outage that
		// is dated too early.
		m.do(setting(metaKey(metaStamp), stampRecord(m.now)))
		r.lose("when the server was last alive", "Sessions whose idle time passed while it was down have ended.")
	}
	if lost(metaTimezone) {
		r.lose("the time zone", "The next start takes the one that is configured: make sure that it is the one from before.")
	}
	if lost(metaSecret) {
		r.out.Notes = append(r.out.Notes, "What stands for the secret is lost: the next start takes the one that is there. It must be the one from before.")
	}
	if lost(metaOutages) {
		r.out.Notes = append(r.out.Notes, "Notes of outages are lost: sessions that they kept alive may have ended.")
	}
	return m.err
}

func (r *repair) lose(what, advice string) {
	info, _ := infoOf(tabMeta)
	r.out.Losses = append(r.out.Losses, Loss{What: what, Tables: titled(info), Records: 1, Advice: advice})
}

// tellAhead says what a clock that ran ahead cost.
func (r *repair) tellAhead(b *backSetter, latest time.Time) {
	r.out.Notes = append(r.out.Notes, fmt.Sprintf("A clock that ran ahead had written %s: %d records were set back to %s.",
		latest.UTC().Format(time.RFC3339), b.set, r.ro.Now.UTC().Format(time.RFC3339)))
	advice := map[string]string{
		"live sessions that began in the future":  "Their users have to log in again.",
		"ended sessions that began in the future": "Their clients are told that they are not logged in, instead of why.",
		"marks of days in the future":             "Nobody can tell which days they are of in truth.",
	}
	for _, what := range slices.Sorted(maps.Keys(b.counts)) {
		r.out.Losses = append(r.out.Losses, Loss{What: what, Records: b.counts[what], Advice: advice[what]})
	}
}

// tell says what is lost.
func (r *repair) tell() error {
	c := newChecker(r.target, Report{})
	c.allIDs()
	missing, err := r.namedInEvents(c)
	if err != nil {
		return err
	}
	for i := range r.kept {
		r.out.Losses = append(r.out.Losses, r.lossOf(&r.kept[i], c, missing))
	}
	m := r.mend
	for _, info := range tableInfos() {
		d := m.dropped[info.table]
		if d == nil {
			continue
		}
		loss := Loss{What: info.name + " that contradict the rest, or cannot be read", Tables: titled(info), Records: d.n, Advice: adviceOn(info.table)}
		for i, k := range d.keys {
			loss.Keys = append(loss.Keys, fmt.Sprintf("%x: %s", k, d.why[i]))
		}
		r.out.Losses = append(r.out.Losses, loss)
	}
	if m.undated > 0 {
		r.out.Losses = append(r.out.Losses, Loss{What: "since when users are friends: they are, and the date is that of the repair", Tables: "friends (f)", Records: m.undated})
	}
	if m.guessed > 0 {
		r.out.Losses = append(r.out.Losses, Loss{
			What: "first days of users whose earlier marks are in the archive: they are new on the first day that is here", Tables: "first days (F)", Records: m.guessed,
		})
	}
	slices.Sort(m.kinds)
	for _, kind := range slices.Compact(m.kinds) {
		r.out.Losses = append(r.out.Losses, Loss{What: fmt.Sprintf("the name of a kind of users: it is %q now", lostKind(kind)), Tables: "kinds of users (c)", Records: 1})
	}
	return nil
}

func titled(info tableInfo) string { return fmt.Sprintf("%s (%c)", info.name, info.table) }

// lossOf describes what a damaged table file costs.
func (r *repair) lossOf(d *damagedFile, c *checker, missing map[byte][]string) Loss {
	loss := Loss{What: fmt.Sprintf("what stood in %s, at offset %d: %s", d.name, d.offset, plain(d.err)), Records: d.unread, Tables: tablesIn(d.keys)}
	if d.offset == 0 {
		loss.What = fmt.Sprintf("what stood in %s: %s", d.name, plain(d.err))
	}
	of := lostRanges(d.keys)
	for _, k := range d.keys {
		if loss.Keys = append(loss.Keys, fmt.Sprintf("%x … %x", k.from, k.to)); len(loss.Keys) == namedDrops {
			break
		}
	}
	users := make(map[string]bool)
	for _, info := range tableInfos() {
		if !of.hits(key{info.table}) {
			continue
		}
		if a := adviceOn(info.table); a != "" {
			loss.Advice += a + " "
		}
		for _, user := range missing[info.table] {
			users[user] = true
		}
		if info.number && info.table != tabNamedBy && info.table != tabForgot && info.table != tabGone {
			for n, id := range c.ids {
				if of.has(newKey(info.table, 5).u8(n.part()).u24(n.number())) && len(users) <= namedUsers {
					users[id] = true
				}
			}
		}
	}
	if len(users) <= namedUsers {
		loss.Users = slices.Sorted(maps.Keys(users))
	}
	loss.Days = daysIn(d.keys)
	return loss
}

// daysIn names the days of attendance that ranges of keys may hold, where that is
// no more than a few.
func daysIn(ranges []keyRange) string {
	from, to := int32(math.MaxInt32), int32(math.MinInt32)
	for _, r := range ranges {
		if !(lostRanges{r}).hits(key{tabDay}) {
			continue
		}
		if len(r.from) < 7 || len(r.to) < 7 || r.from[0] != tabDay || r.to[0] != tabDay || string(r.from[:3]) != string(r.to[:3]) {
			return "any"
		}
		from, to = min(from, dayOfKey(r.from).day), max(to, dayOfKey(r.to).day)
	}
	if from > to {
		return ""
	}
	return fmt.Sprintf("%v to %v", rollcall.Day(from), rollcall.Day(to))
}

// namedInEvents finds users of whom the events say that they have a live session
// or a ban, and who have none: by table.
func (r *repair) namedInEvents(c *checker) (map[byte][]string, error) {
	begun, banned := make(map[rollcall.SessionID]string), make(map[string]bool)
	err := r.target.scan(r.ctx, newKey(tabEvent, 1), func(k, v []byte) error {
		events, err := decodeEvents(sessionFamily, k, v)
		if err != nil {
			return nil //nolint:nilerr // there is none: it was checked
		}
		switch e := events[0]; e.Type {
		case rollcall.SessionStarted:
			begun[e.Session] = e.User
		case rollcall.SessionEnded:
			delete(begun, e.Session)
		case rollcall.UserBanned:
			banned[e.User] = true
		case rollcall.UserUnbanned:
			delete(banned, e.User)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	err = r.target.scan(r.ctx, newKey(tabBan, 1), func(k, v []byte) error {
		if ban, err := decodeBan(rollcall.BanKey(k[2:]), v); err == nil {
			delete(banned, ban.User)
		}
		return nil
	})
	out := make(map[byte][]string)
	for id, user := range begun {
		p := uint8(rollcall.HashUser(user) & uint64(c.parts-1))
		if k := sessionKey(p, id); r.mend.lost.has(k) && !r.holds(k) && !r.holds(endedKey(p, id)) {
			out[tabSession] = append(out[tabSession], user)
		}
	}
	for user := range banned {
		if p := uint8(rollcall.HashUser(user) & uint64(c.parts-1)); r.mend.lost.hits(newKey(tabBan, 2).u8(p)) {
			out[tabBan] = append(out[tabBan], user)
		}
	}
	return out, err
}

// adviceOn says what to do about lost records of a table.
func adviceOn(table byte) string {
	switch table {
	case tabBan:
		return "Bans may be lost: ban again whom you banned."
	case tabErasure:
		return "Erasures that were not finished may be lost: erase again whom you erased last."
	case tabKey:
		return "API keys may be lost: make them anew (rollcall key list)."
	case tabBlock, tabID:
		return "Of users whose ids are lost, all that stood under their numbers is lost too."
	case tabUser:
		return "Settings of users may be lost: kind, name, and that they are invisible."
	case tabSession:
		return "Users whose sessions are lost have to log in again."
	case tabDay:
		return "Marks may be lost: counts of these days are less than they were."
	case tabForgot:
		return "Last-seen times of the users there are forgotten, as some of them had to be."
	case tabGone:
		return "Users there who have no session are offline until they are heard."
	case tabTouch, tabTouched:
		return "Sessions whose last touches are lost end earlier."
	case tabEvent, tabPresEvent:
		return "Events are lost: readers are told to begin anew."
	default:
		return ""
	}
}
