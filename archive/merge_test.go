package archive

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/sqltest"
	"github.com/rollcall/rollcall/internal/testbudget"
)

// model is an archive by the words of Merge alone.
type model map[Row]uint32 // by the row without its days

func (m model) merge(changes []Change) {
	for _, c := range changes {
		key := c.Row
		key.Days = 0
		for bit := uint32(1); bit < 1<<31; bit <<= 1 {
			switch {
			case c.Days&bit != 0:
				m[key] |= bit
			case c.Hot&bit != 0:
				m[key] &^= bit
			}
		}
		if m[key] == 0 {
			delete(m, key)
		}
	}
}

func (m model) rows() map[Row]bool {
	rows := map[Row]bool{}
	for key, days := range m {
		key.Days = days
		rows[key] = true
	}
	return rows
}

func drawChanges(t *rapid.T) []Change {
	users := []string{"a", "A", "a ", "'", "😀"}
	kinds := []string{"client", "office", "o-1_"}
	months := []Month{202402, 202401, 199912}
	change := rapid.Custom(func(t *rapid.T) Change {
		m := rapid.SampledFrom(months).Draw(t, "month")
		days := func(name string) uint32 {
			return rapid.OneOf(rapid.Just(uint32(0)), rapid.Just(m.Mask()), rapid.Uint32()).Draw(t, name) & m.Mask()
		}
		return Change{
			Row: Row{rapid.SampledFrom(users).Draw(t, "user"), rapid.SampledFrom(kinds).Draw(t, "kind"), m, days("days")},
			Hot: days("hot"),
		}
	})
	return rapid.SliceOfNDistinct(change, 0, 12, func(c Change) Row {
		return Row{User: c.User, Kind: c.Kind, Month: c.Month}
	}).Draw(t, "changes")
}

func TestMergeIsWhatItsModelSays(t *testing.T) {
	onEach(t, func(t *testing.T, fresh func() string) {
		db := open(t, fresh())
		l := lease(t, db)
		testbudget.Check(t, testbudget.Budget{Least: 10, Most: 100, Time: 400 * time.Millisecond}, func(rt *rapid.T) {
			_, err := db.sql.ExecContext(t.Context(), "DELETE FROM rollcall_login_days")
			require.NoError(rt, err)
			expected := model{}
			for range rapid.IntRange(1, 5).Draw(rt, "calls") {
				changes := drawChanges(rt)
				before := slices.Clone(changes)
				for range rapid.IntRange(1, 2).Draw(rt, "times") {
					require.NoError(rt, l.Merge(t.Context(), changes))
				}
				require.Equal(rt, before, changes, "the caller's changes were changed")
				expected.merge(changes)
				require.NoError(rt, db.Verify(t.Context(), changes))
				require.Equal(rt, expected.rows(), all(t.Context(), rt, db))
			}
		})
	})
}

func TestMergeTakesTheLargestCall(t *testing.T) {
	onEach(t, func(t *testing.T, fresh func() string) {
		db := open(t, fresh())
		l := lease(t, db)
		changes := make([]Change, 0, MaxChanges+1)
		for i := range MaxChanges {
			m := Month(202601 + i%3)
			changes = append(changes, Change{Row: Row{fmt.Sprintf("user-%d", i), "user", m, 1 << (i % 28)}, Hot: m.Mask()})
		}
		rand.Shuffle(len(changes), func(i, j int) { changes[i], changes[j] = changes[j], changes[i] })
		expected := model{}
		expected.merge(changes)
		require.NoError(t, l.Merge(t.Context(), changes))
		require.NoError(t, db.Verify(t.Context(), changes))
		require.Equal(t, expected.rows(), all(t.Context(), t, db))

		months, err := db.Months(t.Context())
		require.NoError(t, err)
		require.Equal(t, []MonthRows{{"user", 202601, 3334}, {"user", 202602, 3333}, {"user", 202603, 3333}}, months)

		for i := range changes {
			changes[i].Days = 0
		}
		require.NoError(t, l.Merge(t.Context(), changes))
		require.Empty(t, all(t.Context(), t, db), "rows without days stay")

		changes = append(changes, Change{Row: Row{"one more", "user", 202601, 1}})
		requireCode(t, rollcall.CodeInvalidArgument, l.Merge(t.Context(), changes))
		requireCode(t, rollcall.CodeInvalidArgument, db.Verify(t.Context(), changes))
	})
}

func TestHostileUsersAreThemselves(t *testing.T) {
	onEach(t, func(t *testing.T, fresh func() string) {
		db := open(t, fresh())
		l := lease(t, db)
		users := hostile()
		var changes []Change
		for i, user := range users {
			changes = append(changes, Change{Row: Row{user, "user", 202601, uint32(i + 1)}, Hot: 1<<31 - 1})
		}
		require.NoError(t, l.Merge(t.Context(), changes))
		require.NoError(t, l.Merge(t.Context(), changes))
		require.NoError(t, db.Verify(t.Context(), changes))
		for i, user := range users {
			rows, err := db.User(t.Context(), user, "", 197001, 999912)
			require.NoError(t, err)
			require.Equal(t, []Row{{user, "user", 202601, uint32(i + 1)}}, rows, "%q", user)
		}
		var order []string
		require.NoError(t, db.Each(t.Context(), "", 202601, func(r Row) error {
			order = append(order, r.User)
			return nil
		}))
		slices.Sort(users)
		require.Equal(t, users, order)

		for i, user := range users {
			require.NoError(t, db.EraseUser(t.Context(), user))
			require.Len(t, all(t.Context(), t, db), len(users)-i-1, "%q", user)
		}
	})
}

func TestMergeChecksWhatItIsGiven(t *testing.T) {
	db := open(t, "sqlite:"+t.TempDir()+"/a.db")
	l := lease(t, db)
	good := Row{"u", "user", 202602, 1}
	wrong := map[string]Change{
		"no user":           {Row: Row{"", "user", 202602, 1}},
		"long user":         {Row: Row{strings.Repeat("u", 129), "user", 202602, 1}},
		"control character": {Row: Row{"u\x00", "user", 202602, 1}},
		"not UTF-8":         {Row: Row{"\xff", "user", 202602, 1}},
		"no kind":           {Row: Row{"u", "", 202602, 1}},
		"bad kind":          {Row: Row{"u", "User", 202602, 1}},
		"no month":          {Row: Row{"u", "user", 0, 1}},
		"month 13":          {Row: Row{"u", "user", 202613, 1}},
		"February 29":       {Row: Row{"u", "user", 202602, 1 << 28}},
		"hot February 29":   {Row: good, Hot: 1 << 28},
		"twice":             {Row: Row{"v", "user", 202602, 2}},
	}
	for _, name := range slices.Sorted(maps.Keys(wrong)) {
		changes := []Change{{Row: good}, {Row: Row{"v", "user", 202602, 1}}, wrong[name]}
		requireCode(t, rollcall.CodeInvalidArgument, l.Merge(t.Context(), changes))
	}
	require.NoError(t, l.Merge(t.Context(), nil))
	require.NoError(t, db.Verify(t.Context(), nil))
	require.Empty(t, all(t.Context(), t, db))
}

func TestVerifyFindsEveryDifference(t *testing.T) {
	onEach(t, func(t *testing.T, fresh func() string) {
		db := open(t, fresh())
		l := lease(t, db)
		changes := []Change{
			{Row: Row{"a", "user", 202601, 0b0101}, Hot: 0b0111},
			{Row: Row{"b", "user", 202601, 0b0001}},
			{Row: Row{"c", "user", 202602, 0}, Hot: 0b1},
		}
		require.NoError(t, l.Merge(t.Context(), changes))
		require.NoError(t, db.Verify(t.Context(), changes))
		set := func(user string, days int) {
			t.Helper()
			_, err := db.sql.ExecContext(t.Context(), fmt.Sprintf("UPDATE rollcall_login_days SET days = %d WHERE user_id = '%s'", days, user))
			require.NoError(t, err)
		}
		set("a", 0b11101) // days that are not hot are nobody's difference
		require.NoError(t, db.Verify(t.Context(), changes))
		set("a", 0b0111) // a hot day too many
		err := db.Verify(t.Context(), changes)
		requireCode(t, rollcall.CodeConflict, err)
		require.ErrorIs(t, err, ErrDiffers)
		require.ErrorContains(t, err, `differs in 1 of 3 rows: a user of kind "user" in 2026-01 has days 0x7, which should be 0x5`)
		set("a", 0b0001) // one too few
		set("b", 0b0010) // a day lost that is not hot
		err = db.Verify(t.Context(), changes)
		require.ErrorContains(t, err, "differs in 2 of 3 rows")
		require.NoError(t, l.Merge(t.Context(), changes))
		require.NoError(t, db.Verify(t.Context(), changes))
		require.NoError(t, db.EraseUser(t.Context(), "b"))
		require.ErrorContains(t, db.Verify(t.Context(), changes), `differs in 1 of 3 rows: a user of kind "user" in 2026-01 has days 0x0`)
	})
}

func TestMergeLeavesWhatStands(t *testing.T) {
	onEach(t, func(t *testing.T, fresh func() string) {
		db := open(t, fresh())
		l := lease(t, db)
		change := []Change{{Row: Row{"a", "user", 202601, 1}, Hot: 3}}
		require.NoError(t, l.Merge(t.Context(), change))
		updated := func() (at stamp) {
			require.NoError(t, db.sql.QueryRowContext(t.Context(), "SELECT updated_at FROM rollcall_login_days").Scan(&at))
			return at
		}
		first := updated()
		require.False(t, first.IsZero())
		require.NoError(t, l.Merge(t.Context(), change))
		require.Equal(t, first, updated(), "a row that stood was written")
		change[0].Days = 2
		require.Eventually(t, func() bool { // the database's clock may stand for a moment
			change[0].Days ^= 3
			require.NoError(t, l.Merge(t.Context(), change))
			return updated().After(first.Time)
		}, patience, time.Millisecond, "a row that changed is stamped anew")
	})
}

func TestErasingDuringMergesBringsNothingBack(t *testing.T) {
	onEach(t, func(t *testing.T, fresh func() string) {
		db := open(t, fresh())
		l := lease(t, db)
		var merged, erased int
		for range testbudget.Rounds(t, testbudget.Budget{Least: 10, Most: 40, Time: 400 * time.Millisecond}) {
			require.NoError(t, l.Merge(t.Context(), []Change{{Row: Row{"u", "user", 202601, 0b01}}}))
			var both sync.WaitGroup
			both.Go(func() {
				if err := l.Merge(t.Context(), []Change{{Row: Row{"u", "user", 202601, 0b10}, Hot: 0b10}}); err != nil {
					t.Errorf("merge: %v", err)
				}
			})
			both.Go(func() {
				if err := db.EraseUser(t.Context(), "u"); err != nil {
					t.Errorf("erase: %v", err)
				}
			})
			both.Wait()
			rows, err := db.User(t.Context(), "u", "user", 202601, 202601)
			require.NoError(t, err)
			if len(rows) == 0 {
				erased++
				continue
			}
			merged++
			require.Equal(t, uint32(0b10), rows[0].Days, "an erased day came back")
			require.NoError(t, db.EraseUser(t.Context(), "u"))
		}
		t.Logf("erased last %d times, merged last %d times", erased, merged)
	})
}

// TestChangesAtOnceGoThroughWhateverIsolationTheDatabaseHasByDefault erases and
// merges at once on a PostgreSQL whose transactions are serializable.
func TestChangesAtOnceGoThroughWhateverIsolationTheDatabaseHasByDefault(t *testing.T) {
	dsn, err := url.Parse(servers.get(t, "postgres", sqltest.Postgres).Database(t))
	require.NoError(t, err)
	query := dsn.Query()
	query.Set("default_transaction_isolation", "serializable")
	dsn.RawQuery = query.Encode()
	db := open(t, dsn.String())
	l := lease(t, db)
	var all sync.WaitGroup
	for n := range 8 {
		all.Go(func() {
			for i := range 15 {
				if err := db.EraseUser(t.Context(), fmt.Sprint("user", n, i)); err != nil {
					t.Errorf("erase: %v", err)
				}
			}
		})
	}
	for i := range 15 {
		require.NoError(t, l.Merge(t.Context(), []Change{{Row: Row{fmt.Sprint("kept", i), "user", 202601, 1}}}))
	}
	all.Wait()
}
