package redis

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/redis/rueidis"

	"github.com/rollcall/rollcall"
)

var _ rollcall.Transfer = (*Engine)(nil)

// Steps of a transfer.
const (
	dossierStep = 100  // users one script tells of
	scanStep    = 1000 // keys one SCAN looks at
)

// Export implements [rollcall.Transfer]. Who is known is gathered from all keys
// first; then users come by partition, then id.
func (e *Engine) Export(ctx context.Context, at time.Time, visit func(rollcall.Dossier) error) error {
	found, err := e.scan(ctx)
	if err != nil {
		return err
	}
	for p := range e.roots {
		x := &exporting{e: e, at: at, part: p, met: make(map[string]bool)}
		if err := x.run(ctx, found[p], visit); err != nil {
			return err
		}
	}
	return nil
}

// exporting is the export of one partition.
type exporting struct {
	e     *Engine
	at    time.Time
	part  int
	marks string
	days  map[string]*roaring.Bitmap // kind:day
	met   map[string]bool            // ban keys and ended sessions that stand in a dossier
}

// traces are what the keys of a partition tell: users, and sessions that ended.
type traces struct {
	users map[string]struct{}
	ended []string
}

// scan looks at the names of all keys.
func (e *Engine) scan(ctx context.Context) ([]traces, error) {
	out := make([]traces, len(e.roots))
	for p := range out {
		out[p].users = make(map[string]struct{})
	}
	for _, node := range e.client.Nodes() {
		for cursor := uint64(0); ; {
			entry, err := node.Do(ctx, node.B().Scan().Cursor(cursor).Match(e.opts.Prefix+":{*").Count(scanStep).Build()).AsScanEntry()
			if err != nil {
				return nil, failure(err)
			}
			for _, k := range entry.Elements {
				e.trace(k, out)
			}
			if cursor = entry.Cursor; cursor == 0 {
				break
			}
		}
	}
	return out, nil
}

// trace notes what the name of a key tells.
func (e *Engine) trace(k string, into []traces) {
	rest, ok := strings.CutPrefix(k, e.opts.Prefix+":{")
	number, name, ok2 := strings.Cut(rest, "}:")
	p, err := strconv.Atoi(number)
	if !ok || !ok2 || err != nil || p < 0 || p >= len(into) {
		return
	}
	kind, id, _ := strings.Cut(name, ":")
	switch kind {
	case "user", "f", "u", "e":
		into[p].users[id] = struct{}{}
	case "end":
		into[p].ended = append(into[p].ended, id)
	}
}

func (x *exporting) run(ctx context.Context, found traces, visit func(rollcall.Dossier) error) error {
	if err := x.gather(ctx, found.users); err != nil {
		return err
	}
	if err := x.readDays(ctx); err != nil {
		return err
	}
	for some := range slices.Chunk(slices.Sorted(maps.Keys(found.users)), dossierStep) {
		dossiers, err := x.read(ctx, some)
		if err != nil {
			return err
		}
		for _, d := range dossiers {
			if d.IsEmpty() {
				continue
			}
			if err := visit(d); err != nil {
				return err
			}
		}
	}
	return x.nobody(ctx, found.ended, visit)
}

// gather adds the users who stand in the partition's own lists.
func (x *exporting) gather(ctx context.Context, users map[string]struct{}) error {
	e := x.e
	for _, name := range []string{"seen", "num"} {
		for cursor := uint64(0); ; {
			msg, err := e.one(ctx, 0, plain(func() rueidis.Completed {
				if name == "seen" {
					return e.client.B().Zscan().Key(e.of(x.part, name)).Cursor(cursor).Count(scanStep).Build()
				}
				return e.client.B().Hscan().Key(e.of(x.part, name)).Cursor(cursor).Count(scanStep).Build()
			}))
			if err != nil {
				return err
			}
			entry, err := msg.AsScanEntry()
			if err != nil || len(entry.Elements)%2 != 0 {
				return damaged("a list of users")
			}
			for i := 0; i < len(entry.Elements); i += 2 {
				users[entry.Elements[i]] = struct{}{}
			}
			if cursor = entry.Cursor; cursor == 0 {
				break
			}
		}
	}
	msg, err := e.one(ctx, 0, plain(func() rueidis.Completed { return e.client.B().Hgetall().Key(e.of(x.part, "bans")).Build() }))
	if err != nil {
		return err
	}
	bans, err := msg.AsStrMap()
	if err != nil {
		return damaged("the bans")
	}
	for k, blob := range bans {
		ban, err := unpackBan(k, blob)
		if err != nil {
			return err
		}
		if ban.User != "" {
			users[ban.User] = struct{}{}
		}
	}
	return nil
}

func (x *exporting) readDays(ctx context.Context) error {
	msg, err := x.e.one(ctx, 0, in(x.part, &x.e.scripts.sets))
	if err != nil {
		return err
	}
	reply, err := msg.AsStrSlice()
	if err != nil || len(reply)%2 != 1 {
		return damaged("the days")
	}
	x.marks, x.days = reply[0], make(map[string]*roaring.Bitmap, len(reply)/2)
	for i := 1; i < len(reply); i += 2 {
		x.days[reply[i]] = readSet(reply[i+1])
	}
	return nil
}

// read returns the dossiers of users.
func (x *exporting) read(ctx context.Context, users []string) ([]rollcall.Dossier, error) {
	msg, err := x.e.one(ctx, x.at.UnixMilli(), in(x.part, &x.e.scripts.dossier, append([]string{x.marks}, users...)...))
	if err != nil {
		return nil, err
	}
	reply, err := msg.ToArray()
	if err != nil || len(reply) != len(users)+1 {
		return nil, damaged("the answer to an export")
	}
	bans, err := reply[0].AsStrMap()
	if err != nil {
		return nil, damaged("the bans")
	}
	out := make([]rollcall.Dossier, len(users))
	byUser := make(map[string]*rollcall.Dossier, len(users))
	for i, u := range users {
		if out[i], err = x.dossier(u, reply[i+1]); err != nil {
			return nil, err
		}
		byUser[u] = &out[i]
	}
	for k, blob := range bans {
		ban, err := unpackBan(k, blob)
		if err != nil {
			return nil, err
		}
		if d := byUser[ban.User]; d != nil && x.at.Before(ban.Until) {
			d.Bans = append(d.Bans, rollcall.KeptBan{Ban: ban, Home: uint16(rollcall.HashUser(ban.User)), Bits: 16})
		}
	}
	return out, nil
}

// dossier reads what dossier.lua tells of one user.
func (x *exporting) dossier(user string, msg rueidis.RedisMessage) (rollcall.Dossier, error) {
	d := rollcall.Dossier{User: user}
	f, err := msg.ToArray()
	if err != nil || len(f) != 11 {
		return d, damaged("the answer to an export")
	}
	d.Kind, _ = f[0].ToString() // nil if it was never set
	d.Name, _ = f[1].ToString()
	if n, _ := f[2].AsInt64(); n == 1 {
		frozen, _ := f[3].AsInt64()
		d.Invisible, d.Frozen = true, timeOfSec(frozen)
	}
	if score, _ := f[4].ToString(); score != "" {
		sec, err := strconv.ParseFloat(score, 64)
		if err != nil {
			return d, damaged("a last-seen time")
		}
		d.Gone = sec < 0
		d.LastSeen = timeOfSec(int64(max(sec, -sec)))
	}
	friends, err := f[6].AsZScores()
	if err != nil {
		return d, damaged("a list of friends")
	}
	for _, s := range friends {
		d.Friends = append(d.Friends, rollcall.Friend{User: s.Member, Since: timeOf(int64(s.Score))})
	}
	slices.SortFunc(d.Friends, func(a, b rollcall.Friend) int { return strings.Compare(a.User, b.User) })
	if d.Sessions, err = liveOf(f[7]); err != nil {
		return d, err
	}
	if d.Ended, err = x.endedOf(f[8]); err != nil {
		return d, err
	}
	away, err := f[10].AsInt64()
	if err != nil {
		return d, damaged("where a user's marks are")
	}
	d.Archived = away == 1
	err = x.daysOf(&d, f[5], f[9])
	return d, err
}

func liveOf(msg rueidis.RedisMessage) ([]rollcall.KeptSession, error) {
	list, err := msg.ToArray()
	if err != nil {
		return nil, damaged("a list of sessions")
	}
	var out []rollcall.KeptSession
	for _, m := range list {
		r, err := unpackFound(m)
		if err != nil {
			return nil, err
		}
		out = append(out, r.kept())
	}
	slices.SortFunc(out, compareKept)
	return out, nil
}

func compareKept(a, b rollcall.KeptSession) int { return slices.Compare(a.ID[:], b.ID[:]) }

func (r *record) kept() rollcall.KeptSession {
	k := rollcall.KeptSession{Session: r.Session, Token: rollcall.TokenKey([]byte(r.token))}
	if r.End == nil {
		k.Idle, k.Lifetime = time.Duration(r.idle)*time.Millisecond, time.Duration(r.life)*time.Millisecond
	}
	return k
}

func (x *exporting) endedOf(msg rueidis.RedisMessage) ([]rollcall.KeptSession, error) {
	list, err := msg.AsStrSlice()
	if err != nil || len(list)%2 != 0 {
		return nil, damaged("a list of ended sessions")
	}
	var out []rollcall.KeptSession
	for i := 0; i < len(list); i += 2 {
		r, err := unpackEnd(idOf(list[i]), list[i+1])
		if err != nil {
			return nil, err
		}
		x.met[list[i]] = true
		out = append(out, r.kept())
	}
	slices.SortFunc(out, compareKept)
	return out, nil
}

// daysOf fills in the marks: from the sets that were read, or from what the
// script found if marks changed since.
func (x *exporting) daysOf(d *rollcall.Dossier, number, fresh rueidis.RedisMessage) error {
	fields := []string(nil)
	if fresh.IsArray() {
		var err error
		if fields, err = fresh.AsStrSlice(); err != nil {
			return damaged("the days of a user")
		}
	} else if n, err := number.AsInt64(); err == nil {
		for field, set := range x.days {
			if set.Contains(uint32(n)) {
				fields = append(fields, field)
			}
		}
	}
	for _, field := range fields {
		i := strings.LastIndexByte(field, ':')
		day, err := strconv.Atoi(field[i+1:])
		if i < 0 || err != nil {
			return damaged("the name of a day")
		}
		if d.Days == nil {
			d.Days = make(map[string][]rollcall.Day)
		}
		d.Days[field[:i]] = append(d.Days[field[:i]], rollcall.Day(day))
	}
	for _, days := range d.Days {
		slices.Sort(days)
	}
	return nil
}

// nobody tells what is left of erased users: their bans, and that their sessions
// ended.
func (x *exporting) nobody(ctx context.Context, ended []string, visit func(rollcall.Dossier) error) error {
	var d rollcall.Dossier
	msg, err := x.e.one(ctx, 0, plain(func() rueidis.Completed {
		return x.e.client.B().Hgetall().Key(x.e.of(x.part, "bans")).Build()
	}))
	if err != nil {
		return err
	}
	bans, err := msg.AsStrMap()
	if err != nil {
		return damaged("the bans")
	}
	for _, k := range slices.Sorted(maps.Keys(bans)) {
		ban, err := unpackBan(k, bans[k])
		if err != nil {
			return err
		}
		if ban.User == "" && x.at.Before(ban.Until) {
			d.Bans = append(d.Bans, rollcall.KeptBan{Ban: ban, Home: uint16(x.part), Bits: uint8(bits.Len(uint(len(x.e.roots) - 1)))})
		}
	}
	ended = slices.DeleteFunc(ended, func(id string) bool { return x.met[id] })
	slices.Sort(ended)
	for some := range slices.Chunk(slices.Compact(ended), dossierStep) {
		refs := make([]rollcall.Ref, len(some))
		for i, id := range some {
			refs[i].ID = idOf(id)
		}
		err := x.e.eachRef(ctx, x.at, refs, &x.e.scripts.lookup, []string{"0", "0"}, func(_ int, msg rueidis.RedisMessage) error {
			r, err := unpackFound(msg)
			if rollcall.CodeOf(err) == rollcall.CodeNotFound {
				return nil
			}
			if err == nil && r.End != nil && r.User == "" {
				d.Ended = append(d.Ended, r.kept())
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	if d.IsEmpty() {
		return nil
	}
	slices.SortFunc(d.Ended, compareKept)
	return visit(d)
}

// Import implements [rollcall.Transfer].
func (e *Engine) Import(ctx context.Context, at time.Time, dossiers []rollcall.Dossier) error {
	now := at.UnixMilli()
	var calls []call
	var of []string
	for i := range dossiers {
		d := &dossiers[i]
		if d.IsEmpty() {
			continue
		}
		if err := e.knowKinds(ctx, now, d.Kinds()...); err != nil {
			return err
		}
		for p, part := range e.split(d) {
			calls, of = append(calls, in(p, &e.scripts.enter, part.arguments()...)), append(of, d.User)
		}
	}
	if err := e.nameFriends(ctx, now, dossiers); err != nil {
		return err
	}
	if len(calls) == 0 {
		return e.open()
	}
	messages, err := e.do(ctx, now, calls...)
	if err != nil {
		return err
	}
	for i, msg := range messages {
		if n, err := msg.AsInt64(); err != nil || n == 0 {
			return cmp.Or(err, known(of[i]))
		}
	}
	return nil
}

// known says that a user is known. Reverse edges that were written for the
// dossier are pruned later.
func known(user string) error {
	return &rollcall.Error{Code: rollcall.CodeConflict, Field: "user", Detail: fmt.Sprintf("something is known of %q already: import into an engine that is empty", user)}
}

// nameFriends writes the reverse edges of all friends, before the edges are
// entered.
func (e *Engine) nameFriends(ctx context.Context, now int64, dossiers []rollcall.Dossier) error {
	var notes, names []call
	type edges struct {
		user    string
		friends []string
	}
	var of []edges
	for i := range dossiers {
		d := &dossiers[i]
		for some := range slices.Chunk(d.Friends, edgeStep) {
			x := edges{user: d.User}
			for _, f := range some {
				x.friends = append(x.friends, f.User)
			}
			notes = append(notes, in(e.partOf(d.User), &e.scripts.loosen, append([]string{d.User, "", ""}, x.friends...)...))
			of = append(of, x)
		}
	}
	messages, err := e.do(ctx, now, notes...)
	if err != nil {
		return err
	}
	for i, msg := range messages {
		reply, err := msg.AsStrSlice()
		if err != nil || len(reply) < 2 {
			return damaged("an answer about friends")
		}
		names = append(names, e.reverse(&e.scripts.name, of[i].user, reply[1], of[i].friends)...)
	}
	_, err = e.do(ctx, now, names...)
	return err
}

// split divides a dossier over partitions: all of a user goes to one; what is
// left of erased users to those that their ids and bans lead to.
func (e *Engine) split(d *rollcall.Dossier) map[int]*entering {
	out := make(map[int]*entering)
	into := func(p int) *entering {
		if out[p] == nil {
			out[p] = &entering{user: d.User}
		}
		return out[p]
	}
	if d.User != "" {
		x := into(e.partOf(d.User))
		x.dossier, x.ended, x.bans = d, d.Ended, d.Bans
		return out
	}
	for _, s := range d.Ended {
		x := into(e.home(s.ID.Home()))
		x.ended = append(x.ended, s)
	}
	for _, b := range d.Bans {
		known := 1<<min(b.Bits, 16) - 1
		for p := range e.roots { // all that the known bits leave open
			if mask := known & (len(e.roots) - 1); p&mask == int(b.Home)&mask {
				into(p).bans = append(into(p).bans, b)
			}
		}
	}
	return out
}

// entering is what is entered in one partition.
type entering struct {
	user    string
	dossier *rollcall.Dossier // nil for what is left of erased users
	ended   []rollcall.KeptSession
	bans    []rollcall.KeptBan
}

// arguments are those of import.lua.
func (x *entering) arguments() []string {
	d := x.dossier
	if d == nil {
		d = &rollcall.Dossier{}
	}
	seen := ""
	if !d.LastSeen.IsZero() {
		sec := d.LastSeen.Unix()
		if d.Gone {
			sec = -sec
		}
		seen = fmt.Sprint(sec)
	}
	out := []string{x.user, d.Kind, d.Name, flag(d.Invisible), fmt.Sprint(msOf(d.Frozen) / 1000), seen, string(d.BanKey[:]), strconv.Itoa(len(d.Friends))}
	for _, f := range d.Friends {
		out = append(out, f.User, fmt.Sprint(msOf(f.Since)))
	}
	marks := 0
	for _, days := range d.Days {
		marks += len(days)
	}
	out = append(out, strconv.Itoa(marks))
	for _, kind := range slices.Sorted(maps.Keys(d.Days)) {
		for _, day := range d.Days[kind] {
			out = append(out, kind, fmt.Sprint(int32(day)))
		}
	}
	out = append(out, strconv.Itoa(len(d.Sessions)))
	for i := range d.Sessions {
		s := &d.Sessions[i]
		r := record{Session: s.Session, token: string(s.Token[:]), idle: s.Idle.Milliseconds(), life: s.Lifetime.Milliseconds()}
		if s.ExpiresAt.After(s.SeenAt.Add(s.Idle)) {
			r.late = s.ExpiresAt.UnixMilli()
		}
		out = append(out, idText(s.ID), r.pack(), fmt.Sprint(s.SeenAt.UnixMilli()))
	}
	out = append(out, strconv.Itoa(len(x.ended)))
	for i := range x.ended {
		s := &x.ended[i]
		out = append(out, idText(s.ID), packEnd(s), fmt.Sprint(s.End.At.UnixMilli()), string(s.Token[:]))
	}
	out = append(out, strconv.Itoa(len(x.bans)))
	for _, b := range x.bans {
		out = append(out, string(b.Key[:]), packBan(b.Ban))
	}
	return out
}

// packEnd packs what is remembered of a session that ended.
func packEnd(s *rollcall.KeptSession) string {
	var p packer
	p.u64(uint64(s.End.At.UnixMilli()))
	p.u64(uint64(msOf(s.SeenAt)))
	p.u64(uint64(msOf(s.ExpiresAt)))
	p.short(string(s.End.Cause))
	p.long(s.End.Reason)
	p.short(s.End.Actor)
	r := record{Session: s.Session, token: string(s.Token[:])}
	if !s.EndsAt.IsZero() {
		r.life = s.EndsAt.Sub(s.LoginAt).Milliseconds()
	}
	p.b = append(p.b, r.pack()...)
	return p.text()
}
