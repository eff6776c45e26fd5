package redis

import (
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
