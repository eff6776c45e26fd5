package local

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/dayset"
	"github.com/rollcall/rollcall/internal/testbudget"
)

// populate fills a directory with some of everything.
func populate(t *testing.T, dir string) {
	t.Helper()
	e, err := Open(dir, Options{})
	require.NoError(t, err)
	clock := rollcall.NewManualClock(time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC))
	roll, err := rollcall.New(e, rollcall.Options{Clock: clock})
	require.NoError(t, err)
	ctx := context.Background()
	for i := range 300 {
		user := fmt.Sprintf("u%d", i)
		in, err := roll.Login(ctx, rollcall.Login{User: user, Device: "ios", Attrs: map[string]string{"n": user}})
		require.NoError(t, err)
		require.NoError(t, roll.AddFriends(ctx, user, false, rollcall.Friend{User: fmt.Sprintf("u%d", i+1)}))
		if i%3 == 0 {
			_, err = roll.Kick(ctx, rollcall.Kick{Session: in.Session.ID, Reason: "test"})
			require.NoError(t, err)
		}
		clock.Advance(time.Second)
		require.NoError(t, roll.Beat(ctx, fmt.Sprint(i), user))
	}
	_, err = roll.Ban(ctx, "u7", time.Hour, "test", "me")
	require.NoError(t, err)
	for i := range 3 {
		require.NoError(t, roll.Visit(ctx, fmt.Sprintf("page %d", i), numbers(i, 4000*i+10)...))
	}
	_, _, err = roll.CreateKey(ctx, rollcall.NewKey{Role: rollcall.RoleReader})
	require.NoError(t, err)
	require.NoError(t, roll.Tick(ctx))
	require.NoError(t, roll.Close())
	require.NoError(t, e.Close())
}

func TestCheckFindsNothingInSoundData(t *testing.T) {
	dir := t.TempDir()
	populate(t, dir)
	report, err := Check(dir, Options{}, time.Time{})
	require.NoError(t, err)
	require.Empty(t, report.Faults)
	require.Zero(t, report.Faulty)
	require.Equal(t, 199, report.Sessions) // 300 less 100 kicked and one banned
	require.Equal(t, 601, report.Users)
	require.Greater(t, report.Records, 1000)
}

func TestCheckNamesContradictions(t *testing.T) {
	sound := t.TempDir()
	populate(t, sound)
	for name, damage := range map[string]func(b *pebble.Batch){
		"a friend without an id":    func(b *pebble.Batch) { _ = b.Set(friendKey(0, 1<<20, newRef(0, 1<<21)), make([]byte, 8), nil) },
		"leads to no ended session": func(b *pebble.Batch) { _ = b.Set(endedTokenKey(1, tokenKey{1}), make([]byte, 16), nil) },
		"an event cannot be read":   func(b *pebble.Batch) { _ = b.Set(eventKey(1<<40), []byte{0xff}, nil) },
		"a ban cannot be read":      func(b *pebble.Batch) { _ = b.Set(banKey(1, rollcall.BanKey{1}), []byte{200}, nil) },
		"last-seen times cannot be": func(b *pebble.Batch) { _ = b.Set(seenKey(1, 0), []byte{1}, nil) },
		"the format is missing":     func(b *pebble.Batch) { _ = b.Delete(metaKey(metaFormat), nil) },
		"a mark of number":          func(b *pebble.Batch) { _ = b.Merge(dayKey(0, 0, 20000, 250), dayset.AppendAdd(nil, []uint16{9}), nil) },
		"who is not in its partition": func(b *pebble.Batch) {
			s := someSession()
			s.End = nil
			_ = b.Set(sessionKey(0, s.ID), s.encode(nil), nil)
		},
		"an API key cannot be read":       func(b *pebble.Batch) { _ = b.Set(apiKeyKey("x"), []byte{1}, nil) },
		"a pass to the console cannot be": func(b *pebble.Batch) { _ = b.Set(passKey(rollcall.PassHash{1}), []byte("{"), nil) },
		"visits cannot be read":           func(b *pebble.Batch) { _ = b.Set(visitKey("page 1", 3600), []byte{2, 14, 0, 0}, nil) },
		"of another precision":            func(b *pebble.Batch) { _ = b.Set(visitKey("page 1", 3600), otherPrecision(), nil) },
		"is no name and hour":             func(b *pebble.Batch) { _ = b.Set([]byte{tabVisit, 9, 1, 2}, nil, nil) },
		"one name too many": func(b *pebble.Batch) {
			for i := range rollcall.MaxVisitNames {
				_ = b.Set(visitKey(fmt.Sprint(i), 3600), noVisitors(), nil)
			}
		},
		"a user's record cannot be": func(b *pebble.Batch) { _ = b.Set(userKey(1, 1), []byte{200}, nil) },
		"is in the wrong partition": func(b *pebble.Batch) { _ = b.Set(idKey(uint8((rollcall.HashUser("x")+1)&63), 1<<20), []byte("x"), nil) },
		"of table 's' has 3 bytes":  func(b *pebble.Batch) { _ = b.Set([]byte{tabSession, 1, 2}, nil, nil) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			require.NoError(t, os.CopyFS(dir, os.DirFS(sound)))
			o := Options{}
			require.NoError(t, o.fill())
			st, err := openStore(dir, &o, nil)
			require.NoError(t, err)
			b := st.newBatch()
			damage(b)
			require.NoError(t, st.write(b))
			require.NoError(t, st.close())
			report, err := Check(dir, Options{}, time.Time{})
			require.NoError(t, err)
			require.Positive(t, report.Faulty)
			require.Contains(t, fmt.Sprint(report.Faults), name)
		})
	}
}

func TestAFlippedByteIsNeverASilentWrongAnswer(t *testing.T) {
	source := t.TempDir()
	populate(t, source)
	e, err := Open(source, Options{}) // move everything from the log into tables
	require.NoError(t, err)
	require.NoError(t, e.Configure(context.Background(), rollcall.Settings{Timezone: "UTC", EventsCount: 1000}))
	require.NoError(t, e.Compact(context.Background()))
	require.NoError(t, e.Close())
	tables, err := filepath.Glob(filepath.Join(source, "*.sst"))
	require.NoError(t, err)
	require.NotEmpty(t, tables)
	table := filepath.Base(tables[0])
	sound, err := os.ReadFile(tables[0])
	require.NoError(t, err)
	const places = 60 // all over the table, first here and there
	for round := range testbudget.Rounds(t, testbudget.Budget{Least: 10, Most: places, Time: time.Second}) {
		at := round * 23 % places * len(sound) / places
		dir := t.TempDir()
		require.NoError(t, os.CopyFS(dir, os.DirFS(source)))
		bad := append([]byte(nil), sound...)
		bad[at] ^= 0x40
		require.NoError(t, os.WriteFile(filepath.Join(dir, table), bad, 0o600))
		report, err := Check(dir, Options{}, time.Time{})
		if err == nil && report.Faulty == 0 { // a byte that means nothing: then nothing may differ
			require.Equal(t, 199, report.Sessions)
			require.Equal(t, 601, report.Users)
		}
	}
}
