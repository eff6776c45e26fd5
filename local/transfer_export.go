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
	exportFriends = 1 << 16 // friends of theirs
	exportTraces  = 500     // bans and ended sessions in a dossier without a user
)

// Export implements [rollcall.Transfer]. Users come by partition, then number,
// then those of whom there are but traces.
func (e *Engine) Export(ctx context.Context, at time.Time, visit func(rollcall.UserSnapshot) error) error {
	now, err := e.enter(at)
	if err != nil {
		return err
	}
	if e.erasing.begun.Load() != nil { // half of a user would stay there for good
		if err := e.eraseAhead(ctx, at); err != nil {
			return err
		}
	}
	for _, p := range e.parts {
		x := &exporting{p: p, now: now, done: roaring.New(), met: make(map[string]bool), notes: &endedNotes{over: true}}
		p.sessions.note(x.notes)
		err := x.run(ctx, visit)
		p.sessions.noteNoMore(x.notes)
		if err != nil {
			return err
		}
	}
	return nil
}

// exporting is the export of one partition. Nothing but it reads the ended
// sessions by user, so it reads them all, and then what has changed since.
type exporting struct {
	p     *partition
	now   int64
	ended map[string][]rollcall.SessionSnapshot
	has   map[rollcall.SessionID]bool // sessions in ended
	notes *endedNotes                 // what has changed since ended was read
	bans  map[string][]rollcall.BanSnapshot
	done  *roaring.Bitmap // numbers that have been visited
	met   map[string]bool // users who have been, for what they left behind
	out   []rollcall.UserSnapshot
}

func (x *exporting) run(ctx context.Context, visit func(rollcall.UserSnapshot) error) error {
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
	for from, more := uint32(0), true; more; {
		err := x.locked(ctx, func() { from, more = x.numbers(from) })
		if err != nil {
			return err
		}
		if err := flush(); err != nil {
			return err
		}
	}
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

// locked runs a step while nothing changes, with the ended sessions and the
// bans as they are then.
func (x *exporting) locked(ctx context.Context, step func()) error {
	for {
		if err := ctx.Err(); err != nil {
			return &rollcall.Error{Code: rollcall.CodeUnavailable, Detail: "cut short", Err: err}
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
	if err := x.p.eng.open(); err != nil {
		return err
	}
	if err := x.take(x.notes.ids, x.notes.erased); err != nil {
		return err
	}
	x.readBans()
	step()
	return nil
}

func (x *exporting) readBans() {
	x.bans = make(map[string][]rollcall.BanSnapshot)
	for k := range x.p.users.bans {
		if ban, ok := x.p.users.banOf(k, x.p.at(x.now)); ok {
			kept := rollcall.BanSnapshot{Ban: ban, Home: uint16(x.p.index), Bits: uint8(bits.Len(uint(len(x.p.eng.parts) - 1)))}
			if ban.User != "" {
				kept.Home, kept.Bits = uint16(rollcall.HashUser(ban.User)), 16
			}
			x.bans[ban.User] = append(x.bans[ban.User], kept)
		}
	}
}

// numbers makes the dossiers of some users by number, and returns the number
// with which to go on.
func (x *exporting) numbers(from uint32) (next uint32, more bool) {
	p := x.p
	to, friends := from, 0
	for to < p.dir.Limit() && to-from < exportNumbers && friends < exportFriends {
		friends += p.friends.count(to)
		to++
	}
	days := p.days.byUser(from, to)
	for n := from; n < to; n++ {
		if p.dir.Has(n) {
			x.done.Add(n)
			x.add(x.dossier(p.dir.ID(n), n, days[n-from]))
		}
	}
	return to, to < p.dir.Limit()
}

func (x *exporting) add(d rollcall.UserSnapshot) {
	if !d.IsEmpty() {
		x.out = append(x.out, d)
	}
	if len(d.Ended)+len(d.Bans) > 0 {
		x.met[d.User] = true
	}
}

// exportErased makes the dossiers of what is left of erased users.
func (x *exporting) exportErased() {
	bans, ended := x.bans[""], x.ended[""]
	x.met[""] = true
	for some := range slices.Chunk(bans, exportTraces) {
		x.out = append(x.out, rollcall.UserSnapshot{Bans: some})
	}
	for some := range slices.Chunk(ended, exportTraces) {
		x.out = append(x.out, rollcall.UserSnapshot{Ended: some})
	}
}

// traces makes dossiers of users who have not been met by number, and reports
// whether there may be more.
func (x *exporting) traces() bool {
	users := make([]string, 0, exportNumbers)
	look := func(user string) bool {
		if !x.met[user] {
			x.met[user] = true
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
			if x.done.Contains(n) { // what there is came after the visit
				continue
			}
			x.add(x.dossier(user, n, x.p.days.byUser(n, n+1)[0]))
			continue
		}
		x.add(rollcall.UserSnapshot{User: user, Ended: x.ended[user], Bans: x.bans[user]})
	}
	return len(users) > 0
}

// dossier gathers what is known of a user who has a number.
func (x *exporting) dossier(user string, n uint32, days map[string][]rollcall.Day) rollcall.UserSnapshot {
	p := x.p
	rec := p.users.get(n)
	d := rollcall.UserSnapshot{
		User: user, Kind: rec.kind, Name: rec.name, Invisible: rec.invisible, Days: days, Friends: x.friends(n),
		Ended: slices.Clone(x.ended[user]), Bans: x.bans[user], Archived: p.days.hasArchived.Contains(n),
	}
	if rec.invisible {
		d.Frozen = enginekit.TimeOfSecond(rec.frozen)
	}
	if last := p.presence.seen.Last(n); last >= p.eng.retainedSince(p.at(x.now)) {
		d.LastSeen, d.Gone = enginekit.TimeOfSecond(last), p.presence.seen.Hidden(n)
	}
	x.sessions(n, &d)
	return d
}

func (x *exporting) friends(n uint32) []rollcall.Friend {
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

// sessions gathers a user's sessions. One past its deadline has ended, though
// nothing has reaped it.
func (x *exporting) sessions(n uint32, d *rollcall.UserSnapshot) {
	p, s := x.p, &x.p.sessions
	now := p.at(x.now)
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
			ended := s.ended(slot, rollcall.End{At: enginekit.TimeOf(at), Cause: cause})
			d.Ended = append(d.Ended, rollcall.SessionSnapshot{Session: ended, Token: token})
		}
		return true
	})
	byID := func(a, b rollcall.SessionSnapshot) int { return bytes.Compare(a.ID[:], b.ID[:]) }
	slices.SortFunc(d.Sessions, byID)
	slices.SortFunc(d.Ended, byID)
}

// byUser returns the days of the numbers from one to another, by kind.
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
