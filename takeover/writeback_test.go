package takeover_test

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/redistest"
	"github.com/rollcall/rollcall/takeover"
)

func writeBack(t *testing.T, o *old, roll *rollcall.Roll, opts takeover.WriteBackOptions) *takeover.WriteBack {
	t.Helper()
	opts.Now, opts.Zone = time.Now, time.UTC
	w, err := takeover.NewWriteBack(o.source(), roll, opts)
	require.NoError(t, err)
	return w
}

func TestGoingBackFindsAnOnlineListOfSessions(t *testing.T) {
	goingBackToSessions(t, "")
}

// TestGoingBackFindsSetsOfWholeEntries: the sets of some systems hold user:session, as the list does.
func TestGoingBackFindsSetsOfWholeEntries(t *testing.T) {
	goingBackToSessions(t, ":")
}

// goingBackToSessions goes back to sets of sessions, or with a colon of whole entries.
func goingBackToSessions(t *testing.T, colon string) {
	t.Helper()
	inSet := func(user, session string) string {
		if colon == "" {
			return session
		}
		return user + colon + session
	}
	names := takeover.Names{Records: "login:{user}", Sets: "online:user:{user}"}
	onBothEngines(t, func(t *testing.T, roll *rollcall.Roll) {
		o := newOld(t, redistest.Options{})
		score := time.Now().Add(-time.Hour).UnixMilli()
		for _, user := range []string{"alice", "bob", "carol"} {
			o.do(fmt.Sprintf("ZADD online:user %d %s:x", score, user), "SADD online:user:"+user+" "+inSet(user, "x"), "SET login:"+user+`:x {"ip":"10.0.0.1"}`)
		}
		m := importer(t, o, roll, takeover.Options{Layout: takeover.OnlineZset, Names: names})
		_, err := m.Run(t.Context())
		require.NoError(t, err)

		// The switch: from here on things happen in Rollcall. Bob goes, Dave comes, Alice has
		// a second device.
		w := writeBack(t, o, roll, takeover.WriteBackOptions{Layout: takeover.OnlineZset, Names: names, Unit: takeover.UnitMilliseconds})
		require.NoError(t, w.Look(t.Context()))
		_, err = roll.Kick(t.Context(), rollcall.Kick{User: "bob"})
		require.NoError(t, err)
		dave, err := roll.Login(t.Context(), rollcall.Login{User: "dave", Device: "ios"})
		require.NoError(t, err)
		alice, err := roll.Login(t.Context(), rollcall.Login{User: "alice"})
		require.NoError(t, err)
		require.NoError(t, w.Look(t.Context()))

		daves, alices := "dave:"+dave.Session.ID.String(), "alice:"+alice.Session.ID.String()
		require.ElementsMatch(t, []string{"alice:x", "carol:x", daves, alices}, o.ask("ZRANGE online:user 0 -1"))
		require.Equal(t, []string{strconv.FormatInt(dave.Session.LoginAt.UnixMilli(), 10)}, o.ask("ZSCORE online:user "+daves))
		require.Equal(t, []string{strconv.FormatInt(score, 10)}, o.ask("ZSCORE online:user alice:x"))
		require.ElementsMatch(t, []string{inSet("alice", "x"), inSet("alice", alice.Session.ID.String())}, o.ask("SMEMBERS online:user:alice"))
		require.Equal(t, []string{inSet("dave", dave.Session.ID.String())}, o.ask("SMEMBERS online:user:dave"))
		require.Equal(t, []string{"0"}, o.ask("EXISTS login:bob:x online:user:bob"))
		require.Contains(t, o.ask("GET login:" + daves)[0], `"device":"ios"`)
		require.Equal(t, []string{`{"ip":"10.0.0.1"}`}, o.ask("GET login:alice:x"), "the old system's own record stays")

		// What it missed while it was away is found by the next one.
		_, err = roll.Kick(t.Context(), rollcall.Kick{User: "carol"})
		require.NoError(t, err)
		again := writeBack(t, o, roll, takeover.WriteBackOptions{Layout: takeover.OnlineZset, Names: names, Unit: takeover.UnitMilliseconds})
		require.NoError(t, again.Look(t.Context()))
		require.ElementsMatch(t, []string{"alice:x", daves, alices}, o.ask("ZRANGE online:user 0 -1"))
		report, err := takeover.Doctor(t.Context(), o.source(), takeover.DoctorOptions{Now: time.Now(), Layout: takeover.OnlineZset})
		require.NoError(t, err)
		require.Zero(t, report.Faults, "%+v", report.Findings)
	})
}

func TestGoingBackFindsAnOnlineListOfUsers(t *testing.T) {
	onBothEngines(t, func(t *testing.T, roll *rollcall.Roll) {
		o := newOld(t, redistest.Options{})
		o.do(fmt.Sprintf("ZADD online:user %d alice", time.Now().Unix()-3600))
		_, err := importer(t, o, roll, takeover.Options{Layout: takeover.OnlineZset}).Run(t.Context())
		require.NoError(t, err)
		_, err = roll.Login(t.Context(), rollcall.Login{User: "bob"})
		require.NoError(t, err)
		_, err = roll.Kick(t.Context(), rollcall.Kick{User: "alice"})
		require.NoError(t, err)
		w := writeBack(t, o, roll, takeover.WriteBackOptions{Layout: takeover.OnlineZset, Unit: takeover.UnitSeconds})
		require.NoError(t, w.Look(t.Context()))
		require.Equal(t, []string{"bob"}, o.ask("ZRANGE online:user 0 -1"))
	})
}

func TestGoingBackFindsLastSeenTimes(t *testing.T) {
	onBothEngines(t, func(t *testing.T, roll *rollcall.Roll) {
		o := newOld(t, redistest.Options{})
		o.do(fmt.Sprintf("ZADD users %d alice %d later", time.Now().Add(-time.Hour).UnixMilli(), time.Now().Add(time.Hour).UnixMilli()))
		_, err := importer(t, o, roll, takeover.Options{Layout: takeover.HeartbeatZset}).Run(t.Context())
		require.NoError(t, err)
		w := writeBack(t, o, roll, takeover.WriteBackOptions{Layout: takeover.HeartbeatZset, Unit: takeover.UnitMilliseconds})
		require.NoError(t, w.Look(t.Context()))
		later := o.ask("ZSCORE users later")
		require.NoError(t, roll.Beat(t.Context(), "alice", "new"))
		require.NoError(t, w.Look(t.Context()))
		require.Equal(t, later, o.ask("ZSCORE users later"), "no time moves backwards")
		list := o.ask(fmt.Sprintf("ZRANGEBYSCORE users %d %d", time.Now().Add(-time.Minute).UnixMilli(), time.Now().UnixMilli()))
		slices.Sort(list)
		require.Equal(t, []string{"alice", "new"}, list)
	})
}

// TestALateMarkIsWrittenBackHoweverLate marks a day of last week behind the first look.
func TestALateMarkIsWrittenBackHoweverLate(t *testing.T) {
	onBothEngines(t, func(t *testing.T, roll *rollcall.Roll) {
		o := newOld(t, redistest.Options{})
		at := time.Now().UTC()
		w, err := takeover.NewWriteBack(o.source(), roll, takeover.WriteBackOptions{
			Layout: takeover.LoginBitmaps, Since: at.AddDate(0, 0, -10), Zone: time.UTC, Now: func() time.Time { return at },
		})
		require.NoError(t, err)
		late := at.AddDate(0, 0, -7)
		for i, user := range []string{"alice", "bob"} {
			_, _, err = roll.ImportMarks(t.Context(), rollcall.Mark{User: user, Day: rollcall.DayOf(late, time.UTC)})
			require.NoError(t, err)
			require.NoError(t, w.Look(t.Context()))
			require.Equal(t, []string{"1"}, o.ask(fmt.Sprintf("GETBIT loginLog_%s_user_%s %d", late.Format("2006-01"), user, late.Day()-1)), "look %d", i)
			at = at.Add(2 * time.Minute)
		}
	})
}

func TestGoingBackFindsLoginDays(t *testing.T) {
	onBothEngines(t, func(t *testing.T, roll *rollcall.Roll) {
		o := newOld(t, redistest.Options{})
		today := time.Now().UTC()
		_, err := roll.Login(t.Context(), rollcall.Login{User: "client:7", Kind: "client"})
		require.NoError(t, err)
		_, err = roll.Login(t.Context(), rollcall.Login{User: "seven", Kind: "client"})
		require.NoError(t, err)
		day := rollcall.DayOf(today, time.UTC) - 1
		_, _, err = roll.ImportMarks(t.Context(), rollcall.Mark{User: "client:7", Kind: "client", Day: day})
		require.NoError(t, err)
		w := writeBack(t, o, roll, takeover.WriteBackOptions{Layout: takeover.LoginBitmaps, Kinds: map[string]string{"client": "client:"}, Since: today.AddDate(0, 0, -1)})
		require.NoError(t, w.Look(t.Context()))
		for _, at := range []time.Time{today, today.AddDate(0, 0, -1)} {
			require.Equal(t, []string{"1"}, o.ask(fmt.Sprintf("GETBIT loginLog_%s_client_7 %d", at.Format("2006-01"), at.Day()-1)))
		}
		require.Empty(t, o.ask("KEYS *seven*"), "an id without the text before it is none of the old system's")
		m := importer(t, o, roll, takeover.Options{Layout: takeover.LoginBitmaps, Kinds: map[string]string{"client": "client:"}})
		clean(t, m)
	})
}

func TestGoingBackFindsMinuteSets(t *testing.T) {
	onBothEngines(t, func(t *testing.T, roll *rollcall.Roll) {
		o := newOld(t, redistest.Options{})
		require.NoError(t, roll.Beat(t.Context(), "alice", "bob"))
		w := writeBack(t, o, roll, takeover.WriteBackOptions{Layout: takeover.MinuteSets})
		require.NoError(t, w.Look(t.Context()))
		union := "SUNION"
		for i := range 10 {
			union += fmt.Sprintf(" active.users:%02d", time.Now().UTC().Add(-time.Duration(i)*time.Minute).Minute())
		}
		require.ElementsMatch(t, []string{"alice", "bob"}, o.ask(union))
		report, err := takeover.Doctor(t.Context(), o.source(), takeover.DoctorOptions{Now: time.Now(), Layout: takeover.MinuteSets})
		require.NoError(t, err)
		require.Zero(t, report.Faults, "each set has its expiry")
	})
}

func TestAWriteBackRefusesWhatItCannotWrite(t *testing.T) {
	for text, opts := range map[string]takeover.WriteBackOptions{
		"--unit": {Layout: takeover.HeartbeatZset, Zone: time.UTC, Now: time.Now},
		"zone":   {Layout: takeover.LoginBitmaps, Now: time.Now},
		"now":    {Layout: takeover.LoginBitmaps, Zone: time.UTC},
	} {
		require.ErrorContains(t, opts.Check(), text)
	}
}
