package archive

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
)

func TestUserReadsWhatItIsAskedFor(t *testing.T) {
	onEach(t, func(t *testing.T, fresh func() string) {
		ctx := t.Context()
		db := open(t, fresh())
		l := lease(t, db)
		var changes []Change
		for _, kind := range []string{"b", "a"} {
			for _, month := range []Month{202512, 202601, 202511} {
				for _, user := range []string{"u", "v"} {
					changes = append(changes, Change{Row: Row{user, kind, month, 1}})
				}
			}
		}
		require.NoError(t, l.Merge(ctx, changes))
		rows, err := db.User(ctx, "u", "", 202512, 202601)
		require.NoError(t, err)
		require.Equal(t, []Row{{"u", "a", 202512, 1}, {"u", "a", 202601, 1}, {"u", "b", 202512, 1}, {"u", "b", 202601, 1}}, rows)
		rows, err = db.User(ctx, "u", "b", 202512, 202512)
		require.NoError(t, err)
		require.Equal(t, []Row{{"u", "b", 202512, 1}}, rows)
		rows, err = db.User(ctx, "nobody", "", 0, 999912)
		require.NoError(t, err)
		require.Empty(t, rows)
		for _, wrong := range []error{
			second(db.User(ctx, "", "", 0, 1)), second(db.User(ctx, "u", "NO", 0, 1)), second(db.User(ctx, "u", "", 2, 1)),
			db.Each(ctx, "NO", 202601, nil), db.EraseUser(ctx, ""),
		} {
			requireCode(t, rollcall.CodeInvalidArgument, wrong)
		}
		require.NoError(t, db.EraseUser(ctx, "u"))
		require.NoError(t, db.EraseUser(ctx, "u"))
		require.Len(t, all(ctx, t, db), 6)
	})
}

func second(_ []Row, err error) error { return err }

func TestEachWalksPagesAndMayUseTheArchive(t *testing.T) {
	onEach(t, func(t *testing.T, fresh func() string) {
		ctx := t.Context()
		db := open(t, fresh())
		l := lease(t, db)
		const users = 2*pageRows + 1
		var changes []Change
		for i := range users {
			changes = append(changes, Change{Row: Row{fmt.Sprintf("%05d", i), "user", 202601, 1}})
		}
		changes = append(changes,
			Change{Row: Row{"z", "client", 202601, 2}},
			Change{Row: Row{"z", "zeta", 202601, 4}},
			Change{Row: Row{"z", "user", 202602, 8}})
		require.NoError(t, l.Merge(ctx, changes))

		var seen []Row
		require.NoError(t, db.Each(ctx, "", 202601, func(r Row) error {
			if len(seen)%pageRows == 0 {
				_, err := db.User(ctx, r.User, "", 0, 999912)
				require.NoError(t, err)
			}
			seen = append(seen, r)
			return nil
		}))
		require.Len(t, seen, users+2)
		require.Equal(t, changes[users].Row, seen[0])
		require.Equal(t, changes[0].Row, seen[1])
		require.Equal(t, changes[users-1].Row, seen[users])
		require.Equal(t, changes[users+1].Row, seen[users+1])

		enough := errors.New("enough")
		n := 0
		require.Equal(t, enough, db.Each(ctx, "user", 202601, func(Row) error {
			n++
			return enough
		}))
		require.Equal(t, 1, n)
	})
}
