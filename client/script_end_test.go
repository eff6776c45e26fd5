package client_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rollcall/rollcall"
)

// edges are steps that a script takes once, at its end.
func (s *script) edges() []step {
	retried := rollcall.Login{User: "ann", Device: "tv", RetryKey: "once"}
	other := retried
	other.Device = "ios"
	again := func(l rollcall.Login) step {
		return step{"Login", func(ctx context.Context, one *side) (any, error) { return one.begin(ctx, l) }}
	}
	strict := again(rollcall.Login{User: "zed", App: "strict"})
	many := make([]string, rollcall.MaxBeatUsers+1)
	for i := range many {
		many[i] = fmt.Sprint("many ", i)
	}
	out := []step{
		again(retried), again(retried), again(other), strict, strict, strict, // too many
		quiet("Beat", func(ctx context.Context, one *side) error { return one.Beat(ctx, many...) }),
		quiet("Beat", func(ctx context.Context, one *side) error { return one.Beat(ctx) }),
		{"Status", func(ctx context.Context, one *side) (any, error) { return one.Status(ctx, many[:1001]...) }},
		{"TouchAll", func(ctx context.Context, one *side) (any, error) { return one.TouchAll(ctx, nil) }},
		quiet("AddFriends", func(ctx context.Context, one *side) error {
			return one.AddFriends(ctx, "ann", false, rollcall.Friend{User: "ann"})
		}),
		{"Friends", func(ctx context.Context, one *side) (any, error) {
			p, err := one.Friends(ctx, "ann", rollcall.PageRequest{Limit: 0})
			return paged(one, p, err)
		}},
		{"Ban", func(ctx context.Context, one *side) (any, error) {
			res, err := one.Ban(ctx, "ann", time.Hour, "spam", one.actor)
			return res.Ended, err
		}},
		{"BanOf", func(ctx context.Context, one *side) (any, error) {
			b, err := one.BanOf(ctx, "ann")
			b.Key = rollcall.BanKey{}
			return b, err
		}},
		again(rollcall.Login{User: "ann"}),
		{"LastEvent", func(ctx context.Context, one *side) (any, error) {
			last, err := one.LastEvent(ctx)
			one.place = last
			return last != "", err
		}},
		again(rollcall.Login{User: "new"}),
		{"Tail", func(ctx context.Context, one *side) (any, error) {
			found, err := one.Tail(ctx, one.place, 1000)
			return happened(found), err
		}},
		{"Tail", func(ctx context.Context, one *side) (any, error) { return one.Tail(ctx, "of another store", 1) }},
		{"Streaks", func(ctx context.Context, one *side) (any, error) {
			return one.Streaks(ctx, "", rollcall.DayRange{From: s.today - 40, To: s.today}, 1000)
		}},
		quiet("Unban", func(ctx context.Context, one *side) error { return one.Unban(ctx, "ann") }),
		quiet("DeleteVisitName", func(ctx context.Context, one *side) error { return one.DeleteVisitName(ctx, "a/b") }),
		quiet("DeleteVisitName", func(ctx context.Context, one *side) error { return one.DeleteVisitName(ctx, "a/b") }),
		{"Kinds", func(ctx context.Context, one *side) (any, error) { return one.Kinds(ctx) }},
		quiet("PutUser", func(ctx context.Context, one *side) error {
			_, err := one.PutUser(ctx, "new", rollcall.UserPatch{Kind: pointer("shortlived")})
			return err
		}),
		quiet("DeleteKind", func(ctx context.Context, one *side) error { return one.DeleteKind(ctx, "shortlived") }),
		quiet("Erase", func(ctx context.Context, one *side) error { return one.Erase(ctx, "new") }),
		quiet("DeleteKind", func(ctx context.Context, one *side) error { return one.DeleteKind(ctx, "shortlived") }),
		quiet("DeleteKind", func(ctx context.Context, one *side) error { return one.DeleteKind(ctx, "") }),
		{"AuditTrail", func(ctx context.Context, one *side) (any, error) {
			found, err := one.AuditTrail(ctx, rollcall.AuditQuery{Limit: 1000})
			return audited(found.Items), err
		}},
		{"AuditTrail", func(ctx context.Context, one *side) (any, error) {
			found, err := one.AuditTrail(ctx, rollcall.AuditQuery{User: "ann", Limit: 1})
			return audited(found.Items), err
		}},
		{"AuditTrail", func(ctx context.Context, one *side) (any, error) {
			return one.AuditTrail(ctx, rollcall.AuditQuery{Limit: 1001})
		}},
		timelineStep(rollcall.TimelineQuery{User: "ann", Limit: 3}),
		timelineStep(rollcall.TimelineQuery{User: "bob", Limit: 1000, Types: []rollcall.EventType{rollcall.SessionEnded, rollcall.UserOffline}}),
		timelineStep(rollcall.TimelineQuery{User: "bob", Limit: 2, Since: noon.Add(time.Minute), Until: noon.Add(time.Hour)}),
		timelineStep(rollcall.TimelineQuery{User: "nobody", Limit: 1}),
		timelineStep(rollcall.TimelineQuery{User: "", Limit: 1}),
		timelineStep(rollcall.TimelineQuery{User: "ann"}),
		timelineStep(rollcall.TimelineQuery{User: "ann", Limit: 1, Types: []rollcall.EventType{"x"}}),
		timelineStep(rollcall.TimelineQuery{User: "ann", Limit: 1, Until: noon, Since: noon}),
		timelineStep(rollcall.TimelineQuery{User: "ann", Limit: 1, Cursor: "x"}),
		{"Stats", func(ctx context.Context, one *side) (any, error) {
			st, err := one.Stats(ctx)
			st.OtherVisits, st.DiskBytes, st.Memory = 0, 0, nil // of these two, the moment decides
			return st, err
		}},
		quiet("Ready", func(ctx context.Context, one *side) error { return one.Ready(ctx) }),
	}
	return append(slices.Concat(out, s.keySteps(), webhookSteps()), quiet("Close", func(_ context.Context, one *side) error {
		if one.server == nil {
			return nil // it is closed when the test ends
		}
		return one.Close()
	}))
}

// audited is what the trails of both sides have alike: targets and some details hold ids
// that are random.
func audited(entries []rollcall.AuditEntry) []string {
	var out []string
	for _, e := range entries {
		thing, _, _ := strings.Cut(e.Target, ":")
		out = append(out, fmt.Sprint(e.Seq, " ", e.At, " ", e.Action, " ", thing, " ", e.Detail))
	}
	return out
}

func (s *script) keySteps() []step {
	create := func(k rollcall.NewKey) step {
		return step{"CreateKey", func(ctx context.Context, one *side) (any, error) {
			made, text, err := one.CreateKey(ctx, k)
			if err == nil {
				one.keys = append(one.keys, made.ID)
			}
			known := made.Hash == rollcall.HashKey(text)
			made.Hash = rollcall.KeyHash{}
			return []any{made, known, len(text)}, err
		}}
	}
	keys := step{"Keys", func(ctx context.Context, one *side) (any, error) {
		all, err := one.Keys(ctx)
		for i := range all {
			all[i].Hash = rollcall.KeyHash{}
		}
		return all[1:], err
	}}
	revoke := quiet("RevokeKey", func(ctx context.Context, one *side) error { return one.RevokeKey(ctx, one.keys[0]) })
	return []step{
		create(rollcall.NewKey{Name: "shop", Role: rollcall.RoleWriter, TTL: 90 * 24 * time.Hour}), create(rollcall.NewKey{Role: rollcall.RoleReader}),
		create(rollcall.NewKey{Role: "king"}), create(rollcall.NewKey{Role: rollcall.RoleReader, TTL: -time.Second}), keys, revoke, revoke, keys,
		quiet("RevokeKey", func(ctx context.Context, one *side) error { return one.RevokeKey(ctx, "") }),
	}
}
