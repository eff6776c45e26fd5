package transfer_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/transfer"
)

// TestAnExportCutAtAnyByteGoesOn cuts an export at many places, each of which leaves another
// rest, and expects the same text in the end.
func TestAnExportCutAtAnyByteGoesOn(t *testing.T) {
	roll := open(t, "")
	fill(t, roll, 15_000)
	whole := filepath.Join(t.TempDir(), "whole")
	f, err := os.Create(whole)
	require.NoError(t, err)
	counts, err := transfer.Export(t.Context(), roll, f, nil)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	packed, err := os.ReadFile(whole)
	require.NoError(t, err)
	text := unpacked(t, packed)

	wentOn := 0
	for n := 0; n <= len(packed); n += 1 + len(packed)/23 {
		wentOn += resumed(t, roll, packed[:n], text, counts)
	}
	require.Greater(t, wentOn, 10, "most have a part that is whole")
	resumed(t, roll, packed, text, counts)

	// Damage before the end is not gone on with.
	spoiled := bytes.Clone(packed)
	spoiled[len(spoiled)/2] ^= 0x10
	resumed(t, roll, spoiled, text, counts)
	resumed(t, roll, []byte("something else, longer than any header of a frame"), text, counts)
}

// resumed goes on with a part of an export, and returns 1 if something of it was kept.
func resumed(t *testing.T, roll *rollcall.Roll, part []byte, text string, want transfer.Counts) int {
	t.Helper()
	f, err := os.CreateTemp(t.TempDir(), "cut")
	require.NoError(t, err)
	_, err = f.Write(part)
	require.NoError(t, err)
	counts, at, err := transfer.Resume(t.Context(), roll, f, nil)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	require.Equal(t, want, counts)
	packed, err := os.ReadFile(f.Name())
	require.NoError(t, err)
	require.NoError(t, verify(bytes.NewReader(packed)))
	require.Equal(t, text, unpacked(t, packed))
	require.LessOrEqual(t, at.Bytes, int64(len(part)))
	return min(1, at.Snapshots)
}

// dying is a target that dies after some calls.
type dying struct {
	*rollcall.Roll
	left int
	die  context.CancelFunc
}

func (d *dying) Import(ctx context.Context, some ...rollcall.UserSnapshot) error {
	if err := d.Roll.Import(ctx, some...); err != nil {
		return err
	}
	if d.left--; d.left <= 0 {
		d.die() // what was entered is not told of any more
	}
	return ctx.Err()
}

// cutImport imports a part of an export, and leaves a state.
func cutImport(t *testing.T, to *rollcall.Roll, text string, calls int) transfer.Options {
	t.Helper()
	s, err := transfer.Open(strings.NewReader(text))
	require.NoError(t, err)
	_, err = s.Verify()
	require.NoError(t, err)
	o := transfer.Options{State: filepath.Join(t.TempDir(), "state"), Sum: s.Sum()}
	require.NoError(t, s.Close())
	ctx, die := context.WithCancel(t.Context())
	defer die()
	s, err = transfer.Open(strings.NewReader(text))
	require.NoError(t, err)
	_, err = s.Import(ctx, &dying{to, calls, die}, o)
	require.ErrorIs(t, err, context.Canceled)
	require.NoError(t, s.Close())
	return o
}

func TestAnImportGoesOnWhereItWas(t *testing.T) {
	const users = 15_000
	_, text := exported(t, users)
	to := open(t, "")
	o := cutImport(t, to, text, 6)
	summary, err := take(t, to, strings.NewReader(text), o)
	require.NoError(t, err)
	require.Equal(t, users, summary.Snapshots+summary.Before)
	require.GreaterOrEqual(t, summary.Before, 6_000-1)
	require.Zero(t, summary.Skipped)
	_, n := digest(t, to)
	require.Equal(t, users, n)
	require.NoFileExists(t, o.State)
}

// TestAnImportDoesNotTrustItsState: an engine may have lost what it acknowledged, and a state may
// lie beside another one.
func TestAnImportDoesNotTrustItsState(t *testing.T) {
	const users = 15_000
	_, text := exported(t, users)
	o := cutImport(t, open(t, ""), text, 6)
	other := open(t, "")
	summary, err := take(t, other, strings.NewReader(text), o)
	require.NoError(t, err)
	require.Equal(t, users, summary.Snapshots)
	require.Zero(t, summary.Before)
	_, n := digest(t, other)
	require.Equal(t, users, n)
}

// TestAUserWhomTheImportDidNotEnterIsAConflict also when it goes on: whoever came by another way
// is not taken for one who was entered.
func TestAUserWhomTheImportDidNotEnterIsAConflict(t *testing.T) {
	const users = 15_000
	_, text := exported(t, users)
	to := open(t, "")
	o := cutImport(t, to, text, 2)
	last := strings.LastIndex(text, `{"snapshot":{"user":"`)
	user, _, _ := strings.Cut(text[last+len(`{"snapshot":{"user":"`):], `"`)
	require.NoError(t, to.Beat(t.Context(), user))
	_, err := take(t, to, strings.NewReader(text), o)
	require.Equal(t, rollcall.CodeConflict, rollcall.CodeOf(err))
	require.ErrorContains(t, err, user)

	// That is not forgotten by going on once more, but that one can be passed over.
	_, err = take(t, to, strings.NewReader(text), o)
	require.ErrorContains(t, err, user)
	o.SkipKnown = true
	summary, err := take(t, to, strings.NewReader(text), o)
	require.NoError(t, err)
	require.Positive(t, summary.Skipped+summary.Before)
	require.Equal(t, users, summary.Snapshots+summary.Before+summary.Skipped)
}

func TestAStateOfAnotherFileIsRefused(t *testing.T) {
	_, text := exported(t, 15_000)
	o := cutImport(t, open(t, ""), text, 2)
	o.Sum = strings.Repeat("0", 64)
	_, err := take(t, open(t, ""), strings.NewReader(text), o)
	require.ErrorContains(t, err, "another file")
	require.NoError(t, os.WriteFile(o.State, []byte("{"), 0o600))
	_, err = take(t, open(t, ""), strings.NewReader(text), o)
	require.ErrorContains(t, err, "no state of an import")
}
