package client_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/rollcall/rollcall"
)

func pointer[T any](v T) *T { return &v }

// quiet is a step that answers nothing.
func quiet(method string, run func(context.Context, *side) error) step {
	return step{method, func(ctx context.Context, one *side) (any, error) { return nil, run(ctx, one) }}
}

func (s *script) aboutSession() step {
	id, ref := s.session()
	_, second := s.session()
	switch s.rng.IntN(8) {
	case 7:
		return step{"Leave", func(ctx context.Context, one *side) (any, error) {
			named := ref(one)
			if named.Token == "" {
				named.Token = "rct_nonsense" // by its token alone
			}
			return one.Leave(ctx, named)
		}}
	case 0:
		return step{"Session", func(ctx context.Context, one *side) (any, error) {
			return one.Session(ctx, id(one))
		}}
	case 1:
		patch := rollcall.SessionPatch{Name: one(s, nil, pointer(""), pointer("New name")), App: one(s, nil, pointer("mail"))}
		if s.rng.IntN(2) == 0 {
			patch.Attrs = &map[string]string{"city": "Köln"}
		} else if s.rng.IntN(2) == 0 {
			patch.Attrs = new(map[string]string)
		}
		return step{"UpdateSession", func(ctx context.Context, one *side) (any, error) {
			return one.UpdateSession(ctx, id(one), patch)
		}}
	case 2:
		return step{"Rotate", func(ctx context.Context, one *side) (any, error) {
			live, token, err := one.Rotate(ctx, id(one))
			if err == nil {
				one.tokens[slices.Index(one.sessions, live.ID)] = token
			}
			return live, err
		}}
	case 3:
		return step{"Verify", func(ctx context.Context, one *side) (any, error) { return one.Verify(ctx, ref(one)) }}
	case 4:
		return step{"TouchAll", func(ctx context.Context, one *side) (any, error) {
			touched, err := one.TouchAll(ctx, []rollcall.SessionRef{ref(one), second(one), {Token: "rct_nonsense"}, second(one)})
			return each(touched, func(t rollcall.Touched) any {
				cause := rollcall.Cause("")
				if t.Session.End != nil {
					cause = t.Session.End.Cause
				}
				return map[string]any{"live": t.Live, "cause": cause}
			}), err
		}}
	default:
		return step{"Touch", func(ctx context.Context, one *side) (any, error) { return one.Touch(ctx, ref(one)) }}
	}
}

func each[T, U any](in []T, show func(T) U) []U {
	var out []U
	for _, v := range in {
		out = append(out, show(v))
	}
	return out
}

func (s *script) filter() rollcall.SessionFilter {
	var f rollcall.SessionFilter
	switch s.rng.IntN(9) {
	case 0:
		f.Users = []string{s.anyUser(), s.user()}
	case 1:
		f.Users = []string{}
	case 2:
		f.Kind, f.Device = one(s, "staff", "user", "No Kind"), one(s, "web", "")
	case 3:
		f.IP = netip.MustParsePrefix(one(s, "192.0.2.0/24", "192.0.2.1/32", "::/0"))
	case 4:
		f.Attrs = map[string]string{"city": "Ulm"}
	case 5:
		f.Name = "ann"
	case 6:
		f.SeenWithin = time.Duration(s.rng.IntN(300)-5) * time.Second
	case 7:
		f.LoginAfter, f.LoginBefore = noon.Add(time.Minute), noon.Add(time.Hour)
	}
	return f
}

func (s *script) kick() step {
	id, _ := s.session()
	k := rollcall.Kick{Reason: one(s, "", "house rules"), DryRun: s.rng.IntN(3) == 0}
	bySession := false
	switch s.rng.IntN(8) {
	case 0, 1:
		k.User = s.user()
	case 2:
		k.User, k.Device = s.user(), "web"
	case 3:
		k.User, k.Ban = s.user(), 30*time.Second
	case 4:
		f := s.filter()
		k.Filter = &f
	case 5:
		k.All = s.rng.IntN(4) == 0
	default:
		bySession = true
		if s.rng.IntN(2) == 0 {
			k = rollcall.Kick{Cause: rollcall.CauseLogout}
		}
	}
	return step{"Kick", func(ctx context.Context, one *side) (any, error) {
		k := k
		k.Actor = one.actor
		if bySession {
			k.Session = id(one)
		}
		res, err := one.Kick(ctx, k)
		slices.SortFunc(res.Sessions, func(a, b rollcall.SessionID) int { return a.Time().Compare(b.Time()) }) // of several users they come in any order
		return res, err
	}}
}

func (s *script) list() step {
	q := rollcall.SessionQuery{Filter: s.filter(), Sort: one(s, "", rollcall.NewestLogin, rollcall.OldestLogin, rollcall.NewestSeen, "sideways"), Page: s.page()}
	if q.Filter.Users != nil && len(q.Filter.Users) == 0 { // then nothing else is looked at
		q.Sort, q.Page = "", rollcall.PageRequest{Limit: 3}
	}
	return step{"Sessions", func(ctx context.Context, one *side) (any, error) {
		var all []any
		for q := q; ; q.Page.Cursor, q.Page.Number = one.cursor, 0 {
			p, err := one.Sessions(ctx, q)
			out, err := paged(one, p, err)
			if all = append(all, out); err != nil || one.cursor == "" || q.Page.Limit == 0 {
				return all, err
			}
		}
	}}
}

func (s *script) presence() step {
	users := []string{s.user(), s.user(), s.anyUser()}
	window, p := one(s, 0, 0, time.Minute, time.Hour, -time.Second, 200*24*time.Hour), s.page()
	switch s.rng.IntN(11) {
	case 0, 1:
		return quiet("Beat", func(ctx context.Context, one *side) error { return one.Beat(ctx, users...) })
	case 2:
		return step{"OnlineCount", func(ctx context.Context, one *side) (any, error) { return one.OnlineCount(ctx, window) }}
	case 3:
		return step{"KnownCount", func(ctx context.Context, one *side) (any, error) { return one.KnownCount(ctx) }}
	case 4:
		return step{"Online", func(ctx context.Context, one *side) (any, error) {
			found, err := one.Online(ctx, window, p)
			return paged(one, found, err)
		}}
	case 5:
		return step{"KnownUsers", func(ctx context.Context, one *side) (any, error) {
			found, err := one.KnownUsers(ctx, p)
			return paged(one, found, err)
		}}
	case 6:
		return step{"Status", func(ctx context.Context, one *side) (any, error) { return one.Status(ctx, users...) }}
	case 7:
		return step{"LastSeen", func(ctx context.Context, one *side) (any, error) {
			at, ago, err := one.LastSeen(ctx, users[0])
			return []any{at, ago}, err
		}}
	case 9:
		q := rollcall.SessionCountQuery{By: one(s, rollcall.ByApp, rollcall.ByDevice, rollcall.ByKind, "ip"), Limit: one(s, 0, 1, 1001)}
		return step{"SessionCounts", func(ctx context.Context, one *side) (any, error) { return one.SessionCounts(ctx, q) }}
	case 8:
		q := rollcall.SampleQuery{Step: one(s, "", rollcall.StepMinute, rollcall.StepHour, "5m"), From: one(s, time.Time{}, noon, noon.Add(-9*24*time.Hour))}
		return step{"Samples", func(ctx context.Context, one *side) (any, error) { return one.Samples(ctx, q) }}
	default:
		return step{"ClearPresence", func(ctx context.Context, one *side) (any, error) { return one.ClearPresence(ctx, window*20) }}
	}
}

func (s *script) aboutUser() step {
	user, p := s.anyUser(), s.page()
	switch s.rng.IntN(8) {
	case 0:
		patch := rollcall.UserPatch{Name: one(s, nil, pointer("Ann Other")), Kind: one(s, nil, pointer("staff"), pointer("")), Invisible: one(s, nil, pointer(true), pointer(false))}
		return step{"PutUser", func(ctx context.Context, one *side) (any, error) { return one.PutUser(ctx, user, patch) }}
	case 1:
		return quiet("Erase", func(ctx context.Context, one *side) error { return one.Erase(ctx, user) })
	case 2:
		d := one(s, time.Minute, time.Hour, 0, -time.Second)
		return step{"Ban", func(ctx context.Context, one *side) (any, error) {
			res, err := one.Ban(ctx, user, d, "spam", one.actor)
			var e *rollcall.Error
			if errors.As(err, &e) && e.Field == "ban" {
				e.Field = "duration" // as the route calls it
			}
			return res.Ended, err
		}}
	case 3:
		return quiet("Unban", func(ctx context.Context, one *side) error { return one.Unban(ctx, user) })
	case 4:
		return step{"BanOf", func(ctx context.Context, one *side) (any, error) {
			b, err := one.BanOf(ctx, user)
			b.Key = rollcall.BanKey{}
			return b, err
		}}
	case 5:
		return step{"Bans", func(ctx context.Context, one *side) (any, error) {
			found, err := one.Bans(ctx, p)
			for i := range found.Items {
				found.Items[i].Key = rollcall.BanKey{}
			}
			return paged(one, found, err)
		}}
	default:
		return step{"User", func(ctx context.Context, one *side) (any, error) {
			u, err := one.User(ctx, user)
			if u.Ban != nil {
				u.Ban.Key = rollcall.BanKey{}
			}
			return u, err
		}}
	}
}

func (s *script) friends() step {
	user, mutual, p := s.user(), s.rng.IntN(2) == 0, s.page()
	list := []rollcall.Friend{{User: s.anyUser()}, {User: s.user(), Since: one(s, time.Time{}, noon.Add(-time.Hour))}}
	switch s.rng.IntN(6) {
	case 0, 1:
		return quiet("AddFriends", func(ctx context.Context, one *side) error { return one.AddFriends(ctx, user, mutual, list[0]) })
	case 2:
		return quiet("RemoveFriend", func(ctx context.Context, one *side) error {
			return one.RemoveFriend(ctx, user, list[0].User, mutual)
		})
	case 3:
		return quiet("ReplaceFriends", func(ctx context.Context, one *side) error { return one.ReplaceFriends(ctx, user, list) })
	case 4:
		return step{"Friends", func(ctx context.Context, one *side) (any, error) {
			found, err := one.Friends(ctx, user, p)
			return paged(one, found, err)
		}}
	default:
		q := rollcall.FriendQuery{User: user, Window: one(s, 0, time.Minute, -time.Second), Sort: one(s, "", rollcall.FriendsBySince, "sideways"), Page: p}
		return step{"OnlineFriends", func(ctx context.Context, one *side) (any, error) {
			found, err := one.OnlineFriends(ctx, q)
			return paged(one, found, err)
		}}
	}
}

// events asks what has happened since the last time.
func (s *script) events() step {
	limit := one(s, 1000, 1000, 0)
	return step{"EventsAfter", func(ctx context.Context, one *side) (any, error) {
		found, err := one.EventsAfter(ctx, one.place, limit)
		if len(found) > 0 {
			one.place = found[len(found)-1].ID
		}
		return happened(found), err
	}}
}

// happened are events without their ids, in an order that both sides have.
func happened(events []rollcall.Event) []string {
	out := each(events, func(e rollcall.Event) string {
		return fmt.Sprintln(e.At.UTC().Format(time.RFC3339Nano), e.Type, e.User, e.Session, e.Cause, e.Reason, e.Actor, e.ID != "")
	})
	slices.Sort(out)
	return out
}
