package takeover_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall/internal/redistest"
	"github.com/rollcall/rollcall/internal/testbudget"
	"github.com/rollcall/rollcall/takeover"
)

// plantAll fills a Redis with all five layouts, and with faults of which there is a
// known number.
func plantAll(o *old) {
	var lines []string
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	// O1: 100 users, of whom 10 have expired, and 5 others have no record.
	for i := range 100 {
		ago := time.Duration(i) * time.Minute
		if i >= 90 {
			ago = 25 * time.Hour
		}
		add("ZADD online:user %s %d:s%d", ms(ago), i, i)
		if i%20 != 3 {
			add(`SET login:%d:s%d {"ip":"10.0.0.%d"}`, i, i, i)
		}
		if i%10 != 7 {
			add("SADD online:user:%d s%d", i, i)
		}
	}
	add("SADD online:user:1 lost")
	// O3: 50 in milliseconds, 7 in seconds, 3 ahead, 4 stale.
	for i := range 50 {
		add("ZADD users %s %d", ms(time.Duration(i)*time.Minute), i)
	}
	for i := range 7 {
		add("ZADD users %s s%d", sec(time.Minute), i)
	}
	for i := range 3 {
		add("ZADD users %s ahead%d", ms(-time.Hour), i)
	}
	for i := range 4 {
		add("ZADD users %s stale%d", ms(100*24*time.Hour), i)
	}
	// O5: friends, last seen, minutes.
	for i := range 20 {
		add("ZADD last.seen %s %d", sec(time.Duration(i)*time.Minute), i)
		add("SADD user:%d:friends 1 2 3", i+10)
		add("SADD active.users:%02d %d", i+40, i) // 20 to 1 minutes ago
		if i%2 == 0 {
			add("EXPIRE active.users:%02d 600", i+40)
		}
	}
	// O4: 30 users in two kinds, 6 with an expiry.
	for i := range 30 {
		kind := []string{"client", "office"}[i%2]
		add("SETBIT loginLog_2026-02_%s_%d 3 1", kind, i)
		add("SETBIT loginLog_2026-02_%s_%d 4 1", kind, i)
		if i < 6 {
			add("EXPIRE loginLog_2026-02_%s_%d 3600", kind, i)
		}
	}
	o.do(lines...)
}

// faults are the numbers of a report, by layout and code.
func faults(r *takeover.Report) map[string]int64 {
	out := make(map[string]int64)
	for _, f := range r.Findings {
		for _, fault := range f.Faults {
			out[string(f.Layout)+" "+fault.Code] = fault.Count.N
		}
	}
	return out
}

func TestDoctorNamesTheFaultsThatWerePlanted(t *testing.T) {
	o := newOld(t, redistest.Options{})
	plantAll(o)
	report, err := takeover.Doctor(t.Context(), o.source(), takeover.DoctorOptions{Now: now})
	require.NoError(t, err)
	require.Equal(t, map[string]int64{
		"online-zset expired": 10, "online-zset record_gone": 5, "online-zset dead": 15, "online-zset short_pages": 5,
		"online-zset not_in_set": 10, "online-zset not_in_list": 1,
		"heartbeat-zset mixed_units": 7, "heartbeat-zset ahead": 3, "heartbeat-zset stale": 4,
		"minute-sets no_expiry": 10, "minute-sets old_minutes": 6,
		"login-bitmaps expires": 6, "login-bitmaps expires_soon": 6, "login-bitmaps days_lost": 12,
		" no_time": 20,
	}, faults(report))
	require.Len(t, report.Findings, 6)
	require.False(t, report.CutShort)

	var text bytes.Buffer
	require.NoError(t, report.WriteText(&text))
	require.Contains(t, text.String(), "10 of 100 in the list are dead")
	require.Contains(t, text.String(), "--records 'login:{user}'")
	for line := range strings.Lines(text.String()) {
		require.LessOrEqual(t, len([]rune(line)), 81, line)
	}

	// A shell takes the commands as they stand there.
	shell := strings.ReplaceAll(text.String(), " \\\n", "")
	for _, f := range report.Findings {
		for _, c := range f.Commands {
			require.Contains(t, strings.Join(strings.Fields(shell), " "), c)
		}
	}
}

func TestDoctorFindsNothingWrongWhereNothingIs(t *testing.T) {
	o := newOld(t, redistest.Options{})
	o.do("SET some thing", "ZADD prices 12.5 apple 3 pear", "HSET h a b", "ZADD last.seen "+sec(time.Minute)+" alice")
	report, err := takeover.Doctor(t.Context(), o.source(), takeover.DoctorOptions{Now: now})
	require.NoError(t, err)
	require.Zero(t, report.Faults)
	require.Len(t, report.Findings, 1)
	require.Equal(t, takeover.LastSeenZset, report.Findings[0].Layout)
}

// TestDoctorKnowsSetsOfWholeEntries: the set of a user may hold user:session, as the list does.
func TestDoctorKnowsSetsOfWholeEntries(t *testing.T) {
	o := newOld(t, redistest.Options{})
	for i := range 20 {
		o.do(fmt.Sprintf("ZADD online:user %s %d:a %s %d:b", ms(time.Minute), i, ms(time.Hour), i), fmt.Sprintf("SADD online:user:%d %d:a %d:b", i, i, i))
	}
	report, err := takeover.Doctor(t.Context(), o.source(), takeover.DoctorOptions{Now: now})
	require.NoError(t, err)
	require.Empty(t, faults(report))

	o.do("SREM online:user:3 3:a", "SADD online:user:4 4:c")
	report, err = takeover.Doctor(t.Context(), o.source(), takeover.DoctorOptions{Now: now})
	require.NoError(t, err)
	require.Equal(t, map[string]int64{"online-zset not_in_set": 1, "online-zset not_in_list": 1}, faults(report))
}

// TestDoctorOnlyReads lets it look with the rights to read alone, and asks Redis which
// commands it was sent.
func TestDoctorOnlyReads(t *testing.T) {
	o := newOld(t, redistest.Options{User: &redistest.User{Name: "looker", Password: "p", Rules: "~* -@all +@read -keys"}})
	admin, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{o.server.Addr()}, Username: "default", Password: "the-password-of-the-tests", DisableCache: true, ForceSingleClient: true})
	require.NoError(t, err)
	defer admin.Close()
	plantAll(&old{t, o.server, admin})
	require.NoError(t, admin.Do(t.Context(), admin.B().ConfigResetstat().Build()).Error())

	report, err := takeover.Doctor(t.Context(), o.source(), takeover.DoctorOptions{Now: now})
	require.NoError(t, err)
	require.Positive(t, report.Faults)

	stats, err := admin.Do(t.Context(), admin.B().Info().Section("commandstats").Build()).ToString()
	require.NoError(t, err)
	reads := map[string]bool{"hello": true, "ping": true, "info": true, "config|resetstat": true, "auth": true, "client|setinfo": true, "client|setname": true}
	for _, name := range []string{
		"scan", "type", "zcard", "zscan", "zcount", "zrandmember", "zrevrange", "exists", "sismember", "sscan", "zscore",
		"memory|usage", "ttl", "getrange", "scard", "dbsize",
	} {
		reads[name] = true
	}
	asked := 0
	for line := range strings.Lines(stats) {
		if rest, ok := strings.CutPrefix(line, "cmdstat_"); ok {
			name, _, _ := strings.Cut(rest, ":")
			asked++
			require.True(t, reads[name], "it sent %s", name)
		}
	}
	require.Greater(t, asked, 10)
}

func TestDoctorDoesNotWaitForARedisThatDoesNotAnswer(t *testing.T) {
	o := newOld(t, redistest.Options{Proxied: true})
	o.do("ZADD users " + ms(time.Minute) + " 1")
	o.server.Proxy().BlackHole()
	defer o.server.Proxy().Heal()
	s, err := takeover.NewSource(o.client, takeover.SourceOptions{Timeout: 200 * time.Millisecond})
	require.NoError(t, err)
	began := time.Now()
	_, err = takeover.Doctor(t.Context(), s, takeover.DoctorOptions{Now: now})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Less(t, time.Since(began), 20*time.Second, "one command waits 0.2 s")
}

// TestDoctorEstimatesALargeList plants a fifth of the dead and expects the interval to hold it.
func TestDoctorEstimatesALargeList(t *testing.T) {
	n := 20_000
	if testbudget.Long() {
		n = 1_000_000
	}
	o := newOld(t, redistest.Options{})
	for from := 0; from < n; from += 1000 {
		var line strings.Builder
		fmt.Fprintf(&line, "ZADD online:user")
		var lines []string
		for i := from; i < from+1000; i++ {
			fmt.Fprintf(&line, " %s %d", ms(time.Duration(i%1000)*time.Minute), i)
			if i%5 != 0 {
				lines = append(lines, fmt.Sprintf("SET login:%d x", i))
			}
		}
		o.do(append(lines, line.String())...)
	}
	began := time.Now()
	report, err := takeover.Doctor(t.Context(), o.source(), takeover.DoctorOptions{Now: now, Layout: takeover.OnlineZset})
	require.NoError(t, err)
	t.Logf("%d entries, %d keys: %v", n, report.Keyspace, time.Since(began))
	require.Len(t, report.Findings, 1)
	for _, fault := range report.Findings[0].Faults {
		if fault.Code != "record_gone" {
			continue
		}
		require.True(t, fault.Count.Estimated)
		require.InDelta(t, n/5, fault.Count.N, float64(n)/20)
		require.Less(t, fault.Count.High-fault.Count.Low, int64(n/20))
		return
	}
	require.Fail(t, "nobody missed the records")
}

// TestAWalkThatTakesTooLongIsSaidToBeCutShort bounds the walk below what the rate allows for.
func TestAWalkThatTakesTooLongIsSaidToBeCutShort(t *testing.T) {
	o := newOld(t, redistest.Options{})
	lines := []string{"ZADD users " + ms(time.Minute) + " 1"}
	for i := range 5000 {
		lines = append(lines, fmt.Sprintf("SET k%d x", i))
	}
	o.do(lines...)
	s, err := takeover.NewSource(o.client, takeover.SourceOptions{Rate: 1000})
	require.NoError(t, err)
	report, err := takeover.Doctor(t.Context(), s, takeover.DoctorOptions{Now: now, Time: time.Second})
	require.NoError(t, err)
	require.True(t, report.CutShort)
	require.Less(t, report.Walked, int64(5000))
	var text bytes.Buffer
	require.NoError(t, report.WriteText(&text))
	require.Contains(t, text.String(), "CUT SHORT")
}
