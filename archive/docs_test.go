package archive

import (
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTheQueryOfTheGuideFindsWhoWasThere asks each kind of database what the guide shows.
func TestTheQueryOfTheGuideFindsWhoWasThere(t *testing.T) {
	guide, err := os.ReadFile("../docs/attendance.md")
	require.NoError(t, err)
	shown := regexp.MustCompile("(?s)```sql\n(.*?)```").FindAllStringSubmatch(string(guide), -1)
	require.Len(t, shown, 1, "each query of the guide is asked")
	onEach(t, func(t *testing.T, fresh func() string) {
		db := open(t, fresh())
		require.NoError(t, lease(t, db).Merge(t.Context(), []Change{
			{Row: Row{"there", "user", 202602, 1}},
			{Row: Row{"also there", "user", 202602, 1 | 1<<27}},
			{Row: Row{"on the 2nd", "user", 202602, 2}},
			{Row: Row{"in January", "user", 202601, 1}},
			{Row: Row{"staff", "staff", 202602, 1}},
		}))
		rows, err := db.sql.QueryContext(t.Context(), shown[0][1])
		require.NoError(t, err)
		var users []string
		for rows.Next() {
			var user string
			var month int
			require.NoError(t, rows.Scan(&user, &month))
			require.Equal(t, 202602, month)
			users = append(users, user)
		}
		require.NoError(t, rows.Err())
		require.NoError(t, rows.Close())
		require.ElementsMatch(t, []string{"there", "also there"}, users)
	})
}
