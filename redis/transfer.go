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
	snapshotStep = 100    // users one script tells of at most
	snapshotCost = "4000" // what they may cost, in about microseconds
	scanStep     = 1000   // keys one SCAN looks at
)

// Export implements [rollcall.Transfer]. It gathers the users of some partitions from the names
// of all keys first, then those of the next. They come by partition, then id.
func (e *Engine) Export(ctx context.Context, at time.Time, first int, visit func(rollcall.UserSnapshot) error, done func(next, parts int) error) error {
	// An erasure has no note in an export: half of a user would stay there for good.
	if err := e.finishAllErasures(ctx, at.UnixMilli()); err != nil {
		return err
	}
	for p := first; p < len(e.keyPrefixes); {
		found, err := e.scanKeys(ctx, p)
		if err != nil {
			return err
		}
		for i := range found {
			x := &partExport{e: e, at: at, part: p, exported: make(map[string]bool)}
			if err := x.run(ctx, found[i], visit); err != nil {
				return err
			}
			found[i] = keyTraces{}
			if p++; done != nil {
				if err := done(p, len(e.keyPrefixes)); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// partExport is the export of one partition.
type partExport struct {
	e        *Engine
	at       time.Time
	part     int
	marks    string
	days     map[string]*roaring.Bitmap // kind:day
	bans     banIndex
	exported map[string]bool // ban keys and ended sessions that stand in a snapshot
}

// keyTraces is what the names of a partition's keys tell: users, and sessions that ended.
type keyTraces struct {
	users map[string]struct{}
	ended []string
}

// maxTraces bounds the traces that a walk over the names of keys gathers.
const maxTraces = 1_000_000

// scanKeys reads the names of all keys, and returns what they tell of some partitions from first
// on. Where that is too much, it lets the upper half of these partitions go, for another walk.
// One partition is all at the least.
func (e *Engine) scanKeys(ctx context.Context, first int) ([]keyTraces, error) {
	out, gathered := make([]keyTraces, len(e.keyPrefixes)-first), 0
	for i := range out {
		out[i].users = make(map[string]struct{})
	}
	for _, node := range e.client.Nodes() {
		for cursor := uint64(0); ; {
			entry, err := node.Do(ctx, node.B().Scan().Cursor(cursor).Match(e.opts.Prefix+":{*").Count(scanStep).Build()).AsScanEntry()
			if err != nil {
				return nil, errorOf(err)
			}
			for _, k := range entry.Elements {
				if e.noteKey(k, first, out) {
					gathered++
				}
			}
			for gathered > e.tracesAtOnce && len(out) > 1 {
				half := (len(out) + 1) / 2
				for _, x := range out[half:] {
					gathered -= len(x.users) + len(x.ended)
				}
				clear(out[half:])
				out = out[:half]
			}
			if cursor = entry.Cursor; cursor == 0 {
				break
			}
		}
	}
	return out, nil
}

// noteKey notes the user or the ended session that the name of a key tells, if it is of one of
// the partitions from first on that into has. It reports whether that is new.
func (e *Engine) noteKey(k string, first int, into []keyTraces) bool {
	rest, ok := strings.CutPrefix(k, e.opts.Prefix+":{")
	number, name, ok2 := strings.Cut(rest, "}:")
	p, err := strconv.Atoi(number)
	if !ok || !ok2 || err != nil || p < first || p-first >= len(into) {
		return false
	}
	part := &into[p-first]
	kind, id, _ := strings.Cut(name, ":")
	switch kind {
	case "user", "f", "u", "e":
		_, known := part.users[id]
		part.users[id] = struct{}{}
		return !known
	case "end":
		part.ended = append(part.ended, id)
		return true
	default:
		return false
	}
}

func (x *partExport) run(ctx context.Context, found keyTraces, visit func(rollcall.UserSnapshot) error) error {
	if err := x.gather(ctx, found.users); err != nil {
		return err
	}
	if err := x.readDays(ctx); err != nil {
		return err
	}
	for users := slices.Sorted(maps.Keys(found.users)); len(users) > 0; {
		snapshots, err := x.read(ctx, users[:min(len(users), snapshotStep)])
		if err != nil {
			return err
		}
		users = users[len(snapshots):]
		for _, d := range snapshots {
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

// gather adds the users who stand in lists of the partition: with a last-seen time, a number
// or a ban.
func (x *partExport) gather(ctx context.Context, users map[string]struct{}) error {
	e := x.e
	for _, name := range []string{"seen", "num"} {
		for cursor := uint64(0); ; {
			msg, err := e.one(ctx, 0, plainCall(func() rueidis.Completed {
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
	for user := range x.bans.byUser {
		if user != "" {
			users[user] = struct{}{}
		}
	}
	return nil
}

// banIndex has the bans of a partition by user, and the field banchange when they were read.
type banIndex struct {
	banChange string
	byUser    map[string][]rollcall.Ban
}

// readBans reads all bans. They are read again only if one was set or lifted since.
func (x *partExport) readBans(ctx context.Context) error {
	msg, err := x.e.one(ctx, 0, plainCall(func() rueidis.Completed {
		return x.e.client.B().Hget().Key(x.e.of(x.part, "part")).Field("banchange").Build()
	}))
	if err != nil {
		return err
	}
	changes, _ := msg.ToString() // nil if there was none yet
	x.bans = banIndex{banChange: cmp.Or(changes, "0"), byUser: make(map[string][]rollcall.Ban)}
	met := make(map[string]bool)
	return x.e.eachField(ctx, "bans", []int{x.part}, func(_ int, key, blob string) error {
		if met[key] {
			return nil
		}
		met[key] = true
		ban, err := unpackBan(key, blob)
		if err == nil && x.at.Before(ban.Until) {
			x.bans.byUser[ban.User] = append(x.bans.byUser[ban.User], ban)
		}
		return err
	})
}

// readDays reads all sets of days, and the field markchange of the first answer: by that the
// script that reads users finds out whether the sets have changed since.
func (x *partExport) readDays(ctx context.Context) error {
	x.marks, x.days = "", make(map[string]*roaring.Bitmap)
	for next := "-inf"; next != ""; {
		msg, err := x.e.one(ctx, 0, partCall(x.part, &x.e.scripts.daysExport, next))
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

// read returns snapshots of the first of some users, of one at least.
func (x *partExport) read(ctx context.Context, users []string) (out []rollcall.UserSnapshot, err error) {
	err = x.e.untilUnchanged(ctx, func() (again bool, err error) {
		msg, err := x.e.one(ctx, x.at.UnixMilli(), partCall(x.part, &x.e.scripts.transferRead, append([]string{x.marks, snapshotCost}, users...)...))
		if err != nil {
			return false, err
		}
		reply, err := msg.ToArray()
		if err != nil || len(reply) < 2 || len(reply) > len(users)+1 {
			return false, damaged("the answer to an export")
		}
		if changes, _ := reply[0].ToString(); changes != x.bans.banChange {
			return true, x.readBans(ctx)
		}
		out = make([]rollcall.UserSnapshot, len(reply)-1)
		for i := range out {
			if out[i], err = x.snapshotOf(ctx, users[i], reply[i+1]); err != nil {
				return false, err
			}
		}
		return false, nil
	})
	return out, err
}

// exportErased exports what is left of erased users: their bans, and that their sessions
// ended.
func (x *partExport) exportErased(ctx context.Context, ended []string, visit func(rollcall.UserSnapshot) error) error {
	var d rollcall.UserSnapshot
	for _, ban := range x.bans.byUser[""] {
		d.Bans = append(d.Bans, rollcall.BanSnapshot{Ban: ban, Home: uint16(x.part), Bits: uint8(bits.Len(uint(len(x.e.keyPrefixes) - 1)))})
	}
	slices.SortFunc(d.Bans, func(a, b rollcall.BanSnapshot) int { return bytes.Compare(a.Key[:], b.Key[:]) })
	ended = slices.DeleteFunc(ended, func(id string) bool { return x.exported[id] })
	slices.Sort(ended)
	for some := range slices.Chunk(slices.Compact(ended), snapshotStep) {
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
				d.Ended = append(d.Ended, r.snapshot())
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
	slices.SortFunc(d.Ended, compareSnapshots)
	return visit(d)
}
