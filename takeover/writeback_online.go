package takeover

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/rueidis"

	"github.com/rollcall/rollcall"
)

// writeSessions writes the sessions of users of whom one began or ended since the last look.
// The first time, and if events are missing, it goes through both sides.
func (w *WriteBack) writeSessions(ctx context.Context) error {
	if w.after == "" {
		return w.writeAllSessions(ctx)
	}
	for {
		events, err := w.from.EventsAfter(ctx, w.after, rollcall.MaxLimit, rollcall.SessionEvents)
		if errors.Is(err, rollcall.ErrEventsGone) {
			return w.writeAllSessions(ctx)
		}
		if err != nil || len(events) == 0 {
			return err
		}
		users := make(map[string]bool)
		for _, e := range events {
			if e.User != "" {
				users[e.User] = true
			}
		}
		if err := w.writeUsers(ctx, users); err != nil {
			return err
		}
		w.after = events[len(events)-1].ID
	}
}

// writeAllSessions writes the sessions of all users of either side.
func (w *WriteBack) writeAllSessions(ctx context.Context) error {
	// What happens from here on is looked at again.
	last, err := w.from.LastEvent(ctx)
	if err != nil {
		return err
	}
	err = w.src.walkZset(ctx, w.names.key, 0, func(some []member, _ uint64) error {
		users := make(map[string]bool)
		for _, z := range some {
			user, _, _ := strings.Cut(z.name, ":")
			if checkUser(user) == nil {
				users[user] = true
			}
		}
		return w.writeUsers(ctx, users)
	})
	if err != nil {
		return err
	}
	err = pages(func(p rollcall.PageRequest) (rollcall.Page[rollcall.Session], error) {
		return w.from.Sessions(ctx, rollcall.SessionQuery{Page: p})
	}, func(list []rollcall.Session) error {
		users := make(map[string]bool)
		for _, s := range list {
			users[s.User] = true
		}
		return w.writeUsers(ctx, users)
	})
	if err == nil {
		w.after = last
	}
	return err
}

// writeUsers makes the entries of users what their live sessions say.
func (w *WriteBack) writeUsers(ctx context.Context, users map[string]bool) error {
	for some := range slices.Chunk(slices.Sorted(maps.Keys(users)), portion) {
		live := make(map[string]map[string]rollcall.Session) // by user and entry
		query := rollcall.SessionQuery{Filter: rollcall.SessionFilter{Users: some}, Sort: rollcall.OldestLogin}
		err := pages(func(p rollcall.PageRequest) (rollcall.Page[rollcall.Session], error) {
			query.Page = p
			return w.from.Sessions(ctx, query)
		}, func(list []rollcall.Session) error {
			for _, s := range list { // the newest login is last, and stays
				if live[s.User] == nil {
					live[s.User] = make(map[string]rollcall.Session)
				}
				live[s.User][w.memberOf(s)] = s
			}
			return nil
		})
		if err != nil {
			return err
		}
		old, err := w.entriesOf(ctx, some)
		if err != nil {
			return err
		}
		var cmds []rueidis.Completed
		for i, user := range some {
			changes, err := w.changesOf(user, old[i], live[user])
			if err != nil {
				return err
			}
			cmds = append(cmds, changes...)
		}
		if err := w.write(ctx, cmds...); err != nil {
			return err
		}
	}
	return nil
}

// memberOf returns the entry of a session: what it was called in the old list, or the user,
// with the session's id in a list of sessions.
func (w *WriteBack) memberOf(s rollcall.Session) string {
	switch origin := s.Attrs[attrOrigin]; {
	case origin != "":
		return origin
	case w.opts.Sets != "":
		return nameWrittenBack(s)
	default:
		return s.User
	}
}

// scoreOf returns the score of a session: the one it came with, if it was imported.
func (w *WriteBack) scoreOf(s rollcall.Session) float64 {
	if score, err := strconv.ParseFloat(s.Attrs[attrLogin], 64); err == nil {
		return score
	}
	return w.opts.Unit.score(s.LoginAt)
}

// entriesOf returns which entries there may be of each of some users: those of their sets, or
// the one.
func (w *WriteBack) entriesOf(ctx context.Context, users []string) ([]map[string]bool, error) {
	out, keys := make([]map[string]bool, len(users)), make([]string, len(users))
	for i, user := range users {
		if out[i] = make(map[string]bool, 1); w.opts.Sets == "" {
			out[i][user] = true
		}
		keys[i] = w.names.sets.ofUser(user)
	}
	if w.opts.Sets == "" {
		return out, nil
	}
	return out, w.src.walkSets(ctx, keys, func(int) {}, func(i int, sessions []string) error {
		for _, session := range sessions {
			out[i][entryOf(users[i], session)] = true
			w.whole = isEntryOf(users[i], session)
		}
		return nil
	})
}

// changesOf returns what makes the entries of a user, of which old may be there, what they
// should be.
func (w *WriteBack) changesOf(user string, old map[string]bool, live map[string]rollcall.Session) ([]rueidis.Completed, error) {
	build := w.src.client.B
	var cmds []rueidis.Completed
	for _, name := range slices.Sorted(maps.Keys(live)) {
		s := live[name]
		cmds = append(cmds, build().Zadd().Key(w.names.key).ScoreMember().ScoreMember(w.scoreOf(s), name).Build())
		if _, session, ok := strings.Cut(name, ":"); ok && w.opts.Sets != "" {
			if w.whole {
				session = name
			}
			cmds = append(cmds, build().Sadd().Key(w.names.sets.ofUser(user)).Member(session).Build())
		}
		if w.names.records != nil {
			text, err := json.Marshal(recordOf(s))
			if err != nil {
				return nil, err
			}
			// A record that the old system made stays as it is.
			cmds = append(cmds, build().Set().Key(w.names.records.ofUser(name)).Value(string(text)).Nx().ExSeconds(int64(w.opts.Lifetime.Seconds())).Build())
		}
	}
	for _, name := range slices.Sorted(maps.Keys(old)) {
		if _, lives := live[name]; lives {
			continue
		}
		cmds = append(cmds, build().Zrem().Key(w.names.key).Member(name).Build())
		if _, session, ok := strings.Cut(name, ":"); ok && w.opts.Sets != "" {
			cmds = append(cmds, build().Srem().Key(w.names.sets.ofUser(user)).Member(session, name).Build())
		}
		if w.names.records != nil {
			cmds = append(cmds, build().Del().Key(w.names.records.ofUser(name)).Build())
		}
	}
	return cmds, nil
}

// recordOf is a login record, by the names under which an import finds them.
func recordOf(s rollcall.Session) map[string]string {
	out := map[string]string{"user_id": s.User, "session": s.ID.String(), "name": s.Name, "app": s.App, "device": s.Device, "kind": s.Kind, "user_agent": s.UserAgent}
	if s.IP.IsValid() {
		out["ip"] = s.IP.String()
	}
	return out
}
