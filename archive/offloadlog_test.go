package archive

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/testbudget"
)

func writeOffloadLog(t require.TestingT, l *OffloadLog, users []string) *offloadFile {
	f, err := l.create(offloadHead{Kind: "user", Month: "2026-01", Days: []rollcall.Day{rollcall.DateOf(2026, 1, 2)}, Run: 7})
	require.NoError(t, err)
	for _, user := range users {
		require.NoError(t, f.add(user, 2))
	}
	return f
}

func TestErasingFindsEveryUserInTheLog(t *testing.T) {
	dir := t.TempDir()
	testbudget.Check(t, testbudget.Quick(), func(rt *rapid.T) {
		sub, err := os.MkdirTemp(dir, "*[a]?")
		require.NoError(rt, err)
		l, err := OpenOffloadLog(sub)
		require.NoError(rt, err)
		name := rapid.OneOf(rapid.StringN(1, 30, rollcall.MaxUserLen), rapid.SampledFrom(hostile()))
		users := rapid.SliceOfDistinct(name.Filter(func(u string) bool { return rollcall.CheckUser(u) == nil }), rapid.ID[string]).Draw(rt, "users")
		slices.Sort(users)
		f := writeOffloadLog(rt, l, users)
		var early []string // while the file is being written
		if len(users) > 0 && rapid.Bool().Draw(rt, "early") {
			early = users[:1]
			require.NoError(rt, l.EraseUser(users[0]))
		}
		require.NoError(rt, f.commit())
		names, err := filepath.Glob(filepath.Join(escapeGlob(sub), "*"))
		require.NoError(rt, err)
		require.Equal(rt, []string{filepath.Join(sub, "2026-01_user_run7.jsonl")}, names)
		read := func() string {
			b, err := os.ReadFile(names[0])
			require.NoError(rt, err)
			return string(b)
		}
		size := len(read())
		gone := map[string]bool{}
		for _, u := range early {
			gone[u] = true
		}
		erase := rapid.Permutation(users).Draw(rt, "erased")
		for _, user := range erase[:rapid.IntRange(0, len(erase)).Draw(rt, "how many")] {
			require.NoError(rt, l.EraseUser(user))
			gone[user] = true
		}
		require.NoError(rt, l.EraseUser("nobody at all"))
		w := &world{t: t, log: l}
		left := map[string]bool{}
		for m := range w.logged() {
			left[m.User] = true
		}
		for _, user := range users {
			require.Equal(rt, !gone[user], left[user], "%q", user)
		}
		require.Len(rt, read(), size, "nothing moves")
	})
}

func TestAnErasureThatWasCutShortIsFinished(t *testing.T) {
	l, err := OpenOffloadLog(t.TempDir())
	require.NoError(t, err)
	require.NoError(t, writeOffloadLog(t, l, []string{"ann", "bob", "cy"}).commit())
	path := filepath.Join(l.dir, "2026-01_user_run7.jsonl")
	b, err := os.ReadFile(path) //nolint:gosec // the test's own
	require.NoError(t, err)
	torn := strings.Replace(string(b), `{"user":"bob"`, `          bob"`, 1)
	require.NoError(t, os.WriteFile(path, []byte(torn), 0o600))
	require.NoError(t, l.EraseUser("bob"))
	b, err = os.ReadFile(path) //nolint:gosec // the test's own
	require.NoError(t, err)
	require.NotContains(t, string(b), "bob")
	require.Contains(t, string(b), `"ann"`)
	require.Contains(t, string(b), `"cy"`)
}

func TestTheLogKeepsToItself(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "offloaded")
	l, err := OpenOffloadLog(dir)
	require.NoError(t, err)
	info, err := os.Stat(dir)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
	require.NoError(t, writeOffloadLog(t, l, []string{"a"}).commit())
	require.NoError(t, writeOffloadLog(t, l, []string{"b"}).commit(), "a second one of the same run")
	f := writeOffloadLog(t, l, []string{"c"})
	require.ErrorContains(t, f.add("b", 1), "out of order")
	require.NoError(t, l.removeHalves())
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 2)
	for _, e := range entries {
		info, err := e.Info()
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	}
	_, err = OpenOffloadLog("/dev/null/x")
	requireCode(t, rollcall.CodeUnavailable, err)
}
