package local

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/testbudget"
)

// compare holds what the store answers to what is true: nothing may be there that
// is not true, and everything must be that no loss speaks of.
func (s *fullStore) compare(what string, losses []Loss) {
	ctx, r := context.Background(), require.New(s.t)
	lost := func(tables ...byte) bool {
		text := fmt.Sprint(losses)
		for _, t := range tables {
			if strings.Contains(text, fmt.Sprintf("(%c)", t)) {
				return true
			}
		}
		return strings.Contains(text, "commands in the journal")
	}
	// Of a gap in the journal the report says that what was forgotten, erased and
	// revoked in it is undone.
	gap := strings.Contains(fmt.Sprint(losses), "commands in the journal")
	for text, user := range s.live {
		if _, err := s.roll.Verify(ctx, rollcall.SessionRef{Token: text}); err != nil {
			r.True(lost(tabSession, tabTouch, tabTouched, tabMeta), "%s: the session of %s is lost: %v\n%v", what, user, err, losses)
			r.Contains([]rollcall.Code{rollcall.CodeUnauthenticated, rollcall.CodeSessionEnded}, rollcall.CodeOf(err))
		}
	}
	for text, user := range s.ended {
		_, err := s.roll.Verify(ctx, rollcall.SessionRef{Token: text})
		r.Error(err, "%s: an ended session of %s lives", what, user)
	}
	page, err := s.roll.Sessions(ctx, rollcall.SessionQuery{Page: rollcall.PageRequest{Limit: 1}})
	r.NoError(err)
	r.LessOrEqual(page.Total, len(s.live), what)
	s.compareDays(what, gap, lost(tabDay, tabBlock, tabID, tabKind))
	for user := range s.friends {
		got, err := s.roll.Friends(ctx, user, rollcall.PageRequest{Limit: 100})
		r.NoError(err)
		for _, f := range got.Items {
			r.Contains(s.friends[user], f.User, what)
		}
		if !lost(tabFriend, tabBlock, tabID) {
			r.Len(got.Items, len(s.friends[user]), what)
		}
	}
	for i := range 3 {
		user := fmt.Sprint("banned", i)
		_, err := s.roll.Login(ctx, rollcall.Login{User: user})
		r.True(err != nil || lost(tabBan), "%s: the ban of %s is lost, and nothing says so", what, user)
	}
	for text, valid := range s.keys {
		_, err := s.roll.Authenticate(ctx, text)
		r.True(valid || err != nil || gap, "%s: a revoked key is valid", what)
		r.True(!valid || err == nil || lost(tabKey), "%s: a key is lost, and nothing says so", what)
	}
	s.compareSeen(what, gap, lost(tabSeen, tabBeat, tabForgot, tabBlock, tabID, tabSession, tabTouch, tabTouched, tabHeard, tabGone))
}

func (s *fullStore) compareDays(what string, gap, lost bool) {
	r := require.New(s.t)
	first := rollcall.DayOf(startOfTests(), time.UTC) - 44
	last := rollcall.DayOf(s.clock.Now(), time.UTC)
	truth := map[rollcall.Day]int{}
	for user, days := range s.days {
		got, err := s.eng.daysOf(user, first, last)
		r.NoError(err)
		for _, d := range got {
			r.Contains(days, d, "%s: %s was not there", what, user)
		}
		for _, d := range days {
			truth[d]++
			r.True(lost || slices.Contains(got, d), "%s: the mark of %s on %v is lost, and nothing says so", what, user, d)
		}
	}
	for day := first; day <= last; day++ {
		n := 0
		for _, p := range s.eng.parts {
			for id, set := range p.days.sets {
				if rollcall.Day(id.day) == day {
					n += int(set.GetCardinality())
				}
			}
		}
		r.LessOrEqual(n, truth[day], "%s: %v", what, day)
	}
	for _, user := range s.erased {
		r.True(gap || !s.eng.hasNumber(user), "%s: %s was erased", what, user)
	}
}

// daysOf reads the hot days of a user.
func (e *Engine) daysOf(user string, from, to rollcall.Day) (out []rollcall.Day, err error) {
	p := e.partitionOf(user)
	n, ok := p.find(user)
	if !ok {
		return nil, nil
	}
	for id, set := range p.days.sets {
		if rollcall.Day(id.day) >= from && rollcall.Day(id.day) <= to && set.Contains(n) {
			out = append(out, rollcall.Day(id.day))
		}
	}
	return out, nil
}

func (s *fullStore) compareSeen(what string, gap, lost bool) {
	r := require.New(s.t)
	for _, p := range s.eng.parts {
		for n := range p.dir.Limit() {
			if !p.dir.Has(n) {
				continue
			}
			user, last := p.dir.ID(n), p.presence.seen.Last(n)
			if last == 0 || strings.HasSuffix(user, "-then") || strings.HasPrefix(user, "banned") {
				continue
			}
			at, ok := s.seen[user]
			r.True(ok || gap, "%s: %s was forgotten, and is remembered", what, user)
			r.LessOrEqual(int64(last), max(at.Unix(), s.clock.Now().Unix()), what)
		}
	}
	for user := range s.seen {
		p := s.eng.partitionOf(user)
		n, ok := p.find(user)
		r.True(lost || ok && p.presence.seen.Last(n) != 0, "%s: when %s was seen is lost, and nothing says so", what, user)
	}
}

func TestRandomDamageIsRepairedAndNoAnswerIsWrong(t *testing.T) {
	for _, closed := range []bool{true, false} {
		t.Run(fmt.Sprint("closed: ", closed), func(t *testing.T) {
			t.Parallel()
			sound := newFullStore(t, 120, closed)
			sound.asItIs()
			rng := rand.New(rand.NewPCG(7, 1)) //nolint:gosec // chance, not secrets
			var names []string
			for name := range filesOf(t, sound.fs, storeName) {
				names = append(names, name)
			}
			slices.Sort(names)
			repaired := 0
			for round := range testbudget.Rounds(t, testbudget.Budget{Least: 15, Time: 300 * time.Millisecond}) {
				s := *sound
				s.t, s.fs = t, sound.copied()
				var did []string
				for range 1 + rng.IntN(3) {
					did = append(did, s.harm(rng, names))
				}
				what := fmt.Sprintf("round %d: %s", round, strings.Join(did, ", "))
				out, err := s.repair()
				if err != nil { // only if nobody can tell which tables count
					require.ErrorContains(t, err, "MANIFEST", what)
					continue
				}
				if out.Healthy { // bytes that mean nothing
					continue
				}
				repaired++
				report, err := Check(storeName, s.options(), s.clock.Now())
				require.NoError(t, err, what)
				require.Empty(t, report.Faults, what)
				s.clock = rollcall.NewManualClock(s.clock.Now())
				s.open(0)
				s.compare(what, out.Losses)
				s.close()
			}
			require.Positive(t, repaired)
		})
	}
}

// asItIs makes sure that the undamaged store says what is true.
func (s *fullStore) asItIs() {
	copied := *s
	copied.fs, copied.clock = s.copied(), rollcall.NewManualClock(s.clock.Now())
	copied.open(0)
	copied.compare("undamaged", nil)
	copied.close()
}

// harm damages one file.
func (s *fullStore) harm(rng *rand.Rand, names []string) string {
	for {
		name := names[rng.IntN(len(names))]
		b := []byte(nil)
		if exists(s.fs, name) {
			b = contentOf(s.t, s.fs, name)
		}
		used := len(b)
		if strings.Contains(name, "/journal/") { // most of it is zeros
			used = min(used, 24<<10)
		}
		if used == 0 || strings.HasSuffix(name, "LOCK") {
			continue
		}
		at := rng.IntN(used)
		switch rng.IntN(10) {
		case 0:
			require.NoError(s.t, s.fs.Remove(name))
			d, err := s.fs.OpenDir(path.Dir(name))
			require.NoError(s.t, err)
			require.NoError(s.t, d.Sync())
			require.NoError(s.t, d.Close())
			return name + " removed"
		case 1, 2:
			setContent(s.t, s.fs, name, b[:at])
			return fmt.Sprintf("%s cut at %d of %d", name, at, len(b))
		default:
			b[at] ^= 1 << rng.IntN(8)
			setContent(s.t, s.fs, name, b)
			return fmt.Sprintf("%s flipped at %d of %d", name, at, len(b))
		}
	}
}
