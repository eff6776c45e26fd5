package history

import (
	"bytes"
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
)

// randomFile makes rows of random users and times in every form, in any order,
// many of them twice, and says in a plain set what they mean.
func randomFile(rng *rand.Rand, zone *time.Location, rows int) (text string, want []string) {
	var b strings.Builder
	set := make(map[string]bool)
	latest := startOfTests().Unix()
	for range rows {
		at := time.Unix(latest-rng.Int64N(800*daySeconds), 0).In(zone)
		when := []string{
			at.Format(time.RFC3339), at.UTC().Format(time.RFC3339Nano), at.Format(time.DateOnly),
			fmt.Sprint(at.Unix()), fmt.Sprint(at.UnixMilli()), fmt.Sprintf("%d.25", at.Unix()),
		}[rng.IntN(6)]
		user := []string{"%d", "user %d", "用户%d", "%03d", `say "%d"`, "%d,5"}[rng.IntN(6)]
		user = fmt.Sprintf(user, rng.IntN(200))
		kind := []string{"", "staff", "guest"}[rng.IntN(3)]
		set[fmt.Sprintf("%s %s %s", at.Format(time.DateOnly), cmp.Or(kind, rollcall.DefaultKind), user)] = true
		if rng.IntN(2) == 0 || strings.ContainsAny(user, `",`) {
			user = `"` + strings.ReplaceAll(user, `"`, `""`) + `"`
		}
		end := []string{"\n", "\r\n", "\n\n"}[rng.IntN(3)]
		if kind == "" && rng.IntN(2) == 0 {
			fmt.Fprintf(&b, "%s,%s%s", when, user, end)
		} else {
			fmt.Fprintf(&b, "%s,%s,%s%s", when, user, kind, end)
		}
	}
	for key := range set {
		want = append(want, key)
	}
	slices.Sort(want)
	return b.String(), want
}

func TestImportMatchesAPlainSet(t *testing.T) {
	for i, name := range []string{"UTC", "Europe/Berlin", "America/St_Johns", "Pacific/Apia"} {
		t.Run(name, func(t *testing.T) {
			const rows = 8_000
			text, want := randomFile(rand.New(rand.NewPCG(uint64(i), 3)), location(t, name), rows)
			windows := []int{1_000, 7_777, 0}
			if i > 0 { // days of another zone are cut into windows as those of UTC are
				windows = windows[i-1 : i]
			}
			for _, window := range windows {
				roll := newRoll(t, name)
				summary := importText(t, roll, text, Options{Window: window})
				require.Empty(t, summary.FirstRejected)
				require.EqualValues(t, rows, summary.Rows)
				require.EqualValues(t, len(want), summary.Marked)
				require.EqualValues(t, rows-len(want), summary.Already)
				require.Equal(t, want, attended(t, roll, "user", "staff", "guest"))
				require.Equal(t, want[0][:10], summary.FirstDay.String())
				require.Equal(t, want[len(want)-1][:10], summary.LastDay.String())

				again := importText(t, roll, text, Options{Window: window})
				require.Zero(t, again.Marked)
				require.EqualValues(t, rows, again.Already)
			}
		})
	}
}

// TestChunksDoNotMatter moves the ends of chunks over the lines of a file.
func TestChunksDoNotMatter(t *testing.T) {
	var b strings.Builder
	var want []string
	for i := range 90_000 {
		day := rollcall.Day(15_000 + i%1000)
		fmt.Fprintf(&b, "%s,user-%d\n", day, i)
		want = append(want, fmt.Sprintf("%s user user-%d", day, i))
	}
	slices.Sort(want)
	require.Greater(t, b.Len(), chunkBytes*3/2)
	for _, head := range []int{0, 7, 25} {
		roll := newRoll(t, "UTC")
		text := strings.Repeat("\n", head) + b.String()
		summary := importText(t, roll, strings.TrimSuffix(text, "\n"), Options{Window: 1_000})
		require.Empty(t, summary.FirstRejected)
		require.EqualValues(t, 90_000, summary.Marked)
		require.Equal(t, want, attended(t, roll, "user"))
	}
}

func TestForms(t *testing.T) {
	want := []string{"2017-10-05 user alice", "2017-10-06 user bob"}
	for name, text := range map[string]string{
		"plain":                 "2017-10-05,alice\n2017-10-06,bob\n",
		"without a last break":  "2017-10-05,alice\n2017-10-06,bob",
		"header":                "time,user,kind\n2017-10-05,alice\n2017-10-06,bob\n",
		"quoted header":         "\"time\",\"user2\"\n2017-10-05,alice\n2017-10-06,bob\n",
		"header of more":        "at,user,kind,ip\n2017-10-05,alice\n2017-10-06,bob\n",
		"CRLF":                  "time,user\r\n2017-10-05,alice\r\n\r\n2017-10-06,bob\r\n",
		"byte order mark":       "\ufeff2017-10-05,alice\n2017-10-06,bob\n",
		"byte order mark, head": "\ufefftime,user\n2017-10-05,alice\n2017-10-06,bob\n",
		"gzip":                  string(packed(t, "time,user\n2017-10-05,alice\n2017-10-06,bob\n")),
		"gzip in members":       string(packed(t, "time,user\n2017-10-", "05,alice\n2017-10-06,bob\n")),
	} {
		t.Run(name, func(t *testing.T) {
			roll := newRoll(t, "UTC")
			summary := importText(t, roll, text, Options{})
			require.EqualValues(t, 2, summary.Rows)
			require.Empty(t, summary.FirstRejected)
			require.EqualValues(t, len(text), summary.Bytes)
			require.Equal(t, want, attended(t, roll, "user"))
		})
	}
	for name, text := range map[string]string{"nothing": "", "a header": "time,user\n", "empty lines": "\n\r\n\n"} {
		t.Run(name, func(t *testing.T) {
			summary := importText(t, newRoll(t, "UTC"), text, Options{})
			require.Zero(t, summary.Rows)
			require.Nil(t, summary.FirstDay)
			require.False(t, summary.AllRejected())
		})
	}
}

func TestKindOfRowsThatNameNone(t *testing.T) {
	roll := newRoll(t, "UTC")
	kind := "staff"
	_, err := roll.PutUser(t.Context(), "alice", rollcall.UserPatch{Kind: &kind})
	require.NoError(t, err)
	importText(t, roll, "2017-10-05,alice\n2017-10-05,bob\n2017-10-05,carol,guest\n", Options{})
	require.Equal(t, []string{"2017-10-05 guest carol", "2017-10-05 staff alice", "2017-10-05 user bob"},
		attended(t, roll, "user", "staff", "guest"))
	importText(t, roll, "2017-10-06,alice\n2017-10-06,carol,guest\n", Options{Kind: "member"})
	require.Equal(t, []string{"2017-10-06 member alice"}, attended(t, roll, "member"))
}

func TestEachBadLineIsRejectedForItsReason(t *testing.T) {
	long := "2017-10-05," + strings.Repeat("é", 300)
	bad := []struct {
		line string
		why  Reason
	}{
		{"2017-10-05", BadColumns},
		{"2017-10-05,a,b,c", BadColumns},
		{`2017-10-05,"a`, BadQuotes},
		{"5.10.2017,a", BadTime},
		{"time,user", BadTime}, // a header, but not the first line
		{"1969-12-31,a", TooOld},
		{"2026-03-05,a", Future},
		{"2017-10-05,", BadUser},
		{"2017-10-05,a\tb", BadUser},
		{"2017-10-05,\xff", BadUser},
		{long, BadUser},
		{"2017-10-05,a,Staff", BadKind},
		{"2017-10-05,a," + strings.Repeat("k", 33), BadKind},
		{"2017-10-05," + strings.Repeat("a", maxLine), TooLong},
		{"2017-10-05," + strings.Repeat("a", 3*chunkBytes), TooLong},
		{" ", BadColumns},
	}
	var b bytes.Buffer
	b.WriteString("2017-10-05,first\n")
	want := make([]Rejected, len(bad))
	for i, x := range bad {
		fmt.Fprintf(&b, "%s\r\n2017-10-05,good-%d\n", x.line, i)
		want[i] = Rejected{Line: int64(2 + 2*i), Reason: x.why, Text: cut(x.line)}
	}
	list := file(t, bytes.Repeat([]byte("of an earlier import\n"), 10_000))
	roll := newRoll(t, "UTC")
	summary := importText(t, roll, b.String(), Options{Rejected: list})
	require.Equal(t, want, summary.FirstRejected)
	require.EqualValues(t, len(bad), summary.Rejected)
	require.EqualValues(t, len(bad)+1, summary.Accepted())
	require.Len(t, attended(t, roll, "user"), len(bad)+1)
	counts := make(map[Reason]int64)
	for _, x := range bad {
		counts[x.why]++
	}
	require.Equal(t, counts, summary.Reasons)
	require.Equal(t, want, readReport(t, list))
	require.Len(t, want[10].Text, MaxText-1, "a text is cut between runes")
}

func TestALastLineThatIsTooLongForAnyChunk(t *testing.T) {
	long := "2017-10-05," + strings.Repeat("a", 2*chunkBytes+17)
	for _, end := range []string{"", "\n", "\n2017-10-06,bob", "\n\n2017-10-06,bob\n"} {
		roll := newRoll(t, "UTC")
		summary := importText(t, roll, "2017-10-05,alice\n"+long+end, Options{})
		require.Equal(t, []Rejected{{Line: 2, Reason: TooLong, Text: cut(long)}}, summary.FirstRejected)
		require.EqualValues(t, 2+strings.Count(end, "bob"), summary.Rows)
	}
}

func TestKindsAreAdmittedInTheOrderOfTheFile(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	var b strings.Builder
	for range 30_000 {
		fmt.Fprintf(&b, "2017-10-05,%d,k%d\n", rng.IntN(500), rng.IntN(100))
	}
	for i := range 3_000 { // far more than a store may have
		fmt.Fprintf(&b, "2017-10-05,%d,other-%d\n", i, i)
	}
	var kinds []string
	var rejected int64
	want := make(map[string]bool)
	for line := range strings.Lines(b.String()) {
		f := strings.Split(strings.TrimSpace(line), ",")
		if !slices.Contains(kinds, f[2]) {
			if len(kinds) == rollcall.MaxKinds-1 { // the default kind always has room
				rejected++
				continue
			}
			kinds = append(kinds, f[2])
		}
		want[fmt.Sprintf("%s %s %s", f[0], f[2], f[1])] = true
	}
	for _, window := range []int{1_000, 0} {
		roll := newRoll(t, "UTC")
		summary := importText(t, roll, b.String(), Options{Window: window})
		require.Equal(t, map[Reason]int64{TooManyKinds: rejected}, summary.Reasons)
		require.EqualValues(t, len(want), summary.Marked)
		require.EqualValues(t, 33_000-rejected, summary.Accepted())
		require.EqualValues(t, summary.Accepted(), summary.Marked+summary.Already)
		got := attended(t, roll, kinds...)
		require.Len(t, got, len(want))
		for _, key := range got {
			require.True(t, want[key], key)
		}
		require.True(t, slices.IsSortedFunc(summary.FirstRejected, func(a, b Rejected) int { return cmp.Compare(a.Line, b.Line) }))

		// The default kind, which users have unless said, always has room.
		own := importText(t, roll, "2017-10-06,alice\n2017-10-06,bob,k1\n2017-10-06,carol\n", Options{})
		require.Empty(t, own.FirstRejected)
		require.EqualValues(t, 3, own.Marked)
	}
}

func TestADryRunOnlyReads(t *testing.T) {
	dir := t.TempDir()
	roll := newRoll(t, "UTC")
	summary, err := importFile(t, roll, file(t, []byte("2017-10-05,alice\nnever,bob\n")), Options{DryRun: true, StateDir: dir})
	require.NoError(t, err)
	require.EqualValues(t, 1, summary.Accepted())
	require.EqualValues(t, 1, summary.Rejected)
	require.Zero(t, summary.Marked+summary.Already)
	require.Equal(t, "2017-10-05", summary.LastDay.String())
	require.Empty(t, attended(t, roll, "user"))
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestAFileOfNothingGood(t *testing.T) {
	summary := importText(t, newRoll(t, "UTC"), "a,b\nc1,d\ne,f\n", Options{})
	require.True(t, summary.AllRejected())
	require.EqualValues(t, 2, summary.Rejected, "the first line is taken for a header")
	require.Nil(t, summary.FirstDay)
}

func TestProgressGoesToTheEnd(t *testing.T) {
	text, _ := randomFile(rand.New(rand.NewPCG(9, 9)), time.UTC, 30_000)
	path := file(t, []byte(text))
	var all []Progress
	_, err := importFile(t, newRoll(t, "UTC"), path, Options{Window: 1_000, Progress: func(p Progress) { all = append(all, p) }})
	require.NoError(t, err)
	require.Equal(t, Progress{Size: int64(len(text))}, all[0])
	require.Equal(t, Progress{Rows: 30_000, Bytes: int64(len(text)), Size: int64(len(text))}, all[len(all)-1])
	require.True(t, slices.IsSortedFunc(all, func(a, b Progress) int {
		return cmp.Or(cmp.Compare(a.Rows, b.Rows), cmp.Compare(a.Bytes, b.Bytes))
	}))
}

func TestOptionsAreChecked(t *testing.T) {
	for field, o := range map[string]Options{
		"window": {Window: 999}, "kind": {Kind: "Staff"}, "resume": {Resume: true},
	} {
		_, err := Import(t.Context(), newRoll(t, "UTC"), Stream(strings.NewReader("")), o)
		var e *rollcall.Error
		require.ErrorAs(t, err, &e)
		require.Equal(t, field, e.Field)
	}
}
