package redis

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/rollcall/rollcall"
)

// The kinds are one set, rc:kinds, which keeps their number bounded. A server
// remembers for a while which kinds it found there, so that most commands need
// not ask. A kind that another server removed meanwhile is entered again by the
// first command that names it after that.

// kindsHold is how long a server takes a kind for known without asking again.
const kindsHold = 10 * time.Second

// kindSet has the kinds that this server found in rc:kinds.
type kindSet struct {
	mu    sync.RWMutex
	known map[string]int64 // when that was found, ms
}

func (k *kindSet) has(kind string, now int64) bool {
	if kind == rollcall.DefaultKind { // there always is room for it
		return true
	}
	k.mu.RLock()
	defer k.mu.RUnlock()
	at, ok := k.known[kind]
	return ok && at <= now && now < at+kindsHold.Milliseconds()
}

// knowKinds enters kinds in rc:kinds, all or none; it ignores "".
func (e *Engine) knowKinds(ctx context.Context, now int64, kinds ...string) error {
	args := []string{fmt.Sprint(rollcall.MaxKinds - 1)} // one is the default kind's
	for _, kind := range kinds {
		if kind != "" && !e.kinds.has(kind, now) && !slices.Contains(args[1:], kind) {
			args = append(args, kind)
		}
	}
	if len(args) == 1 {
		return nil
	}
	msg, err := e.one(ctx, 0, keyCall(e.key("kinds"), &e.scripts.kindAdd, args...))
	if err != nil {
		return err
	}
	if n, err := msg.AsInt64(); err != nil || n == 0 {
		return errors.Join(err, rollcall.Invalid("kind", "there are %d kinds already, the limit; %q would be one more", rollcall.MaxKinds, args[1]))
	}
	e.kinds.mu.Lock()
	defer e.kinds.mu.Unlock()
	for _, kind := range args[1:] {
		e.kinds.known[kind] = now
	}
	return nil
}

// Kinds implements [rollcall.Kinds].
func (e *Engine) Kinds(ctx context.Context) ([]rollcall.KindUse, error) {
	msg, err := e.one(ctx, 0, plainCall(func() rueidis.Completed { return e.client.B().Smembers().Key(e.key("kinds")).Build() }))
	if err != nil {
		return nil, err
	}
	kinds, err := msg.AsStrSlice()
	if err != nil {
		return nil, damaged("the kinds")
	}
	return e.usesOf(ctx, append(kinds, rollcall.DefaultKind))
}

// usesOf counts the users, sessions and days of kinds, and sorts them by name.
func (e *Engine) usesOf(ctx context.Context, kinds []string) ([]rollcall.KindUse, error) {
	slices.Sort(kinds)
	kinds = slices.Compact(kinds)
	out := make([]rollcall.KindUse, len(kinds))
	for i, kind := range kinds {
		out[i].Kind = kind
	}

	// Users and sessions, from all partitions.
	counts, err := e.inAllParts(ctx, 0, &e.scripts.kindUse, kinds...)
	if err != nil {
		return nil, err
	}
	for _, msg := range counts {
		n, err := msg.AsIntSlice()
		if err != nil || len(n) != 2*len(kinds) {
			return nil, damaged("the use of kinds")
		}
		for i := range out {
			out[i].Users += int(n[2*i])
			out[i].Sessions += int(n[2*i+1])
		}
	}

	// Days with marks, here and in the archive, each once.
	hot, err := e.HotDays(ctx)
	if err != nil {
		return nil, err
	}
	days := make(map[rollcall.KindDay]bool, len(hot)) // each once, though it may be hot and offloaded
	for _, d := range hot {
		days[rollcall.KindDay{Kind: d.Kind, Day: d.Day}] = true
	}
	if e.settings.Archive.Configured() {
		offloaded, err := e.settings.Archive.OffloadedDays(ctx, true)
		if err != nil {
			return nil, err
		}
		maps.Copy(days, offloaded)
	}
	for d := range days {
		i, ok := slices.BinarySearchFunc(out, d.Kind, func(k rollcall.KindUse, kind string) int { return strings.Compare(k.Kind, kind) })
		if ok {
			out[i].Days++
		}
	}
	return out, nil
}

// DeleteKind implements [rollcall.Kinds].
func (e *Engine) DeleteKind(ctx context.Context, kind string) error {
	if kind == rollcall.DefaultKind {
		return &rollcall.Error{Code: rollcall.CodeConflict, Field: "kind", Detail: "this kind is always there"}
	}
	if err := e.refuseUsed(ctx, kind); err != nil {
		return err
	}
	msg, err := e.one(ctx, 0, plainCall(func() rueidis.Completed {
		return e.client.B().Srem().Key(e.key("kinds")).Member(kind).Build()
	}))
	if err != nil {
		return err
	}
	e.kinds.mu.Lock()
	delete(e.kinds.known, kind)
	e.kinds.mu.Unlock()
	if n, err := msg.AsInt64(); err != nil || n == 0 {
		return errors.Join(err, rollcall.NotFound("kind"))
	}
	// What came between the question and the removal has the kind again.
	if err := e.refuseUsed(ctx, kind); err != nil {
		_, again := e.one(ctx, 0, plainCall(func() rueidis.Completed {
			return e.client.B().Sadd().Key(e.key("kinds")).Member(kind).Build()
		}))
		return errors.Join(err, again)
	}
	return nil
}

func (e *Engine) refuseUsed(ctx context.Context, kind string) error {
	use, err := e.usesOf(ctx, []string{kind})
	if err == nil && !use[0].Unused() {
		err = rollcall.KindInUseError(use[0])
	}
	return err
}
