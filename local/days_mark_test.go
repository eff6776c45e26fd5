package local

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/testbudget"
)

// marked is a mark as a plain set holds it.
type marked struct {
	user, kind string
	day        rollcall.Day
}

// bulk makes a call's worth of random marks. Users are few enough for repeats
// and many enough to fill blocks of ids.
func bulk(rng *rand.Rand, today rollcall.Day, users int) []rollcall.Mark {
	marks := make([]rollcall.Mark, 1+rng.IntN(rollcall.MaxMarks))
	for i := range marks {
		user := fmt.Sprint(rng.IntN(users))
		if rng.IntN(3) == 0 {
			user = "user-" + user
		}
		kind := []string{"", "staff", "guest"}[rng.IntN(3)]
		marks[i] = rollcall.Mark{User: user, Kind: kind, Day: today - rollcall.Day(rng.IntN(40))}
	}
	return marks
}

// holds compares all sets of days with a plain set.
func (r *rig) holds(want map[marked]bool) {
	r.t.Helper()
	today := r.roll.Today()
	for _, kind := range []string{rollcall.DefaultKind, "staff", "guest"} {
		byDay := make(map[rollcall.Day][]string)
		for m := range want {
			if m.kind == kind {
				byDay[m.day] = append(byDay[m.day], m.user)
			}
		}
		for day := today - 45; day <= today; day++ {
			got := []string{}
			for cursor := ""; ; {
				page, err := r.roll.Active(r.ctx, rollcall.ActiveQuery{
					Range: rollcall.DayRange{From: day, To: day}, Kind: kind,
					Page: rollcall.PageRequest{Limit: rollcall.MaxLimit, Cursor: cursor},
				})
				r.NoError(err)
				got = append(got, page.Items...)
				if cursor = page.Next; cursor == "" {
					break
				}
			}
			slices.Sort(got)
			expected := append([]string{}, byDay[day]...)
			slices.Sort(expected)
			r.Equal(expected, got, "kind %s, day %s", kind, day)
		}
	}
}

func TestMarksInBulkMatchAPlainSet(t *testing.T) {
	r := newRig(t, 0)
	rng := rand.New(rand.NewPCG(7, 7))
	want := make(map[marked]bool)
	key := func(m rollcall.Mark) marked {
		if m.Kind == "" {
			m.Kind = rollcall.DefaultKind
		}
		return marked{m.User, m.Kind, m.Day}
	}
	for round := range testbudget.Rounds(t, testbudget.Budget{Least: 9, Most: 12, Time: time.Second}) {
		add := bulk(rng, r.roll.Today(), 20_000)
		fresh := 0
		for _, m := range add {
			if !want[key(m)] {
				fresh++
			}
			want[key(m)] = true
		}
		n, already, err := r.roll.ImportMarks(r.ctx, add...)
		r.NoError(err)
		r.Equal(fresh, n)
		r.Equal(len(add)-fresh, already)

		take := bulk(rng, r.roll.Today(), 40_000) // half of them of users never heard of
		gone := 0
		for _, m := range take {
			if want[key(m)] {
				gone++
			}
			delete(want, key(m))
		}
		n, err = r.roll.Unmark(r.ctx, true, take...)
		r.NoError(err)
		r.Equal(gone, n)
		switch round {
		case 3:
			r.crash()
		case 7:
			r.NoError(r.roll.Tick(r.ctx))
			r.restart()
		}
	}
	r.holds(want)
	r.crash()
	r.holds(want)
}

func TestAUserStoredInABlockWithOthersCanBeErased(t *testing.T) {
	r := newRig(t, 0)
	today := r.roll.Today()
	users := r.neighbours(2 * worthBlock)
	var marks []rollcall.Mark
	for _, u := range users {
		marks = append(marks, rollcall.Mark{User: u, Day: today})
	}
	_, _, err := r.roll.ImportMarks(r.ctx, marks...)
	r.NoError(err)
	p := r.eng.partitionOf(users[0])
	for _, u := range users {
		n, ok := p.find(u)
		r.True(ok && p.onDisk.has(n), "the id of %s is not going to be stored again", u)
	}
	r.NoError(r.roll.Erase(r.ctx, users[5]))
	_, _, err = r.roll.ImportMarks(r.ctx, rollcall.Mark{User: "newcomer", Day: today}, rollcall.Mark{User: users[6], Day: today - 1})
	r.NoError(err)
	r.crash()

	page, err := r.roll.Active(r.ctx, rollcall.ActiveQuery{
		Range: rollcall.DayRange{From: today, To: today}, Page: rollcall.PageRequest{Limit: rollcall.MaxLimit},
	})
	r.NoError(err)
	want := append(slices.Delete(slices.Clone(users), 5, 6), "newcomer")
	require.ElementsMatch(t, want, page.Items)
}

func TestABulkOfMarksIsRefusedWholeForOneKindTooMany(t *testing.T) {
	r := newRig(t, 0)
	today := r.roll.Today()
	for i := range rollcall.MaxKinds - 1 {
		_, _, err := r.roll.ImportMarks(r.ctx, rollcall.Mark{User: "a", Kind: fmt.Sprint("k", i), Day: today})
		r.NoError(err)
	}
	_, _, err := r.roll.ImportMarks(r.ctx,
		rollcall.Mark{User: "b", Kind: "last", Day: today}, rollcall.Mark{User: "b", Kind: "more", Day: today})
	r.ErrorIs(err, &rollcall.Error{Code: rollcall.CodeInvalidArgument})
	got, err := r.roll.Attended(r.ctx, "b", "", rollcall.DayRange{From: today, To: today})
	r.NoError(err)
	r.Empty(got.Days)
}
