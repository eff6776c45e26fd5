package e2e

import (
	"cmp"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/testbudget"
)

// college is the part of testdata/CollegeMsg.expected.json that is about days.
type college struct {
	First   string              `json:"first_day"`
	Last    string              `json:"last_day"`
	DAU     []int               `json:"dau"`
	WAU     []int               `json:"wau7"`
	MAU28   []int               `json:"mau28"`
	MAU30   []int               `json:"mau30"`
	Weeks   []string            `json:"weeks"`
	Sizes   []int               `json:"cohort_sizes"`
	On      [][]int             `json:"retention_on"`
	After   [][]int             `json:"retention_on_or_after"`
	Cycles  []cycle             `json:"lifecycle_weekly"`
	Streaks []userDays          `json:"longest_streaks"`
	Active  map[string]int      `json:"active_days_distribution"`
	Users   map[string][]string `json:"user_days"`
}

// cycle is the life cycle of a week.
type cycle struct {
	Week                                  string
	New, Returning, Resurrecting, Dormant int
}

// userDays is a user's longest streak.
type userDays struct {
	user string
	days int
}

// UnmarshalJSON implements json.Unmarshaler.
func (u *userDays) UnmarshalJSON(text []byte) error {
	return json.Unmarshal(text, &[]any{&u.user, &u.days})
}

// compare puts longer streaks first, and equal ones by user as text.
func (u userDays) compare(v userDays) int {
	return cmp.Or(cmp.Compare(v.days, u.days), strings.Compare(u.user, v.user))
}

type message struct {
	user string
	at   time.Time
}

// collegeMessages reads who of the CollegeMsg network of SNAP wrote when.
func collegeMessages(t *testing.T) []message {
	t.Helper()
	file, err := os.Open("../testdata/CollegeMsg.txt.gz")
	require.NoError(t, err)
	defer file.Close()
	unzipped, err := gzip.NewReader(file)
	require.NoError(t, err)
	text, err := io.ReadAll(unzipped)
	require.NoError(t, err)
	var out []message
	_, rows, _ := strings.Cut(string(text), "\n") // past the headings
	for line := range strings.Lines(rows) {
		fields := strings.Fields(line)
		require.Len(t, fields, 3)
		unix, err := strconv.ParseInt(fields[2], 10, 64)
		require.NoError(t, err)
		out = append(out, message{fields[0], time.Unix(unix, 0).UTC()})
	}
	return out
}

func expectedCollege(t *testing.T) college {
	t.Helper()
	var want college
	raw, err := os.ReadFile("../testdata/CollegeMsg.expected.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(raw, &want))
	return want
}

// TestCollegeMsg gives servers on every engine and in several zones, those on Redis
// and a Cluster but in a long run in one, the instants of a public data set, and compares every figure of days with a slow
// computation over civil dates. In UTC that is itself held to figures that were
// computed elsewhere.
func TestCollegeMsg(t *testing.T) {
	binary := buildBinary(t)
	messages := collegeMessages(t)
	elsewhere := expectedCollege(t)
	zones := []string{"UTC", "Asia/Shanghai", "America/New_York"}
	wants := map[string]college{} // by zone
	turn := 0                     // of the engines that have one zone each
	onEveryEngine(t, func(t *testing.T, on backend) {
		some := zones
		if on.url != "" && !testbudget.Long() {
			turn++
			some = zones[turn : turn+1]
		}
		for _, zone := range some {
			t.Run(zone, func(t *testing.T) {
				want, known := wants[zone]
				if !known {
					location, err := time.LoadLocation(zone)
					require.NoError(t, err)
					slow := referenceCalendar{}
					for _, m := range messages {
						slow.add(m.at.In(location).Format(time.DateOnly), m.user)
					}
					want = slow.college(slices.Sorted(maps.Keys(elsewhere.Users)))
					wants[zone] = want
				}
				if zone == "UTC" {
					requireSame(t, elsewhere, want)
				} else {
					require.NotEqual(t, elsewhere.DAU, want.DAU)
				}
				store := ""
				if on.url != "" {
					store = on.store()
				}
				dir, flags := t.TempDir(), append(on.flags(store), "--timezone", zone)
				if zone == "Asia/Shanghai" { // by another door
					importCSV(t, binary, dir, flags, messages)
				}
				s := start(t, binary, dir, flags...)
				if zone != "Asia/Shanghai" {
					s.importMessages(messages)
				}
				s.requireCollege(want)
				s.kill()
			})
		}
	})
}

// requireSame compares all but the order of equal streaks, which has no meaning
// elsewhere.
func requireSame(t *testing.T, elsewhere, slow college) {
	t.Helper()
	for i, s := range elsewhere.Streaks {
		require.Equal(t, s.days, slow.Streaks[i].days)
		require.Contains(t, slow.Streaks, s)
	}
	slow.Streaks = elsewhere.Streaks
	require.Equal(t, elsewhere, slow)
}

func (s *server) importMessages(messages []message) {
	s.t.Helper()
	for some := range slices.Chunk(messages, rollcall.MaxMarks) {
		marks := make([]map[string]any, len(some))
		for i, m := range some {
			marks[i] = map[string]any{"user": m.user, "at": m.at}
		}
		s.get(nil, request{method: "POST", path: "/v1/attendance/marks?import=1", body: map[string]any{"marks": marks}}, http.StatusOK)
	}
}

// importCSV has the command take the messages in from a file.
func importCSV(t *testing.T, binary, dir string, flags []string, messages []message) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "messages.csv")
	var text strings.Builder
	for _, m := range messages {
		fmt.Fprintf(&text, "%s,%s\n", m.at.Format(time.RFC3339), m.user)
	}
	require.NoError(t, os.WriteFile(path, []byte(text.String()), 0o600))
	args := append([]string{"import", "csv", "--create", "--data-dir", dir, "--json", path}, flags...)
	out, err := exec.CommandContext(t.Context(), binary, args...).Output() //nolint:gosec // our own binary
	require.NoError(t, err)
	var summary struct{ Rows, Rejected int }
	require.NoError(t, json.Unmarshal(out, &summary), "%s", out)
	require.Equal(t, len(messages), summary.Rows)
	require.Zero(t, summary.Rejected)
}

// requireCollege asks for every figure.
func (s *server) requireCollege(want college) {
	s.t.Helper()
	ask := func(path string, v any) {
		s.t.Helper()
		path = fmt.Sprintf("/v1/attendance/%sfrom=%s&to=%s", path+separator(path), want.First, want.Last)
		s.get(v, request{method: "GET", path: path}, http.StatusOK)
	}
	requireSeries(s.t, ask, want)
	for measure, rows := range map[string][][]int{"on": want.On, "on_or_after": want.After} {
		requireRetention(s.t, ask, measure, rows, want)
	}
	requireUsers(s.t, ask, want)
}

func requireSeries(t *testing.T, ask func(string, any), want college) {
	t.Helper()
	for mau, wantMAU := range map[string][]int{"28": want.MAU28, "30": want.MAU30} {
		var got struct {
			Items []struct {
				Day           string
				DAU, WAU, MAU int
				DAUMAU        *float64 `json:"dau_mau"`
			}
		}
		ask("series?mau="+mau, &got)
		require.Len(t, got.Items, len(want.DAU))
		for i, item := range got.Items {
			require.Equal(t, later(want.First, i), item.Day)
			require.Equal(t, []int{want.DAU[i], want.WAU[i], wantMAU[i]}, []int{item.DAU, item.WAU, item.MAU}, item.Day)
			if wantMAU[i] == 0 {
				require.Nil(t, item.DAUMAU)
			} else {
				require.Equal(t, float64(want.DAU[i])/float64(wantMAU[i]), *item.DAUMAU) //nolint:testifylint // the same division
			}
		}
	}
}

func requireRetention(t *testing.T, ask func(string, any), measure string, rows [][]int, want college) {
	t.Helper()
	var got struct {
		Cohorts []struct {
			Start    string
			Size     int
			Retained []int
		}
	}
	ask("retention?period=week&cohort=first&measure="+measure, &got)
	require.Len(t, got.Cohorts, len(want.Weeks))
	for i, c := range got.Cohorts {
		require.Equal(t, want.Weeks[i], c.Start)
		require.Equal(t, want.Sizes[i], c.Size)
		require.Equal(t, rows[i], c.Retained, "%s, %s", measure, c.Start)
	}
}

func requireUsers(t *testing.T, ask func(string, any), want college) {
	t.Helper()
	var flows struct {
		Items []struct {
			Start                                 string
			New, Returning, Resurrecting, Dormant int
		}
	}
	ask("lifecycle?period=week", &flows)
	var cycles []cycle
	for _, f := range flows.Items {
		cycles = append(cycles, cycle{Week: f.Start, New: f.New, Returning: f.Returning, Resurrecting: f.Resurrecting, Dormant: f.Dormant})
	}
	require.Equal(t, want.Cycles, cycles)

	var streaks struct {
		Items []struct {
			User    string
			Longest int
		}
	}
	ask("streaks?limit=1000", &streaks)
	require.Len(t, streaks.Items, min(1000, len(want.Streaks)))
	for i, item := range streaks.Items {
		require.Equal(t, want.Streaks[i], userDays{item.User, item.Longest}, "streak %d", i)
	}

	var sticky struct {
		Users map[string]int `json:"users_by_active_days"`
	}
	ask("stickiness?", &sticky)
	require.Equal(t, want.Active, sticky.Users)

	require.NotEmpty(t, want.Users)
	for user, days := range want.Users {
		var got struct {
			Days  []string
			Count int
		}
		ask("users/"+user+"?", &got)
		require.Equal(t, days, got.Days, user)
		require.Equal(t, len(days), got.Count)
	}
}

// separator is what stands between a path and the next query parameter.
func separator(path string) string {
	if strings.HasSuffix(path, "?") {
		return ""
	}
	return "&"
}
