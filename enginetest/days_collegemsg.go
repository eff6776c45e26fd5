package enginetest

import (
	"bufio"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rollcall/rollcall"
)

// collegeMsg is what is known about the CollegeMsg data set: 59,835 private
// messages of an online community (Panzarasa, Opsahl, Carley, 2009; SNAP).
// Whoever sends is active at that second.
type collegeMsg struct {
	Rows       int          `json:"rows"`
	Users      int          `json:"users"`
	Sessions   int          `json:"sessions"`
	FirstDay   rollcall.Day `json:"first_day"`
	LastDay    rollcall.Day `json:"last_day"`
	DAU        []int        `json:"dau"`
	WAU        []int        `json:"wau7"`
	MAU28      []int        `json:"mau28"`
	MAU30      []int        `json:"mau30"`
	Weeks      []rollcall.Day
	Sizes      []int   `json:"cohort_sizes"`
	On         [][]int `json:"retention_on"`
	OnOrAfter  [][]int `json:"retention_on_or_after"`
	Lifecycle  []collegeWeek
	Streaks    [][2]any                  `json:"longest_streaks"`
	ActiveDays map[string]int            `json:"active_days_distribution"`
	UserDays   map[string][]rollcall.Day `json:"user_days"`
	Probes     []collegeProbe
}

type collegeWeek struct {
	Week                                  rollcall.Day
	New, Returning, Resurrecting, Dormant int
}

// collegeProbe is what is true at one instant.
type collegeProbe struct {
	At            int64
	Online60      int      `json:"online_60"`
	Online300     int      `json:"online_300"`
	Online600     int      `json:"online_600"`
	Online3600    int      `json:"online_3600"`
	SessionsTotal int      `json:"sessions_total"`
	Sessions      [][2]any `json:"sessions_by_login_desc"`
	FriendsOf     string   `json:"friends_of"`
	OnlineFriends []string `json:"online_friends_3600"`
}

type message struct {
	src, dst string
	at       int64
}

// RunCollegeMsg replays the CollegeMsg data set (gzip, lines of "src dst
// unix-seconds") through an engine, and requires every figure of the expected
// answers (JSON) exactly. If live is not zero, it replays only as many messages, and
// enters of the others whose day it was.
func RunCollegeMsg(t *testing.T, open Opener, live int, data, expected string) {
	h := newHarness(t, t, t.Context(), open)
	rows := h.readMessages(data)
	want := h.readExpected(expected)
	h.Len(rows, want.Rows)
	h.clock.Set(time.Unix(rows[0].at, 0).UTC())
	h.open(rollcall.Options{
		AttendanceOn: rollcall.AttendOnBeat, Retention: 400 * 24 * time.Hour, NoPresenceEvents: true,
		Policies: h.newPolicies(rollcall.Policy{IdleTimeout: 30 * time.Minute}),
	})
	defer h.close()
	h.writeFriends(rows)
	if live == 0 {
		h.Equal(want.Sessions, h.replay(rows, want.Probes))
		h.Equal(want.Users, h.known())
	} else {
		h.replaySome(rows[:live], rows[live:], want.Probes)
	}
	for _, reopened := range []bool{false, true} {
		h.collegeSeries(want)
		h.collegeRetention(want)
		h.collegeUsers(want)
		if !reopened {
			h.restart()
		}
	}
}

func (h *harness) readMessages(path string) []message {
	file, err := os.Open(path)
	h.NoError(err)
	defer func() { _ = file.Close() }() // only read
	unzipped, err := gzip.NewReader(file)
	h.NoError(err)
	var rows []message
	for scan := bufio.NewScanner(unzipped); scan.Scan(); {
		var m message
		if n, _ := fmt.Sscan(scan.Text(), &m.src, &m.dst, &m.at); n == 3 {
			rows = append(rows, m)
		}
	}
	h.NotEmpty(rows)
	return rows
}

func (h *harness) readExpected(path string) collegeMsg {
	text, err := os.ReadFile(path)
	h.NoError(err)
	var want struct {
		collegeMsg
		Lifecycle []collegeWeek `json:"lifecycle_weekly"`
	}
	h.NoError(json.Unmarshal(text, &want))
	want.collegeMsg.Lifecycle = want.Lifecycle
	return want.collegeMsg
}

// writeFriends makes all that a user ever writes to their friends.
func (h *harness) writeFriends(rows []message) {
	friends := make(map[string][]rollcall.Friend)
	for _, m := range rows {
		if m.src != m.dst {
			friends[m.src] = append(friends[m.src], rollcall.Friend{User: m.dst})
		}
	}
	for user, list := range friends {
		h.NoError(h.roll.AddFriends(h.ctx, user, false, list...))
	}
}

// replay goes through the messages and stops at every probe; it returns how
// many sessions began.
func (h *harness) replay(rows []message, probes []collegeProbe) int {
	logins := 0
	tokens := make(map[string]string)
	for _, m := range rows {
		for len(probes) > 0 && probes[0].At < m.at {
			h.probe(probes[0])
			probes = probes[1:]
		}
		h.clock.Set(time.Unix(m.at, 0).UTC())
		if tokens[m.src] != "" {
			_, err := h.roll.Touch(h.ctx, rollcall.SessionRef{Token: tokens[m.src]})
			if err == nil {
				continue
			}
			h.Contains([]rollcall.Code{rollcall.CodeSessionEnded, rollcall.CodeUnauthenticated}, rollcall.CodeOf(err))
		}
		in, err := h.roll.Login(h.ctx, rollcall.Login{User: m.src})
		h.NoError(err)
		tokens[m.src] = in.Token
		logins++
	}
	for _, p := range probes {
		h.probe(p)
	}
	return logins
}

// replaySome goes through some messages, and stops at the probes that they decide. Of
// the rest it enters the days.
func (h *harness) replaySome(some, rest []message, probes []collegeProbe) {
	sessions, last := 0, make(map[string]int64)
	for _, m := range some {
		if before, known := last[m.src]; !known || m.at-before >= 30*60 {
			sessions++
		}
		last[m.src] = m.at
	}
	decided := slices.IndexFunc(probes, func(p collegeProbe) bool { return p.At >= rest[0].at })
	h.Positive(decided)
	h.Equal(sessions, h.replay(some, probes[:decided]))
	h.Equal(len(last), h.known())

	h.clock.Set(time.Unix(rest[len(rest)-1].at, 0).UTC())
	for chunk := range slices.Chunk(rest, rollcall.MaxMarks) {
		var marks []rollcall.Mark
		for _, m := range chunk {
			marks = append(marks, rollcall.Mark{User: m.src, Day: rollcall.DayOf(time.Unix(m.at, 0), time.UTC)})
		}
		_, _, err := h.roll.ImportMarks(h.ctx, marks...)
		h.NoError(err)
	}
}

func (h *harness) probe(p collegeProbe) {
	h.clock.Set(time.Unix(p.At, 0).UTC())
	for window, want := range map[time.Duration]int{60: p.Online60, 300: p.Online300, 600: p.Online600, 3600: p.Online3600} {
		h.Equal(want, h.count(window*time.Second), "online for %d s at %d", window, p.At)
	}
	h.Len(h.online(time.Hour), p.Online3600)
	sessions := h.list(rollcall.SessionQuery{})
	slices.SortStableFunc(sessions, func(a, b rollcall.Session) int {
		return cmp.Or(b.LoginAt.Compare(a.LoginAt), strings.Compare(a.User, b.User))
	})
	h.Len(sessions, p.SessionsTotal)
	for i, want := range p.Sessions {
		h.Equal([]string{fmt.Sprint(want[0]), fmt.Sprintf("%.0f", want[1])},
			[]string{sessions[i].User, fmt.Sprint(sessions[i].LoginAt.Unix())}, "session %d at %d", i, p.At)
	}
	friends := h.onlineFriends(p.FriendsOf, rollcall.FriendsByLastSeen)
	h.ElementsMatch(p.OnlineFriends, friends, "friends of %s at %d", p.FriendsOf, p.At)
}

func (h *harness) collegeSeries(want collegeMsg) {
	span := rollcall.DayRange{From: want.FirstDay, To: want.LastDay}
	got, ok, err := h.roll.AttendanceSpan(h.ctx, "")
	h.NoError(err)
	h.True(ok)
	h.Equal(span, got)
	for mau, expected := range map[rollcall.MAU][]int{rollcall.MAU28: want.MAU28, rollcall.MAU30: want.MAU30} {
		series, err := h.roll.Series(h.ctx, rollcall.SeriesQuery{Range: span, MAU: mau})
		h.NoError(err)
		h.Len(series, len(want.DAU))
		for i, f := range series {
			h.Equal(rollcall.DayFigures{Day: span.From + rollcall.Day(i), DAU: want.DAU[i], WAU: want.WAU[i], MAU: expected[i]}, f)
		}
	}
}

func (h *harness) collegeRetention(want collegeMsg) {
	span := rollcall.DayRange{From: want.FirstDay, To: want.LastDay}
	for measure, retained := range map[rollcall.Measure][][]int{rollcall.MeasureOn: want.On, rollcall.MeasureOnOrAfter: want.OnOrAfter} {
		got, err := h.roll.Retention(h.ctx, rollcall.RetentionQuery{Range: span, Measure: measure})
		h.NoError(err)
		h.Len(got.Rows, len(want.Weeks))
		for i, row := range got.Rows {
			h.Equal(want.Weeks[i], row.Start)
			h.Equal(want.Sizes[i], row.Size)
			h.Equal(retained[i], row.Retained, "cohort of %s, %s", row.Start, measure)
		}
	}
	rows, err := h.roll.Lifecycle(h.ctx, rollcall.LifecycleQuery{Range: span})
	h.NoError(err)
	h.Len(rows, len(want.Lifecycle))
	for i, w := range want.Lifecycle {
		h.Equal(rollcall.LifecycleRow{
			Start: w.Week, New: w.New, Returning: w.Returning, Resurrecting: w.Resurrecting, Dormant: w.Dormant,
		}, rows[i])
	}
}

func (h *harness) collegeUsers(want collegeMsg) {
	span := rollcall.DayRange{From: want.FirstDay, To: want.LastDay}
	got, err := h.roll.Streaks(h.ctx, "", span, rollcall.MaxLimit)
	h.NoError(err)
	longest := make(map[string]string)
	for _, s := range got {
		longest[s.User] = fmt.Sprint(s.Longest)
	}
	for i, s := range want.Streaks { // equal ones stand in another order there
		h.Equal(fmt.Sprint(s[1]), fmt.Sprint(got[i].Longest))
		h.Equal(fmt.Sprint(s[1]), longest[fmt.Sprint(s[0])], "streak of %s", s[0])
	}
	counts, err := h.roll.ActiveDays(h.ctx, "", span)
	h.NoError(err)
	for n, users := range counts {
		h.Equal(want.ActiveDays[fmt.Sprint(n)], users, "%d days", n)
	}
	for user, days := range want.UserDays {
		attended, err := h.roll.Attended(h.ctx, user, "", span)
		h.NoError(err)
		h.Equal(days, attended.Days, user)
	}
	h.Equal(want.DAU[0], len(h.active("", rollcall.MatchAny, span.From, span.From)))
}
