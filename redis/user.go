package redis

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/enginekit"
)

// User implements [rollcall.Users].
func (e *Engine) User(ctx context.Context, user string) (rollcall.User, error) {
	p := e.partOf(user)
	out, err := e.do(ctx, 0,
		plainCall(func() rueidis.Completed {
			return e.client.B().Hmget().Key(e.of(p, "user:"+user)).Field("kind", "name").Build()
		}),
		plainCall(func() rueidis.Completed {
			return e.client.B().Zscore().Key(e.of(p, "hidden")).Member(user).Build()
		}))
	if err != nil {
		return rollcall.User{}, err
	}
	fields, err := out[0].ToArray()
	if err != nil {
		return rollcall.User{}, damaged("a user")
	}
	if len(fields) != 2 {
		return rollcall.User{}, damaged("a user")
	}
	return unpackUser(user, fields, !out[1].IsNil()), nil
}

// KindsOf implements [rollcall.Users].
func (e *Engine) KindsOf(ctx context.Context, users []string) ([]string, error) {
	calls := make([]call, len(users))
	for i, user := range users {
		calls[i] = plainCall(func() rueidis.Completed {
			return e.client.B().Hget().Key(e.of(e.partOf(user), "user:"+user)).Field("kind").Build()
		})
	}
	messages, err := e.do(ctx, 0, calls...)
	if err != nil {
		return nil, err
	}
	out := make([]string, len(users))
	for i, msg := range messages {
		kind, err := msg.ToString()
		if err != nil && !rueidis.IsRedisNil(err) { // nil if it was never set
			return nil, damaged("a user")
		}
		out[i] = cmp.Or(kind, rollcall.DefaultKind)
	}
	return out, nil
}

// unpackUser reads kind and name.
func unpackUser(id string, reply []rueidis.RedisMessage, invisible bool) rollcall.User {
	u := rollcall.User{ID: id, Kind: rollcall.DefaultKind, Invisible: invisible}
	kind, _ := reply[0].ToString() // nil if it was never set
	u.Name, _ = reply[1].ToString()
	u.Kind = cmp.Or(kind, u.Kind)
	return u
}

// followStep is how many sessions one script updates for a user who turned invisible, or
// visible again.
const followStep = 32

// PutUser implements [rollcall.Users].
func (e *Engine) PutUser(ctx context.Context, at time.Time, user string, p rollcall.UserPatch) (rollcall.User, error) {
	args := []string{user}
	if p.Kind != nil {
		if err := e.knowKinds(ctx, at.UnixMilli(), *p.Kind); err != nil {
			return rollcall.User{}, err
		}
		args = append(args, "kind", *p.Kind)
	}
	if p.Name != nil {
		args = append(args, "name", *p.Name)
	}
	if p.Invisible != nil {
		args = append(args, "invisible", flag(*p.Invisible))
	}
	msg, err := e.one(ctx, at.UnixMilli(), partCall(e.partOf(user), &e.scripts.userChange, args...))
	if err != nil {
		return rollcall.User{}, err
	}
	e.news.wake()
	reply, err := msg.ToArray()
	if err != nil || len(reply) != 4 {
		return rollcall.User{}, damaged("a user")
	}
	invisible, err1 := reply[2].AsInt64()
	left, err2 := reply[3].AsInt64()
	if err1 != nil || err2 != nil {
		return rollcall.User{}, damaged("a user")
	}

	// The user's sessions follow. If this is cut short, lists do the rest before they answer.
	for left > 0 {
		if msg, err = e.one(ctx, at.UnixMilli(), partCall(e.partOf(user), &e.scripts.userVisibility, user, strconv.Itoa(followStep))); err != nil {
			return rollcall.User{}, err
		}
		if left, err = msg.AsInt64(); err != nil {
			return rollcall.User{}, damaged("a count")
		}
	}
	return unpackUser(user, reply, invisible == 1), nil
}

// Unban implements [rollcall.Users]. A ban of an erased user that came from another engine
// may hold in several partitions. The one in the user's own partition goes last: if Unban
// is cut short before, the ban is still listed and can be lifted again.
func (e *Engine) Unban(ctx context.Context, at time.Time, user string, key rollcall.BanKey) (bool, error) {
	home := e.partOf(user)
	msg, err := e.one(ctx, at.UnixMilli(), plainCall(func() rueidis.Completed {
		return e.client.B().Hexists().Key(e.of(home, "bans")).Field(string(key[:])).Build()
	}))
	if err != nil {
		return false, err
	}
	if there, err := msg.AsInt64(); err != nil || there == 0 {
		return false, err
	}

	if err := e.liftCopies(ctx, at.UnixMilli(), home, key); err != nil {
		return false, err
	}
	if msg, err = e.oneConfirmed(ctx, at.UnixMilli(), partCall(home, &e.scripts.userUnban, user, string(key[:]))); err != nil {
		return false, err
	}
	e.news.wake()
	n, err := msg.AsInt64()
	return n == 1, err
}

// liftCopies removes a ban from all partitions but one.
func (e *Engine) liftCopies(ctx context.Context, now int64, home int, key rollcall.BanKey) error {
	var calls []call
	for p := range e.keyPrefixes {
		if p != home {
			calls = append(calls, partCall(p, &e.scripts.userUnban, "", string(key[:])))
		}
	}
	_, err := e.do(ctx, now, calls...)
	return err
}

// BanOf implements [rollcall.Users].
func (e *Engine) BanOf(ctx context.Context, at time.Time, user string, key rollcall.BanKey) (rollcall.Ban, bool, error) {
	p := e.partOf(user)
	msg, err := e.one(ctx, at.UnixMilli(), plainCall(func() rueidis.Completed {
		return e.client.B().Hget().Key(e.of(p, "bans")).Field(string(key[:])).Build()
	}))
	if err != nil || msg.IsNil() {
		return rollcall.Ban{}, false, err
	}
	blob, _ := msg.ToString()
	ban, err := unpackBan(string(key[:]), blob)
	if err != nil || !at.Before(ban.Until) {
		return rollcall.Ban{}, false, err
	}
	return ban, true, nil
}

// Bans implements [rollcall.Users].
func (e *Engine) Bans(ctx context.Context, at time.Time, r rollcall.PageRequest) (rollcall.Page[rollcall.Ban], error) {
	var page rollcall.Page[rollcall.Ban]
	byKey := make(map[rollcall.BanKey]rollcall.Ban)
	err := e.eachField(ctx, "bans", e.allParts(), func(_ int, key, blob string) error {
		ban, err := unpackBan(key, blob)
		if err != nil {
			return err
		}
		// one of an erased user may hold in several partitions, and the user
		// have been banned again since in their own
		if have, ok := byKey[ban.Key]; at.Before(ban.Until) && (!ok || have.User == "") {
			byKey[ban.Key] = ban
		}
		return nil
	})
	if err != nil {
		return page, err
	}
	bans := slices.Collect(maps.Values(byKey))
	slices.SortFunc(bans, func(a, b rollcall.Ban) int { return strings.Compare(enginekit.BanPlace(a), enginekit.BanPlace(b)) })
	return enginekit.PageOf(bans, r, enginekit.BanPlace), nil
}
