package redis

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/redistest"
)

// slowScript is what no script may take of Redis's main thread, whatever the data.
const slowScript = 10 * time.Millisecond

// spent is the processor time of Redis's main thread, and how many scripts it ran.
func spent(t *testing.T, s *redistest.Server) (cpu time.Duration, scripts int) {
	t.Helper()
	info, err := s.Do("INFO", "everything")
	require.NoError(t, err)
	for line := range strings.Lines(info) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		switch name {
		case "used_cpu_user_main_thread", "used_cpu_sys_main_thread":
			sec, err := strconv.ParseFloat(value, 64)
			require.NoError(t, err)
			cpu += time.Duration(sec * float64(time.Second))
		case "cmdstat_evalsha":
			_, err := fmt.Sscanf(value, "calls=%d", &scripts)
			require.NoError(t, err)
		}
	}
	return cpu, scripts
}

// TestNoScriptTakesLong asks questions about much data in one partition. What is
// measured is processor time, by the scripts that a question takes: a machine that
// does other things holds scripts up, but makes them no dearer.
func TestNoScriptTakesLong(t *testing.T) {
	s := redistest.Start(t, redistest.Options{})
	e := engineFor(t, Options{URL: s.URL(), Partitions: 1, Timeout: 30 * time.Second})
	ctx, at := t.Context(), time.Now().Truncate(time.Hour)
	quick := func(what string, question func()) {
		t.Helper()
		cpu, scripts := spent(t, s)
		question()
		after, ran := spent(t, s)
		require.Less(t, (after-cpu)/time.Duration(ran-scripts), slowScript, "%s: a script", what)
	}

	// Sessions that meet two conditions. Totals look at their ids only.
	const sessions = 156_250
	for from := 0; from < sessions; from += 1000 {
		for _, order := range []string{"login", "by:kind:user", "by:app:shop"} {
			args := []string{"ZADD", e.of(0, order)}
			for i := from; i < min(sessions, from+1000); i++ {
				login := at.UnixMilli() + int64(i)
				id := binary.BigEndian.AppendUint64(nil, uint64(login)<<16)
				args = append(args, strconv.FormatInt(login, 10), string(binary.BigEndian.AppendUint64(id, uint64(i))))
			}
			_, err := s.Do(args...)
			require.NoError(t, err)
		}
	}
	quick("two conditions", func() {
		page, err := e.List(ctx, at, rollcall.SessionQuery{Filter: rollcall.SessionFilter{Kind: "user", App: "shop"}, Sort: rollcall.NewestLogin})
		require.NoError(t, err)
		require.Equal(t, sessions, page.Total)
	})

	// Visitors of many dense hours.
	const hours = 90 * 24
	first := at.Add(-hours * time.Hour)
	args := []string{"PFADD", e.of(0, fmt.Sprintf("visits:%d:page", first.Unix()))}
	for i := range 5000 {
		args = append(args, fmt.Sprint("visitor", i))
	}
	_, err := s.Do(args...)
	require.NoError(t, err)
	for i := 1; i < hours; i++ {
		_, err := s.Do("COPY", args[1], e.of(0, fmt.Sprintf("visits:%d:page", first.Add(time.Duration(i)*time.Hour).Unix())))
		require.NoError(t, err)
	}
	groups := make([][]string, 90)
	for i := range hours {
		groups[i/24] = append(groups[i/24], strconv.FormatInt(first.Add(time.Duration(i)*time.Hour).Unix(), 10))
	}
	quick("visitors of 90 dense days", func() {
		counts, err := e.countVisitors(ctx, "page", groups)
		require.NoError(t, err)
		require.InEpsilon(t, 5000, counts[0], 0.05)
	})

	// A long list of friends is replaced.
	friends := make([][]rollcall.Friend, 2)
	for i := range rollcall.MaxFriends {
		friends[0] = append(friends[0], rollcall.Friend{User: fmt.Sprint("friend", i)})
		friends[1] = append(friends[1], rollcall.Friend{User: fmt.Sprint("other", i)})
	}
	quick("10,000 friends", func() {
		require.NoError(t, e.ReplaceFriends(ctx, at, "alice", friends[0]))
		require.NoError(t, e.ReplaceFriends(ctx, at, "alice", friends[1]))
		friends[0], friends[1] = friends[1], friends[0]
	})
}
