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
	switch s.rng.IntN(9) {
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
	default:
		return step{"ClearPresence", func(ctx context.Context, one *side) (any, error) { return one.ClearPresence(ctx, window*20) }}
	}
}

// user1 asks about one user.
func (s *script) user1() step {
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

func (s *script) marks() step {
	var marks []rollcall.Mark
	for range s.rng.IntN(6) {
		marks = append(marks, rollcall.Mark{User: s.anyUser(), Kind: one(s, "", "staff"), Day: s.today - rollcall.Day(s.rng.IntN(30))})
	}
	old := append(slices.Clone(marks), rollcall.Mark{User: s.user(), Day: s.today - 40})
	switch s.rng.IntN(4) {
	case 0:
		return step{"Mark", func(ctx context.Context, one *side) (any, error) {
			marked, already, err := one.Mark(ctx, marks...)
			return []int{marked, already}, err
		}}
	case 1:
		anyAge := s.rng.IntN(2) == 0
		return step{"Unmark", func(ctx context.Context, one *side) (any, error) { return one.Unmark(ctx, anyAge, old...) }}
	default:
		return step{"ImportMarks", func(ctx context.Context, one *side) (any, error) {
			marked, already, err := one.ImportMarks(ctx, old...)
			return []int{marked, already}, err
		}}
	}
}

func (s *script) figures() step {
	user, kind, d, p := s.anyUser(), one(s, "", "staff", "user", "No Kind"), s.days(), s.page()
	period := one(s, "", rollcall.PeriodDay, rollcall.PeriodMonth, "century")
	switch s.rng.IntN(7) {
	case 0:
		return step{"Attended", func(ctx context.Context, one *side) (any, error) { return one.Attended(ctx, user, kind, d) }}
	case 1:
		q := rollcall.ActiveQuery{Range: d, Kind: kind, Match: one(s, "", rollcall.MatchEvery, "some"), Page: p}
		return step{"Active", func(ctx context.Context, one *side) (any, error) {
			found, err := one.Active(ctx, q)
			return paged(one, found, err)
		}}
	case 2:
		q := rollcall.SeriesQuery{Range: d, Kind: kind, MAU: one(s, "", rollcall.MAUMonth, "7")}
		return step{"Series", func(ctx context.Context, one *side) (any, error) { return one.Series(ctx, q) }}
	case 3:
		q := rollcall.RetentionQuery{Range: d, Kind: kind, Period: period, Cohort: one(s, "", rollcall.CohortRecurring, "x"), Measure: one(s, "", rollcall.MeasureOnOrAfter, "x")}
		return step{"Retention", func(ctx context.Context, one *side) (any, error) {
			r, err := one.Retention(ctx, q)
			return shares(r), err
		}}
	case 4:
		return step{"Lifecycle", func(ctx context.Context, one *side) (any, error) {
			return one.Lifecycle(ctx, rollcall.LifecycleQuery{Range: d, Kind: kind, Period: period})
		}}
	case 5:
		return step{"ActiveDays", func(ctx context.Context, one *side) (any, error) { return one.ActiveDays(ctx, kind, d) }}
	default:
		limit := one(s, 1, 20, 0, 1001)
		return step{"Streaks", func(ctx context.Context, one *side) (any, error) { return one.Streaks(ctx, kind, d, limit) }}
	}
}

func (s *script) visits() step {
	name, visitors := one(s, "", "front page", "a/b"), []string{s.user(), one(s, "v1", "v2", "v3", "")}
	hour := noon.Truncate(time.Hour)
	switch s.rng.IntN(4) {
	case 0:
		q := rollcall.VisitQuery{
			Name: name, From: hour.Add(-3 * time.Hour), To: hour.Add(one(s, time.Hour, 24*time.Hour, -5*time.Hour, time.Minute)),
			By: one(s, "", rollcall.VisitsByHour, "minute"),
		}
		return step{"Visitors", func(ctx context.Context, one *side) (any, error) { return one.Visitors(ctx, q) }}
	case 1:
		return step{"VisitNames", func(ctx context.Context, one *side) (any, error) { return one.VisitNames(ctx) }}
	default:
		return quiet("Visit", func(ctx context.Context, one *side) error { return one.Visit(ctx, name, visitors...) })
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
		{"Stats", func(ctx context.Context, one *side) (any, error) {
			st, err := one.Stats(ctx)
			st.OtherVisits, st.DiskBytes, st.Memory = 0, 0, nil // of these two, the moment decides
			return st, err
		}},
		quiet("Ready", func(ctx context.Context, one *side) error { return one.Ready(ctx) }),
	}
	return append(append(out, s.keySteps()...), quiet("Close", func(_ context.Context, one *side) error {
		if one.server == nil {
			return nil // it is closed when the test ends
		}
		return one.Close()
	}))
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
