package archive

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall/internal/sqltest"
)

// BenchmarkMerge merges and verifies the largest call there is: once into rows
// that are not there yet, once into rows that are and change.
func BenchmarkMerge(b *testing.B) {
	sources := map[string]func() string{
		"sqlite":   func() string { return "sqlite:" + filepath.Join(b.TempDir(), "archive.db") },
		"postgres": func() string { return sqltest.StartPostgres(b).Database(b) },
		"mariadb":  func() string { return sqltest.StartMariaDB(b).Database(b) },
	}
	for _, name := range []string{"sqlite", "postgres", "mariadb"} {
		db, err := Open(b.Context(), sources[name](), Options{})
		require.NoError(b, err)
		l, err := db.Acquire(b.Context(), "bench", MaxLease)
		require.NoError(b, err)
		for _, days := range []uint32{1, 3} {
			next := 0
			what := map[uint32]string{1: "insert", 3: "change"}[days]
			b.Run(name+"/"+what, func(b *testing.B) {
				for b.Loop() {
					changes := make([]Change, MaxChanges)
					for i := range changes {
						changes[i] = Change{Row: Row{fmt.Sprintf("user-%08d", next), "user", 202601, days}, Hot: 3}
						next++
					}
					require.NoError(b, l.Merge(b.Context(), changes))
					require.NoError(b, db.Verify(b.Context(), changes))
				}
				b.ReportMetric(float64(b.N*MaxChanges)/b.Elapsed().Seconds(), "rows/s")
			})
		}
		require.NoError(b, db.Close())
	}
}
