package transfer_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/local"
	"github.com/rollcall/rollcall/transfer"
)

// exported returns an export of a small crowd and a key, packed and not.
func exported(t *testing.T, users int) (packed []byte, text string) {
	t.Helper()
	roll := open(t, "")
	fill(t, roll, users)
	_, _, err := roll.CreateKey(t.Context(), rollcall.NewKey{Name: "the \"shop\"", Role: rollcall.RoleWriter, TTL: time.Hour})
	require.NoError(t, err)
	var out bytes.Buffer
	told := 0
	counts, err := transfer.Export(t.Context(), roll, &out, func(p transfer.Progress) { told = p.Snapshots })
	require.NoError(t, err)
	require.Equal(t, users, counts.Snapshots)
	require.Equal(t, users, told)
	require.Equal(t, 1, counts.APIKeys)
	return out.Bytes(), unpacked(t, out.Bytes())
}

// unpacked returns the text of an export.
func unpacked(t *testing.T, packed []byte) string {
	t.Helper()
	z, err := zstd.NewReader(bytes.NewReader(packed))
	require.NoError(t, err)
	defer z.Close()
	plain, err := io.ReadAll(z)
	require.NoError(t, err)
	return string(plain)
}

// verify looks a stream over.
func verify(r io.Reader) error {
	s, err := transfer.Open(r)
	if err != nil {
		return err
	}
	_, err = s.Verify()
	return errors.Join(err, s.Close())
}

// take imports a stream into a new engine.
func take(t *testing.T, to *rollcall.Roll, r io.Reader, o transfer.Options) (transfer.Summary, error) {
	t.Helper()
	s, err := transfer.Open(r)
	if err != nil {
		return transfer.Summary{}, err
	}
	summary, err := s.Import(t.Context(), to, o)
	require.NoError(t, s.Close())
	return summary, err
}

func TestEveryPacking(t *testing.T) {
	packed, text := exported(t, 3000)
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	_, err := io.WriteString(z, text)
	require.NoError(t, err)
	require.NoError(t, z.Close())
	for name, b := range map[string][]byte{"zstd": packed, "gzip": zipped.Bytes(), "none": []byte(text)} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, verify(bytes.NewReader(b)))
			to := open(t, "")
			summary, err := take(t, to, bytes.NewReader(b), transfer.Options{Keys: true})
			require.NoError(t, err)
			require.True(t, summary.Complete)
			require.Equal(t, 3000, summary.Snapshots)
			keys, err := to.Keys(t.Context())
			require.NoError(t, err)
			require.Len(t, keys, 1)
			require.Equal(t, "the \"shop\"", keys[0].Name)
			require.Equal(t, now.Add(time.Hour), keys[0].ExpiresAt)
			var again bytes.Buffer
			_, err = transfer.Export(t.Context(), to, &again, nil)
			require.NoError(t, err)
			require.NoError(t, verify(&again))
		})
	}
}

func TestTheTextIsLines(t *testing.T) {
	_, text := exported(t, 20)
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	require.Len(t, lines, 1+20+1+1)
	require.Contains(t, lines[0], `{"export":{"version":3,`)
	require.Contains(t, lines[0], `"timezone":"UTC"`)
	require.Contains(t, text, `"days":{"user":["2026-`)
	require.Contains(t, text, `"kind":"staff","name":"Nº 10"`)
	require.Contains(t, lines[21], `{"api_key":{"id":`)
	require.Contains(t, lines[22], `{"end":{`)
}

// TestCutShort cuts an export at many places: nothing but the whole passes.
func TestCutShort(t *testing.T) {
	packed, text := exported(t, 300)
	for name, b := range map[string][]byte{"packed": packed, "text": []byte(text)} {
		for n := 0; n < len(b); n += 1 + len(b)/200 {
			err := verify(bytes.NewReader(b[:n]))
			require.ErrorIs(t, err, transfer.ErrIncomplete, "%s, %d of %d bytes", name, n, len(b))
		}
	}
	to := open(t, "")
	half := strings.LastIndexByte(text[:len(text)/2], '\n') + 1
	summary, err := take(t, to, strings.NewReader(text[:half]), transfer.Options{Keys: true})
	require.ErrorIs(t, err, transfer.ErrIncomplete)
	require.False(t, summary.Complete)
	require.Equal(t, strings.Count(text[:half], `{"snapshot":`), summary.Snapshots, "what could be read was entered")

	_, err = take(t, to, strings.NewReader(text), transfer.Options{Keys: true})
	require.Equal(t, rollcall.CodeConflict, rollcall.CodeOf(err))
	rest, err := take(t, to, strings.NewReader(text), transfer.Options{SkipKnown: true, Keys: true})
	require.NoError(t, err)
	require.Equal(t, summary.Snapshots, rest.Skipped)
	require.Equal(t, 300-summary.Snapshots, rest.Snapshots)
	_, n := digest(t, to)
	require.Equal(t, 300, n)
	again, err := take(t, to, strings.NewReader(text), transfer.Options{SkipKnown: true, Keys: true})
	require.NoError(t, err)
	require.Equal(t, 1, again.KnownKeys)
}

func TestDamaged(t *testing.T) {
	packed, text := exported(t, 300)
	for n := 4; n < len(packed); n += 1 + len(packed)/100 {
		spoiled := bytes.Clone(packed)
		spoiled[n] ^= 0x20
		require.ErrorIs(t, verify(bytes.NewReader(spoiled)), transfer.ErrDamaged, "byte %d of %d", n, len(packed))
	}
	for name, spoiled := range map[string]string{
		"a changed name":     strings.Replace(text, "Nº 10", "Nº 99", 1),
		"a line gone":        strings.Replace(text, text[strings.Index(text, "\n")+1:strings.Index(text, "\n{\"api_key")+1], "", 1),
		"something behind":   text + "{}\n",
		"another trailer":    strings.Replace(text, `"snapshots":300`, `"snapshots":301`, 1),
		"no header":          text[strings.Index(text, "\n")+1:],
		"no export":          "time,user\n2026-01-01,alice\n",
		"a bad trailer":      strings.Replace(text, `{"end":{`, `{"end":[`, 1),
		"an unknown trailer": strings.Replace(text, `{"end":{`, `{"end":{"more":1,`, 1),
	} {
		require.ErrorIs(t, verify(strings.NewReader(spoiled)), transfer.ErrDamaged, name)
	}
	err := verify(strings.NewReader(strings.Replace(text, `"version":3`, `"version":4`, 1)))
	require.ErrorContains(t, err, "version 4")

	// What only the checksum tells is entered from a stream that is read once,
	// and told.
	to := open(t, "")
	summary, err := take(t, to, strings.NewReader(strings.Replace(text, "Nº 10", "Nº 99", 1)), transfer.Options{Keys: true})
	require.ErrorIs(t, err, transfer.ErrDamaged)
	require.Equal(t, 300, summary.Snapshots)
	require.False(t, summary.Complete)
}

// TestFaultyLines names the line of whatever cannot be entered.
func TestFaultyLines(t *testing.T) {
	_, text := exported(t, 10)
	header, _, _ := strings.Cut(text, "\n")
	for line, code := range map[string]rollcall.Code{
		`{"snapshot":{"user":"a","colour":"red"}}`:                                             rollcall.CodeInternal,
		`{"snapshot":{"user":"a","days":{"user":["2026-02-30"]}}}`:                             rollcall.CodeInternal,
		`{"snapshot":{"user":"a","days":{"user":["2026-02-03/2026-02-01"]}}}`:                  rollcall.CodeInternal,
		`{"snapshot":{"user":"a","days":{"user":["1970-01-01/9999-02-01"]}}}`:                  rollcall.CodeInternal,
		`{"snapshot":{"user":"a","days":{"user":["2999-02-03"]}}}`:                             rollcall.CodeInvalidArgument,
		`{"snapshot":{"user":"a","bans":[{"key":"00"}]}}`:                                      rollcall.CodeInternal,
		`{"snapshot":{"user":"a","sessions":[{"id":"nonsense"}]}}`:                             rollcall.CodeInternal,
		`{"snapshot":{"user":"a","ended":[{"id":"00000000000000000000000000","token":"zz"}]}}`: rollcall.CodeInternal,
		`{"snapshot":{"user":"","kind":"staff"}}`:                                              rollcall.CodeInvalidArgument,
		`{"snapshot":{"user":"a`:                                                               rollcall.CodeInternal,
		`{"api_key":{"id":"0000000000000000","hash":"00"}}`:                                    rollcall.CodeInternal,
		`{"note":{}}`: rollcall.CodeInternal,
		`{}`:          rollcall.CodeInternal,
	} {
		to := open(t, "")
		summary, err := take(t, to, strings.NewReader(header+"\n"+`{"snapshot":{"user":"first","kind":"staff"}}`+"\n"+line+"\n"), transfer.Options{Keys: true})
		require.ErrorContains(t, err, "line 3: ", line)
		require.Equal(t, code, rollcall.CodeOf(err), "%s: %v", line, err)
		require.Equal(t, 1, summary.Snapshots, line)
	}
	to := open(t, "")
	key := `{"api_key":{"id":"0000000000000000","hash":"` + strings.Repeat("ab", 32) + `","role":"admin","created_at":"2026-01-01T00:00:00Z"}}`
	_, err := take(t, to, strings.NewReader(header+"\n"+key+"\n"), transfer.Options{Keys: true})
	require.ErrorContains(t, err, "contradicts the hash")
}

// TestHostileTexts moves whatever may stand in an id or a name.
func TestHostileTexts(t *testing.T) {
	from, to := open(t, ""), open(t, "")
	texts := []string{
		`"`, `\`, `{`, `[`, `},{`, "\u2028", "\ufffd", "é", "日本語", "🙂", " a ", "'", "<b>&", "-", "007", "7",
		strings.Repeat("ü", 64), `\u0000`, "{\"end\":{",
	}
	for _, text := range texts {
		_, err := from.Login(t.Context(), rollcall.Login{User: text, Name: text, UserAgent: text, DeviceID: text, Attrs: map[string]string{"k{": text}})
		require.NoError(t, err, text)
		_, err = from.Ban(t.Context(), text, time.Hour, text, text)
		require.NoError(t, err)
	}
	var out bytes.Buffer
	_, err := transfer.Export(t.Context(), from, &out, nil)
	require.NoError(t, err)
	summary, err := take(t, to, &out, transfer.Options{Keys: true})
	require.NoError(t, err)
	require.Equal(t, len(texts), summary.Bans)
	want, _ := digest(t, from)
	got, _ := digest(t, to)
	require.Equal(t, want, got)
}

// failing is a writer that takes so much.
type failing struct{ left int }

var errFull = errors.New("no room")

func (f *failing) Write(b []byte) (int, error) {
	if f.left -= len(b); f.left < 0 {
		return 0, errFull
	}
	return len(b), nil
}

func TestWhatFailsIsTold(t *testing.T) {
	roll := open(t, "")
	fill(t, roll, 20_000)
	_, err := transfer.Export(t.Context(), roll, &failing{100_000}, nil)
	require.ErrorIs(t, err, errFull)
	ctx, cancel := context.WithCancel(t.Context())
	_, err = transfer.Export(ctx, roll, io.Discard, func(transfer.Progress) { cancel() })
	require.ErrorIs(t, err, context.Canceled)

	var out bytes.Buffer
	_, err = transfer.Export(t.Context(), roll, &out, nil)
	require.NoError(t, err)
	to := open(t, "")
	s, err := transfer.Open(&out)
	require.NoError(t, err)
	ctx, cancel = context.WithCancel(t.Context())
	summary, err := s.Import(ctx, to, transfer.Options{Progress: func(transfer.Progress) { cancel() }})
	require.ErrorIs(t, err, context.Canceled)
	require.NotZero(t, summary.Snapshots)
	require.Less(t, summary.Snapshots, 20_000)
	require.NoError(t, s.Close())
	_, n := digest(t, to)
	require.Equal(t, summary.Snapshots, n)
}

// TestAnotherSecret moves bans to where their users are known by other keys.
func TestAnotherSecret(t *testing.T) {
	from := open(t, "")
	_, err := from.Ban(t.Context(), "alice", time.Hour, "spam", "")
	require.NoError(t, err)
	var out bytes.Buffer
	_, err = transfer.Export(t.Context(), from, &out, nil)
	require.NoError(t, err)
	engine, err := local.Open("", local.Options{InMemory: true})
	require.NoError(t, err)
	to, err := rollcall.New(engine, rollcall.Options{Clock: rollcall.NewManualClock(now), Secret: []byte("a secret that is quite another one")})
	require.NoError(t, err)
	require.NotEqual(t, from.SecretID(), to.SecretID())
	_, err = take(t, to, &out, transfer.Options{Keys: true})
	require.NoError(t, err)
	ban, err := to.BanOf(t.Context(), "alice")
	require.NoError(t, err)
	require.Equal(t, "spam", ban.Reason)
	require.NoError(t, errors.Join(to.Close(), engine.Close()))
}
