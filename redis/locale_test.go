package redis

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/redistest"
)

// foreign has what the test starts run in a locale that sorts letters before
// their case, if the system can make one.
func foreign(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	out, err := exec.CommandContext(t.Context(), "localedef", "-i", "en_US", "-f", "UTF-8", filepath.Join(dir, "en_US.UTF-8")).CombinedOutput()
	if err != nil {
		t.Logf("the test runs in the system's locale, as localedef makes no other one: %v %s", err, out)
		return
	}
	t.Setenv("LOCPATH", dir)
	t.Setenv("LC_ALL", "en_US.UTF-8")
}

// TestTheLocaleOfRedisChangesNoOrder asks a server on which Lua's < is not by bytes.
func TestTheLocaleOfRedisChangesNoOrder(t *testing.T) {
	foreign(t)
	s := redistest.Start(t, redistest.Options{})

	// Ties are decided by bytes.
	text, err := sources.ReadFile("lua/lib/bytes.lua")
	require.NoError(t, err)
	texts := []string{"", "\x00", "a", "A", "b", "B", "aB", "Ab", "\xff", "é", "e", "z", "12345678", "12345678a", "12345678B", "1234567A", "1234567a9"}
	args := []string{"EVAL", string(text) + `
local out = {}
for _, a in ipairs(ARGV) do
  for _, b in ipairs(ARGV) do out[#out + 1] = isBefore(a, b) and '1' or '0' end
end
return table.concat(out)`, "0"}
	got, err := s.Do(append(args, texts...)...)
	require.NoError(t, err)
	var want strings.Builder
	for _, a := range texts {
		for _, b := range texts {
			want.WriteString(flag(bytes.Compare([]byte(a), []byte(b)) < 0))
		}
	}
	require.Equal(t, want.String(), got)

	// So a walk from tie to tie meets everybody once.
	e := engineFor(t, Options{URL: s.URL(), Partitions: 1})
	at, users := time.Now(), []string{"a", "B", "c", "D", "é", "F", "g", "_", "h-i", "hI"}
	require.NoError(t, e.Beat(t.Context(), at, users))
	var met []string
	for cursor, more := "", true; more; more = cursor != "" {
		page, err := e.Online(t.Context(), at, time.Minute, rollcall.PageRequest{Limit: 1, Cursor: cursor}, rollcall.ViewerAdmin)
		require.NoError(t, err)
		met = append(met, page.Items[0].User)
		cursor = page.Next
	}
	slices.Sort(users)
	slices.Reverse(users)
	require.Equal(t, users, met, "by bytes, descending")
}
