package takeover

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rollcall/rollcall"
)

// compareText is the order of texts.
func compareText(a, b string) int { return strings.Compare(a, b) }

// enterOnline enters entries of an online list, as sessions. All sessions of a user are
// entered at once, so of a list of sessions the user's set is read.
func (m *Importer) enterOnline(ctx context.Context, some []member) error {
	byUser, err := m.sessionsOf(ctx, some)
	if err != nil {
		return err
	}
	for part := range slices.Chunk(byRank(slices.Collect(maps.Keys(byUser))), portion) {
		here, err := m.to.Status(ctx, part...)
		if err != nil {
			return err
		}
		var unknown []rollcall.UserSnapshot
		for i, user := range part {
			if !here[i].LastSeen.IsZero() || here[i].Sessions > 0 || m.past == nil {
				if err := m.settle(ctx, user, byUser[user]); err != nil {
					return err
				}
				continue
			}
			unknown = append(unknown, m.snapshotOf(user, byUser[user]))
		}
		err = m.enterAll(ctx, unknown, func(d *rollcall.UserSnapshot) error { return m.settle(ctx, d.User, byUser[d.User]) })
		if err != nil {
			return err
		}
	}
	return nil
}

// snapshotOf is a user of whom nothing is known here.
func (m *Importer) snapshotOf(user string, sessions []oldSession) rollcall.UserSnapshot {
	d := rollcall.UserSnapshot{User: user}
	for i := range sessions {
		s := sessions[i].snapshot(m.opts.Idle, m.opts.Lifetime)
		d.Sessions = append(d.Sessions, s)
		if at := second(s.LoginAt); at.After(d.LastSeen) {
			d.LastSeen = at
		}
	}
	slices.SortFunc(d.Sessions, func(a, b rollcall.SessionSnapshot) int { return compareText(string(a.ID[:]), string(b.ID[:])) })
	return d
}

// sessionsOf returns the live sessions of the users of entries, by user. Those of
// entries that are dead are counted.
func (m *Importer) sessionsOf(ctx context.Context, some []member) (map[string][]oldSession, error) {
	entries := make(map[string]member, len(some))
	for _, z := range some {
		entries[z.name] = z
	}
	if err := m.addOthers(ctx, entries); err != nil {
		return nil, err
	}
	var live []oldSession
	read := make(map[string]bool, len(some))
	for _, z := range some {
		read[z.name] = true
	}
	for name, z := range entries {
		user, _, _ := strings.Cut(name, ":")
		at, ok := m.instant(z.score)
		switch {
		case checkUser(user) != nil || !ok:
			if read[name] {
				m.refuse(name, errors.Join(checkUser(user), notTime(ok)))
			}
		case plainText(name, rollcall.MaxAttrValueLen) == "":
			if read[name] { // it could not be known again
				m.refuse(name, fmt.Errorf("an entry has at most %d bytes of UTF-8, without control characters", rollcall.MaxAttrValueLen))
			}
		case !at.After(m.opts.Now().Add(-min(m.opts.Lifetime, m.opts.Idle))):
			if read[name] {
				m.summary.Dead++
			}
		default:
			live = append(live, oldSession{member: name, user: user, score: z.score, login: at})
		}
	}
	slices.SortFunc(live, func(a, b oldSession) int { return compareText(a.member, b.member) })
	byUser := make(map[string][]oldSession)
	for part := range slices.Chunk(live, portion) {
		there, err := m.addRecords(ctx, part)
		if err != nil {
			return nil, err
		}
		for i := range part {
			if !there[i] {
				if read[part[i].member] {
					m.summary.Dead++
				}
				continue
			}
			byUser[part[i].user] = append(byUser[part[i].user], part[i])
		}
	}
	return byUser, nil
}

func notTime(ok bool) error {
	if ok {
		return nil
	}
	return errors.New("its score is no time")
}

// addOthers adds the other sessions of the users of entries, from their sets.
func (m *Importer) addOthers(ctx context.Context, entries map[string]member) error {
	users := make(map[string]bool)
	for name := range entries {
		if user, _, ofSession := strings.Cut(name, ":"); ofSession {
			users[user] = true
		}
	}
	for part := range slices.Chunk(slices.Sorted(maps.Keys(users)), portion) {
		keys := make([]string, len(part))
		for i, user := range part {
			keys[i] = m.names.sets.ofUser(user)
		}
		var missing []string
		err := m.src.walkSets(ctx, keys, m.refuseSet(keys), func(i int, sessions []string) error {
			for _, session := range sessions {
				if name := entryOf(part[i], session); entries[name].name == "" {
					missing = append(missing, name)
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		for some := range slices.Chunk(missing, portion) {
			scores, there, err := m.src.scores(ctx, m.names.key, some)
			if err != nil {
				return err
			}
			for i := range some {
				if there[i] {
					entries[some[i]] = member{some[i], scores[i]}
				}
			}
		}
	}
	return nil
}

// entryOf returns the entry of a list for what the set of a user holds: a session, or in some
// systems the whole entry.
func entryOf(user, inSet string) string {
	if isEntryOf(user, inSet) {
		return inSet
	}
	return user + ":" + inSet
}

func isEntryOf(user, inSet string) bool { return strings.HasPrefix(inSet, user+":") }

// addRecords reads the login records of entries, and reports which there are. Without records
// all are taken for live.
func (m *Importer) addRecords(ctx context.Context, list []oldSession) ([]bool, error) {
	if m.names.records == nil {
		there := make([]bool, len(list))
		for i := range there {
			there[i] = true
		}
		return there, nil
	}
	keys := make([]string, len(list))
	for i := range list {
		keys[i] = m.names.records.ofUser(list[i].member)
	}
	texts, err := m.src.texts(ctx, keys, mostOfRecord)
	there := make([]bool, len(texts))
	for i := range texts {
		there[i] = texts[i].there
		if len(texts[i].text) <= mostOfRecord {
			list[i].record = readRecord(texts[i].text)
		}
	}
	return there, err
}

// settle brings the sessions of a user who is known here to what the old list says: sessions
// that are missing begin now, and those that are no longer in it end.
func (m *Importer) settle(ctx context.Context, user string, wanted []oldSession) error {
	here, own := make(map[string]rollcall.Session), make(map[string]rollcall.Session)
	query := rollcall.SessionQuery{Filter: rollcall.SessionFilter{Users: []string{user}}}
	err := pages(func(p rollcall.PageRequest) (rollcall.Page[rollcall.Session], error) {
		query.Page = p
		return m.to.Sessions(ctx, query)
	}, func(list []rollcall.Session) error {
		for _, s := range list {
			if s.Attrs[attrLogin] != "" {
				here[s.Attrs[attrOrigin]] = s
			} else {
				own[nameWrittenBack(s)], own[s.User] = s, s
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for i := range wanted {
		s, found := here[wanted[i].member]
		delete(here, wanted[i].member)
		if found && s.Attrs[attrLogin] == wanted[i].scoreText() || !found && wanted[i].isOf(own[wanted[i].member]) {
			m.summary.Already++
			continue
		}
		login := wanted[i].begin()
		if found {
			login.Evict = []rollcall.SessionID{s.ID}
		}
		if _, err := m.to.Login(ctx, login); err != nil {
			switch rollcall.CodeOf(err) {
			case rollcall.CodeInvalidArgument, rollcall.CodeUserBanned, rollcall.CodeSessionLimit:
				m.refuse(wanted[i].member, err)
				continue
			}
			return err
		}
		m.summary.Moved++
		if found {
			if err := m.end(ctx, s); err != nil {
				return err
			}
		}
	}
	// The sets may be out of step with the list, so it is the list that decides who has left.
	left, err := m.goneOf(ctx, slices.Collect(maps.Values(here)))
	for _, s := range left {
		if err == nil {
			err = m.end(ctx, s)
		}
	}
	return err
}

// end ends a session that the old list no longer has.
func (m *Importer) end(ctx context.Context, s rollcall.Session) error {
	result, err := m.to.Kick(ctx, rollcall.Kick{Session: s.ID, Cause: rollcall.CauseLogout})
	if code := rollcall.CodeOf(err); code == rollcall.CodeNotFound || code == rollcall.CodeSessionEnded {
		return nil
	}
	m.summary.Ended += int64(result.Ended)
	return err
}

// endGone ends the imported sessions that are no longer in the old list.
func (m *Importer) endGone(ctx context.Context) error {
	return pages(func(p rollcall.PageRequest) (rollcall.Page[rollcall.Session], error) {
		return m.to.Sessions(ctx, rollcall.SessionQuery{Page: p})
	}, func(list []rollcall.Session) error {
		gone, err := m.goneOf(ctx, list)
		for _, s := range gone {
			if err == nil {
				err = m.end(ctx, s)
			}
		}
		return err
	})
}

// goneOf returns those of some sessions that were imported, and that the old list does not have.
func (m *Importer) goneOf(ctx context.Context, list []rollcall.Session) ([]rollcall.Session, error) {
	imported := make([]rollcall.Session, 0, len(list))
	for _, s := range list {
		if s.Attrs[attrOrigin] != "" {
			imported = append(imported, s)
		}
	}
	var gone []rollcall.Session
	for part := range slices.Chunk(imported, portion) {
		members := make([]string, len(part))
		for i := range part {
			members[i] = part[i].Attrs[attrOrigin]
		}
		_, there, err := m.src.scores(ctx, m.names.key, members)
		if err != nil {
			return nil, err
		}
		for i := range part {
			if !there[i] {
				gone = append(gone, part[i])
			}
		}
	}
	return gone, nil
}
