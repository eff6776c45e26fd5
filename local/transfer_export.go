package local

import (
	"bytes"
	"cmp"
	"context"
	"math/bits"
	"slices"
	"strings"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/enginekit"
)

// Bounds of one step of an export, which is read under the locks.
const (
	exportNumbers = 512     // users by number
	exportFriends = 1 << 16 // their friends
	exportTraces  = 500     // bans and ended sessions in a snapshot without a user
)

// Export implements [rollcall.Transfer]. Users come by partition, and in it by number. Then come
// users without a number, of whom only bans and ended sessions are left.
func (e *Engine) Export(ctx context.Context, at time.Time, first int, visit func(rollcall.UserSnapshot) error, done func(next, parts int) error) error {
	now, err := e.enter(at)
	if err != nil {
		return err
	}

	// Half of a user would stay in the other engine for ever.
	if e.erasures.current.Load() != nil {
		if err := e.finishCurrent(ctx, at); err != nil {
			return err
		}
	}
	for i := first; i < len(e.parts); i++ {
		p := e.parts[i]
		x := &exportRun{p: p, now: now, visited: roaring.New(), visitedUsers: make(map[string]bool), notes: &endedNotes{over: true}}
		p.sessions.startNotes(x.notes)
		err := x.run(ctx, visit)
		p.sessions.stopNotes(x.notes)
		if err == nil && done != nil {
			err = done(i+1, len(e.parts))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// exportRun is the export of one partition.
type exportRun struct {
	p            *partition
	now          int64
	ended        map[string][]rollcall.SessionSnapshot // ended sessions by user
	has          map[rollcall.SessionID]bool           // the sessions in ended
	notes        *endedNotes                           // what has changed since ended was read
	bans         map[string][]rollcall.BanSnapshot     // by user
	visited      *roaring.Bitmap                       // numbers that have been exported
	visitedUsers map[string]bool                       // users whose bans and ended sessions have been
	out          []rollcall.UserSnapshot               // of the step at hand
}

// run exports the partition in steps. It calls visit between them, without any lock.
func (x *exportRun) run(ctx context.Context, visit func(rollcall.UserSnapshot) error) error {
	flush := func() error {
		for _, d := range x.out {
			if err := visit(d); err != nil {
				return err
			}
		}
		clear(x.out)
		x.out = x.out[:0]
		return nil
	}

	// Users with a number.
	for from, more := uint32(0), true; more; {
		err := x.locked(ctx, func() { from, more = x.numbers(from) })
		if err != nil {
			return err
		}
		if err := flush(); err != nil {
			return err
		}
	}

	// What is left of erased users, and of users without a number.
	if err := x.locked(ctx, x.exportErased); err != nil {
		return err
	}
	for more := true; more; {
		if err := flush(); err != nil {
			return err
		}
		if err := x.locked(ctx, func() { more = x.traces() }); err != nil {
			return err
		}
	}
	return flush()
}

// locked runs a step with all partitions locked for reading, and with the ended sessions and
// bans as they are then.
func (x *exportRun) locked(ctx context.Context, step func()) error {
	for {
		if err := ctx.Err(); err != nil {
			return enginekit.CutShort(err)
		}
		if err := x.takeChanges(ctx); err != nil {
			return err
		}
		x.p.eng.rlockAll()
		if x.notes.few() {
			break
		}
		x.p.eng.runlockAll()
	}
	defer x.p.eng.runlockAll()
	if err := x.p.eng.readable(); err != nil {
		return err
	}
	if err := x.take(x.notes.ids, x.notes.erased); err != nil {
		return err
	}
	x.readBans()
	step()
	return nil
}

// readBans reads the bans of the partition. A ban whose user was erased says in which
// partitions the user may be: as many bits of the hash as are known.
func (x *exportRun) readBans() {
	x.bans = make(map[string][]rollcall.BanSnapshot)
	for k := range x.p.users.bans {
		if ban, ok := x.p.users.banOf(k, x.p.latest(x.now)); ok {
			kept := rollcall.BanSnapshot{Ban: ban, Home: uint16(x.p.index), Bits: uint8(bits.Len(uint(len(x.p.eng.parts) - 1)))}
			if ban.User != "" {
				kept.Home, kept.Bits = uint16(rollcall.HashUser(ban.User)), 16
			}
			x.bans[ban.User] = append(x.bans[ban.User], kept)
		}
	}
}

// numbers makes the snapshots of some users by number, and returns the number to go on with.
func (x *exportRun) numbers(from uint32) (next uint32, more bool) {
	p := x.p
	to, friends := from, 0
	for to < p.dir.Limit() && to-from < exportNumbers && friends < exportFriends {
		friends += p.friends.count(to)
		to++
	}
	days := p.days.byUser(from, to)
	for n := from; n < to; n++ {
		if p.dir.Has(n) {
			x.visited.Add(n)
			x.add(x.snapshot(p.dir.ID(n), n, days[n-from]))
		}
	}
	return to, to < p.dir.Limit()
}

// add adds a snapshot, unless it says nothing.
func (x *exportRun) add(d rollcall.UserSnapshot) {
	if !d.IsEmpty() {
		x.out = append(x.out, d)
	}
	if len(d.Ended)+len(d.Bans) > 0 {
		x.visitedUsers[d.User] = true
	}
}

// exportErased makes snapshots, without a user, of what is left of erased users.
func (x *exportRun) exportErased() {
	bans, ended := x.bans[""], x.ended[""]
	x.visitedUsers[""] = true
	for some := range slices.Chunk(bans, exportTraces) {
		x.out = append(x.out, rollcall.UserSnapshot{Bans: some})
	}
	for some := range slices.Chunk(ended, exportTraces) {
		x.out = append(x.out, rollcall.UserSnapshot{Ended: some})
	}
}

// traces makes snapshots of users with bans or ended sessions who have not been exported by
// number, and reports whether there may be more.
func (x *exportRun) traces() bool {
	users := make([]string, 0, exportNumbers)
	look := func(user string) bool {
		if !x.visitedUsers[user] {
			x.visitedUsers[user] = true
			users = append(users, user)
		}
		return len(users) < exportNumbers
	}
	for user := range x.ended {
		if !look(user) {
			break
		}
	}
	for user := range x.bans {
		if !look(user) {
			break
		}
	}
	slices.Sort(users)
	for _, user := range slices.Compact(users) {
		if n, ok := x.p.find(user); ok {
			if x.visited.Contains(n) { // these came after the user was exported
				continue
			}
			x.add(x.snapshot(user, n, x.p.days.byUser(n, n+1)[0]))
			continue
		}
		x.add(rollcall.UserSnapshot{User: user, Ended: x.ended[user], Bans: x.bans[user]})
	}
	return len(users) > 0
}

// snapshot collects what is known of a user who has a number.
func (x *exportRun) snapshot(user string, n uint32, days map[string][]rollcall.Day) rollcall.UserSnapshot {
	p := x.p
	rec := p.users.get(n)
	d := rollcall.UserSnapshot{
		User: user, Kind: rec.kind, Name: rec.name, Invisible: rec.invisible, Days: days, Friends: x.friends(n),
		Ended: slices.Clone(x.ended[user]), Bans: x.bans[user], Archived: p.days.hasArchived.Contains(n),
	}
	if rec.invisible {
		d.Frozen = enginekit.TimeOfSecond(rec.frozen)
	}
	if last := p.presence.seen.Last(n); last >= p.eng.retainedSince(p.latest(x.now)) {
		d.LastSeen, d.Gone = enginekit.TimeOfSecond(last), p.presence.seen.Hidden(n)
	}
	x.sessions(n, &d)
	return d
}

// friends collects a user's friends.
func (x *exportRun) friends(n uint32) []rollcall.Friend {
	edges := x.p.friends.get(n)
	if len(edges) == 0 {
		return nil
	}
	out := make([]rollcall.Friend, len(edges))
	for i, edge := range edges {
		out[i] = rollcall.Friend{User: x.p.eng.parts[edge.friend.part()].dir.ID(edge.friend.number()), Since: enginekit.TimeOf(edge.since)}
	}
	slices.SortFunc(out, func(a, b rollcall.Friend) int { return strings.Compare(a.User, b.User) })
	return out
}

// sessions collects a user's sessions. A session past its deadline is an ended one, also if it
// has not been reaped.
func (x *exportRun) sessions(n uint32, d *rollcall.UserSnapshot) {
	p, s := x.p, &x.p.sessions
	now := p.latest(x.now)
	s.ofUser.each(n, func(slot uint32) bool {
		token := rollcall.TokenKey(s.token.Get(slot))
		at, cause := s.deadline(slot)
		switch {
		case now < at:
			by := s.timeouts(slot)
			d.Sessions = append(d.Sessions, rollcall.SessionSnapshot{
				Session: s.session(slot), Token: token,
				Idle: time.Duration(by.idle) * time.Millisecond, Lifetime: time.Duration(by.lifetime) * time.Millisecond,
			})
		case now < at+ms(p.eng.settings.EndedKeep):
			ended := s.endedSession(slot, rollcall.End{At: enginekit.TimeOf(at), Cause: cause})
			d.Ended = append(d.Ended, rollcall.SessionSnapshot{Session: ended, Token: token})
		}
		return true
	})
	byID := func(a, b rollcall.SessionSnapshot) int { return bytes.Compare(a.ID[:], b.ID[:]) }
	slices.SortFunc(d.Sessions, byID)
	slices.SortFunc(d.Ended, byID)
}

// byUser returns the days of the numbers in [from, to), by kind.
func (t *dayTable) byUser(from, to uint32) []map[string][]rollcall.Day {
	out := make([]map[string][]rollcall.Day, to-from)
	ids := make([]dayID, 0, len(t.sets))
	for id := range t.sets {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, func(a, b dayID) int { return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.day, b.day)) })
	kinds := t.p.eng.kinds.all()
	for _, id := range ids {
		it := t.sets[id].Iterator()
		for it.AdvanceIfNeeded(from); it.HasNext() && it.PeekNext() < to; {
			n, kind := it.Next(), kinds[id.kind]
			if out[n-from] == nil {
				out[n-from] = make(map[string][]rollcall.Day, 1)
			}
			out[n-from][kind] = append(out[n-from][kind], rollcall.Day(id.day))
		}
	}
	return out
}
