package takeover

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/rollcall/rollcall"
)

// shadowSessions asks for the sessions of the user of an entry.
func (m *Importer) shadowSessions(ctx context.Context, q *question, name string) (*differing, error) {
	var live map[string][]oldSession
	var c Comparison
	err := q.ask(func() error {
		z, found, err := m.memberOf(ctx, name)
		if err == nil && found {
			live, err = m.sessionsOf(ctx, []member{z})
		}
		return err
	}, func() error {
		for _, sessions := range live {
			if err := m.compareSessions(ctx, &c, sessions); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil || c.Differences == 0 {
		return nil, err
	}
	d := c.First[0]
	old := d.Entry + " " + d.Old
	return &differing{old: old, here: d.Here, same: old}, nil
}

const (
	shadowPage = 20 // sessions of a page
	// Of a list with dead entries more is read for a page, at most so many portions.
	pagePortion, mostPortions = 100, 10
)

// oldPage is a page of the old list: its live entries, newest first.
type oldPage struct {
	entries []oldSession
	// behind is the login time of the last entry that was looked at: of those with an earlier
	// one nothing is known. It is zero where the list ends.
	behind time.Time
}

// pageBefore reads a page of the old list: who logged in before an instant, by scores of a unit.
func (m *Importer) pageBefore(ctx context.Context, until time.Time, unit Unit) (page oldPage, err error) {
	most, least := float64(until.UnixMilli()), "-inf"
	switch {
	case unit == UnitSeconds:
		most /= 1000
	case m.opts.Unit != UnitMilliseconds:
		least = strconv.FormatFloat(firstMilliseconds, 'f', 0, 64)
	}
	for i := range int64(mostPortions) {
		c := m.src.client.B().Zrevrangebyscore().Key(m.names.key).Max("("+strconv.FormatFloat(most, 'f', -1, 64)).Min(least).
			Withscores().Limit(i*pagePortion, pagePortion).Build()
		answer, err := m.src.do(ctx, pagePortion, c)
		if err != nil {
			return page, err
		}
		scores, err := answer.AsZScores()
		if err != nil {
			return page, m.src.readError(err)
		}
		some := make([]member, len(scores))
		for i, z := range scores {
			some[i] = member{z.Member, z.Score}
		}
		live, err := m.liveOf(ctx, some)
		if err != nil {
			return page, err
		}
		if page.entries = append(page.entries, live...); len(some) < pagePortion {
			page.behind = time.Time{}
			break
		}
		if page.behind, _ = m.instant(some[len(some)-1].score); len(page.entries) >= shadowPage {
			break
		}
	}
	if len(page.entries) > shadowPage {
		page.entries = page.entries[:shadowPage]
		page.behind = page.entries[shadowPage-1].login
	}
	return page, nil
}

// liveOf returns those of some entries that are not dead, in their order.
func (m *Importer) liveOf(ctx context.Context, some []member) ([]oldSession, error) {
	byUser, err := m.sessionsOf(ctx, some)
	if err != nil {
		return nil, err
	}
	byName := make(map[string]oldSession, len(some))
	for _, sessions := range byUser {
		for _, s := range sessions {
			byName[s.member] = s
		}
	}
	var out []oldSession
	for _, z := range some {
		if s, live := byName[z.name]; live {
			out = append(out, s)
		}
	}
	return out, nil
}

// shadowPage asks for a page of the list: an entry, and who logged in before it.
func (m *Importer) shadowPage(ctx context.Context, q *question, name string) (*differing, error) {
	z, found, err := m.memberOf(ctx, name)
	at, ok := m.opts.Unit.instant(z.score)
	if err != nil || !found || !ok || at.After(m.opts.Now()) {
		return nil, err
	}
	until, unit := at.Add(time.Millisecond), m.opts.Unit.of(z.score)
	var old oldPage
	var here rollcall.Page[rollcall.Session]
	err = q.ask(func() (err error) {
		old, err = m.pageBefore(ctx, until, unit)
		return err
	}, func() (err error) {
		here, err = m.to.Sessions(ctx, rollcall.SessionQuery{
			Filter: rollcall.SessionFilter{LoginBefore: until}, Page: rollcall.PageRequest{Limit: shadowPage},
		})
		return err
	})
	if err != nil {
		return nil, err
	}
	return m.comparePages(ctx, old, here.Items, here.Next != "", unit)
}

// comparePages compares as far as both pages reach. Sessions that began here push others off the
// page here, as do those whose login is later here than in the old list.
func (m *Importer) comparePages(ctx context.Context, old oldPage, here []rollcall.Session, more bool, unit Unit) (*differing, error) {
	if more && len(here) < shadowPage {
		text := strconv.Itoa(len(here))
		return &differing{old: "a full page", here: "a page of " + text, same: text}, nil
	}
	behind := old.behind
	if last := len(here) - 1; more && here[last].LoginAt.After(behind) {
		behind = here[last].LoginAt
	}
	onPage := make(map[string]bool)
	for _, s := range here {
		onPage[s.Attrs[attrOrigin]] = true
	}

	// Who is in the old page, and not in the one here.
	there := make(map[string]bool)
	for _, s := range old.entries {
		if there[s.member] = true; onPage[s.member] || !s.login.After(behind) {
			continue
		}
		var c Comparison
		if err := m.compareSessions(ctx, &c, []oldSession{s}); err != nil {
			return nil, err
		}
		text := s.member + " " + s.login.Format(time.RFC3339Nano)
		if c.Differences > 0 {
			return &differing{old: text, here: c.First[0].Here, same: text}, nil
		}
		if missing, err := m.importedAs(ctx, s); err != nil || missing {
			return &differing{old: text, here: "not on the page", same: text}, err
		}
	}

	// Who is in the one here, and not in the old page.
	for _, s := range here {
		origin := s.Attrs[attrOrigin]
		score, err := strconv.ParseFloat(s.Attrs[attrLogin], 64)
		if err != nil || there[origin] || m.opts.Unit.of(score) != unit {
			continue
		}
		if at, ok := m.opts.Unit.instant(score); ok && at.Equal(s.LoginAt) && at.After(behind) {
			text := origin + " " + s.LoginAt.Format(time.RFC3339Nano)
			return &differing{old: "not on the page", here: text, same: text}, nil
		}
	}
	return nil, nil //nolint:nilnil // they agree
}

// importedAs reports whether an entry became a session with the login time that it has there. It
// may have begun later here, or here at all.
func (m *Importer) importedAs(ctx context.Context, old oldSession) (found bool, err error) {
	query := rollcall.SessionQuery{Filter: rollcall.SessionFilter{Users: []string{old.user}}}
	err = pages(func(p rollcall.PageRequest) (rollcall.Page[rollcall.Session], error) {
		query.Page = p
		return m.to.Sessions(ctx, query)
	}, func(list []rollcall.Session) error {
		found = found || slices.ContainsFunc(list, func(s rollcall.Session) bool {
			return s.Attrs[attrOrigin] == old.member && s.LoginAt.Equal(old.login)
		})
		return nil
	})
	return found, err
}
