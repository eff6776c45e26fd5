package redis

import (
	"bytes"
	"cmp"
	"context"
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
	dossierStep = 100    // users one script tells of at most
	dossierCost = "4000" // what they may cost, in about microseconds
	scanStep    = 1000   // keys one SCAN looks at
)

// Export implements [rollcall.Transfer]. Who is known is gathered from all keys
// first; then users come by partition, then id.
func (e *Engine) Export(ctx context.Context, at time.Time, visit func(rollcall.UserSnapshot) error) error {
	// An erasure has no note in an export: half of a user would stay there for good.
	if err := e.finishAllErasures(ctx, at.UnixMilli()); err != nil {
		return err
	}
	found, err := e.scan(ctx)
	if err != nil {
		return err
	}
	for p := range e.keyPrefixes {
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
	bans  bansRead
	met   map[string]bool // ban keys and ended sessions that stand in a dossier
}

// traces are what the keys of a partition tell: users, and sessions that ended.
type traces struct {
	users map[string]struct{}
	ended []string
}

// scan looks at the names of all keys.
func (e *Engine) scan(ctx context.Context) ([]traces, error) {
	out := make([]traces, len(e.keyPrefixes))
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

func (x *exporting) run(ctx context.Context, found traces, visit func(rollcall.UserSnapshot) error) error {
	if err := x.gather(ctx, found.users); err != nil {
		return err
	}
	if err := x.readDays(ctx); err != nil {
		return err
	}
	for users := slices.Sorted(maps.Keys(found.users)); len(users) > 0; {
		dossiers, err := x.read(ctx, users[:min(len(users), dossierStep)])
		if err != nil {
			return err
		}
		users = users[len(dossiers):]
		for _, d := range dossiers {
			if d.IsEmpty() {
				continue
			}
			if err := visit(d); err != nil {
				return err
			}
		}
	}
	return x.exportErased(ctx, found.ended, visit)
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
	if err := x.readBans(ctx); err != nil {
		return err
	}
	for user := range x.bans.of {
		if user != "" {
			users[user] = struct{}{}
		}
	}
	return nil
}

// bansRead are the bans of a partition, by user, and how many had been set or
// lifted when they were read.
type bansRead struct {
	changes string
	of      map[string][]rollcall.Ban
}

// readBans reads all bans. They are read again only when one was set or lifted
// since.
func (x *exporting) readBans(ctx context.Context) error {
	msg, err := x.e.one(ctx, 0, plain(func() rueidis.Completed {
		return x.e.client.B().Hget().Key(x.e.of(x.part, "part")).Field("banchange").Build()
	}))
	if err != nil {
		return err
	}
	changes, _ := msg.ToString() // nil if there was none yet
	x.bans = bansRead{changes: cmp.Or(changes, "0"), of: make(map[string][]rollcall.Ban)}
	met := make(map[string]bool)
	return x.e.eachField(ctx, "bans", []int{x.part}, func(_ int, key, blob string) error {
		if met[key] {
			return nil
		}
		met[key] = true
		ban, err := unpackBan(key, blob)
		if err == nil && x.at.Before(ban.Until) {
			x.bans.of[ban.User] = append(x.bans.of[ban.User], ban)
		}
		return err
	})
}

// readDays reads all sets of days. Those that change meanwhile are told from the
// rest by how many marks there were at first.
func (x *exporting) readDays(ctx context.Context) error {
	x.marks, x.days = "", make(map[string]*roaring.Bitmap)
	for next := "-inf"; next != ""; {
		msg, err := x.e.one(ctx, 0, in(x.part, &x.e.scripts.daysExport, next))
		if err != nil {
			return err
		}
		reply, err := msg.AsStrSlice()
		if err != nil || len(reply) < 2 || len(reply)%2 != 0 {
			return damaged("the days")
		}
		if x.marks == "" {
			x.marks = reply[0]
		}
		next = reply[1]
		for i := 2; i < len(reply); i += 2 {
			x.days[reply[i]] = readSet(reply[i+1])
		}
	}
	return nil
}

// read returns the dossiers of the first of some users, of one at least.
func (x *exporting) read(ctx context.Context, users []string) (out []rollcall.UserSnapshot, err error) {
	err = x.e.untilSettled(ctx, func() (again bool, err error) {
		msg, err := x.e.one(ctx, x.at.UnixMilli(), in(x.part, &x.e.scripts.transferRead, append([]string{x.marks, dossierCost}, users...)...))
		if err != nil {
			return false, err
		}
		reply, err := msg.ToArray()
		if err != nil || len(reply) < 2 || len(reply) > len(users)+1 {
			return false, damaged("the answer to an export")
		}
		if changes, _ := reply[0].ToString(); changes != x.bans.changes {
			return true, x.readBans(ctx)
		}
		out = make([]rollcall.UserSnapshot, len(reply)-1)
		for i := range out {
			if out[i], err = x.dossier(ctx, users[i], reply[i+1]); err != nil {
				return false, err
			}
		}
		return false, nil
	})
	return out, err
}

// exportErased tells what is left of erased users: their bans, and that their sessions
// ended.
func (x *exporting) exportErased(ctx context.Context, ended []string, visit func(rollcall.UserSnapshot) error) error {
	var d rollcall.UserSnapshot
	for _, ban := range x.bans.of[""] {
		d.Bans = append(d.Bans, rollcall.BanSnapshot{Ban: ban, Home: uint16(x.part), Bits: uint8(bits.Len(uint(len(x.e.keyPrefixes) - 1)))})
	}
	slices.SortFunc(d.Bans, func(a, b rollcall.BanSnapshot) int { return bytes.Compare(a.Key[:], b.Key[:]) })
	ended = slices.DeleteFunc(ended, func(id string) bool { return x.met[id] })
	slices.Sort(ended)
	for some := range slices.Chunk(slices.Compact(ended), dossierStep) {
		refs := make([]rollcall.Ref, len(some))
		for i, id := range some {
			refs[i].ID = idOf(id)
		}
		err := x.e.eachRef(ctx, x.at, refs, &x.e.scripts.sessionLookup, []string{"0", "0"}, func(_ int, msg rueidis.RedisMessage) error {
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
