package replay_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall/local"
	"github.com/rollcall/rollcall/replay"
)

func play(t *testing.T, log []byte, o replay.Options) *replay.Report {
	t.Helper()
	engine, err := local.Open("replay", local.Options{InMemory: true})
	require.NoError(t, err)
	defer func() { require.NoError(t, engine.Close()) }()
	report, err := replay.Play(t.Context(), engine, bytes.NewReader(log), o)
	require.NoError(t, err)
	return report
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile("../testdata/" + name)
	require.NoError(t, err)
	return b
}

// expected is the file of answers worked out independently.
type expected struct {
	Rows, Users, Sessions int
	FirstDay              string   `json:"first_day"`
	DAU                   []int    `json:"dau"`
	WAU7                  []int    `json:"wau7"`
	MAU28                 []int    `json:"mau28"`
	Weeks                 []string `json:"weeks"`
	CohortSizes           []int    `json:"cohort_sizes"`
	On                    [][]int  `json:"retention_on"`
	OnOrAfter             [][]int  `json:"retention_on_or_after"`
	Lifecycle             []struct {
		Week                                  string
		New, Returning, Resurrecting, Dormant int
	} `json:"lifecycle_weekly"`
	Streaks    [][2]any       `json:"longest_streaks"`
	ActiveDays map[string]int `json:"active_days_distribution"`
	Probes     []struct {
		At            int64
		Online60      int      `json:"online_60"`
		Online300     int      `json:"online_300"`
		Online600     int      `json:"online_600"`
		Online3600    int      `json:"online_3600"`
		SessionsTotal int      `json:"sessions_total"`
		Sessions      [][2]any `json:"sessions_by_login_desc"`
		FriendsOf     string   `json:"friends_of"`
		Friends       []string `json:"online_friends_3600"`
	}
}

func TestCollegeMsgExactly(t *testing.T) {
	var want expected
	require.NoError(t, json.Unmarshal(read(t, "CollegeMsg.expected.json"), &want))
	o := replay.Options{}
	for _, p := range want.Probes {
		o.Probes = append(o.Probes, p.At)
		if !slices.Contains(o.Friends, p.FriendsOf) {
			o.Friends = append(o.Friends, p.FriendsOf)
		}
	}
	got := play(t, read(t, "CollegeMsg.txt.gz"), o)
	require.Equal(t, want.Rows, got.Rows)
	require.Zero(t, got.Rejected, "the header is no row")
	require.Equal(t, want.Users, got.Users)
	require.Equal(t, want.Sessions, got.Sessions)
	require.Equal(t, want.FirstDay, got.Series[0].Day.String())
	require.Len(t, got.Series, len(want.DAU))
	for i, p := range got.Series {
		require.Equal(t, [3]int{want.DAU[i], want.WAU7[i], want.MAU28[i]}, [3]int{p.DAU, p.WAU, p.MAU}, "%s", p.Day)
	}
	for _, m := range []struct {
		got  replay.Retention
		want [][]int
	}{{got.Retention.On, want.On}, {got.Retention.OnOrAfter, want.OnOrAfter}} {
		require.Len(t, m.got.Cohorts, len(want.Weeks))
		for i, c := range m.got.Cohorts {
			require.Equal(t, want.Weeks[i], c.Start.String())
			require.Equal(t, want.CohortSizes[i], c.Size)
			require.Equal(t, m.want[i], c.Retained)
		}
	}
	require.Len(t, got.Lifecycle, len(want.Lifecycle))
	for i, l := range got.Lifecycle {
		w := want.Lifecycle[i]
		require.Equal(t, [4]int{w.New, w.Returning, w.Resurrecting, w.Dormant}, [4]int{l.New, l.Returning, l.Resurrecting, l.Dormant})
		require.Equal(t, w.Week, l.Start.String())
	}
	require.Equal(t, want.ActiveDays, got.ActiveDays)
	checkStreaks(t, want.Streaks, got.Streaks)
	checkProbes(t, &want, got)
}

// checkStreaks compares users and lengths; the expected file breaks ties by
// number, the report by text.
func checkStreaks(t *testing.T, want [][2]any, got []replay.Streak) {
	t.Helper()
	require.Len(t, got, len(want))
	var wanted, found []string
	for i, w := range want {
		require.EqualValues(t, w[1], got[i].Longest)
		wanted = append(wanted, fmt.Sprint(w[0], " ", w[1]))
		found = append(found, fmt.Sprint(got[i].User, " ", got[i].Longest))
		if i > 0 && got[i].Longest == got[i-1].Longest {
			require.Less(t, got[i-1].User, got[i].User)
		}
	}
	require.ElementsMatch(t, wanted, found)
}

func checkProbes(t *testing.T, want *expected, got *replay.Report) {
	t.Helper()
	require.Len(t, got.Probes, 40)
	for i, p := range got.Probes {
		w := want.Probes[i]
		require.Equal(t, w.At, p.At)
		require.Equal(t, map[string]int{"60": w.Online60, "300": w.Online300, "600": w.Online600, "3600": w.Online3600}, p.Online)
		require.Equal(t, w.SessionsTotal, p.SessionsTotal)
		require.Len(t, p.Sessions, len(w.Sessions))
		for j, s := range p.Sessions {
			require.Equal(t, w.Sessions[j][0], s.User)
			require.EqualValues(t, w.Sessions[j][1], s.Login)
		}
		require.ElementsMatch(t, w.Friends, p.Friends[w.FriendsOf])
	}
}

func TestAccessLogIsReadThroughItsBrokenLine(t *testing.T) {
	got := play(t, read(t, "apache_access.log.gz"), replay.Options{Format: replay.CLF})
	require.Equal(t, 9999, got.Rows)
	require.Equal(t, 1, got.Rejected)
	require.Equal(t, []replay.Rejected{{Line: 8899, Reason: "the user agent: the closing quote is missing"}}, got.First)
	require.Len(t, got.Series, 4)
	var text strings.Builder
	require.NoError(t, got.WriteText(&text, 80))
	for _, line := range strings.Split(text.String(), "\n") {
		require.LessOrEqual(t, len([]rune(line)), 80, line)
	}
	require.Contains(t, text.String(), "1 line could not be read")
	t.Log("\n" + text.String())
}

func TestCSVWithKindsAndBothTimes(t *testing.T) {
	log := "time,user,kind\n" +
		"2026-03-01T10:00:00Z,alice,staff\n" +
		"1772359200,\"bob, jr\"\n" + // the same instant
		"2026-03-01T10:40:00Z,alice\n" +
		"yesterday,eve\n" +
		"2026-03-02T10:00:00Z,alice,Bad Kind\n"
	engine, err := local.Open("replay", local.Options{InMemory: true})
	require.NoError(t, err)
	defer func() { require.NoError(t, engine.Close()) }()
	got, err := replay.Play(t.Context(), engine, strings.NewReader(log), replay.Options{Format: replay.CSV, Probes: []int64{1772359200, 1772361000}})
	require.NoError(t, err)
	require.Equal(t, 3, got.Rows)
	require.Equal(t, 2, got.Rejected)
	require.Equal(t, 3, got.Sessions)
	require.Equal(t, 2, got.Peak.Online)
	require.Equal(t, 2, got.Probes[0].SessionsTotal)
	require.Zero(t, got.Probes[1].SessionsTotal, "silent for just 30 minutes")
	var out bytes.Buffer
	require.NoError(t, got.WriteJSON(&out))
	require.Contains(t, out.String(), `"at": "2026-03-01T10:00:00.000Z"`)
}

func TestLinesOutOfOrderArePlayedInOrder(t *testing.T) {
	got := play(t, []byte("a b 5000\na b 1000\nc d 1000\n"), replay.Options{Probes: []int64{999, 1000, 5000}, Friends: []string{"a"}})
	require.Equal(t, 3, got.Sessions)
	require.Zero(t, got.Probes[0].SessionsTotal)
	require.Equal(t, 2, got.Probes[1].SessionsTotal)
	require.Equal(t, []replay.ProbeSession{{User: "a", Login: 5000}}, got.Probes[2].Sessions)
	require.Empty(t, got.Probes[2].Friends["a"], "whom others write to has not acted")
}

func TestAnEmptyLogIsAReportToo(t *testing.T) {
	got := play(t, nil, replay.Options{})
	var out bytes.Buffer
	require.NoError(t, got.WriteText(&out, 80))
	require.Equal(t, "No row could be read.\n", out.String())
	require.NoError(t, got.WriteJSON(&out))
	require.NotContains(t, out.String(), `"series": null`)
}

func TestUnknownFormat(t *testing.T) {
	engine, err := local.Open("replay", local.Options{InMemory: true})
	require.NoError(t, err)
	defer func() { require.NoError(t, engine.Close()) }()
	_, err = replay.Play(t.Context(), engine, strings.NewReader(""), replay.Options{Format: "xml"})
	require.ErrorContains(t, err, "must be edges, clf or csv")
	_, err = replay.Play(t.Context(), engine, strings.NewReader(""), replay.Options{Idle: time.Millisecond})
	require.ErrorContains(t, err, "idle_timeout")
}
