package enginetest

import (
	"time"

	"github.com/rollcall/rollcall"
)

func sampleTests() []test {
	return []test{
		{"the first tick of a minute counts who is online and what sessions live", sampleLevels},
		{"a minute is told once it is over, and never changes", sampleWhole},
		{"logins, ends and beats count in the minute they happen in", sampleFlows},
		{"an end counts by its cause", sampleCauses},
		{"a minute without a tick is a gap", sampleGap},
		{"the sample of an hour has least, mean and greatest, and sums", sampleHours},
		{"samples count what the public is shown", samplePublic},
		{"a range of samples includes its beginning and not its end", sampleRange},
		{"samples of minutes are kept for 8 days, those of hours for 400", sampleKept},
		{"samples survive a restart, with what the minute under way has counted", sampleRestart},
		{"a crash loses what a minute counted since the last tick, and no more", sampleCrash},
		{"a clock that is set back begins no sample anew", sampleClockBack},
		{"a range of samples is as long as they are kept at most", sampleLimits},
	}
}

func (h *harness) samples(q rollcall.SampleQuery) []rollcall.Sample {
	got, err := h.roll.Samples(h.ctx, q)
	h.NoError(err)
	return got
}

// minutes returns the samples of the last day.
func (h *harness) minutes() []rollcall.Sample { return h.samples(rollcall.SampleQuery{}) }

// toMinute moves the clock to a minute of the first hour as a server lives it.
func (h *harness) toMinute(n int) {
	for end := start().Add(time.Duration(n) * time.Minute); h.now().Before(end); {
		h.advance(min(5*time.Second, end.Sub(h.now()))) // a gap of 5 s is no outage
		h.tick()
	}
}

// level is a sample of which all that was counted is the same three times.
func level(at time.Time, online, sessions int) rollcall.Sample {
	return rollcall.Sample{
		At: at, Online: online, OnlineMin: online, OnlineMax: online,
		Sessions: sessions, SessionsMin: sessions, SessionsMax: sessions, Ends: map[rollcall.Cause]int{},
	}
}

func sampleLevels(h *harness) {
	h.fresh(rollcall.Options{Window: 30 * time.Second, Policies: h.newPolicies(rollcall.Policy{IdleTimeout: 45 * time.Second})})
	h.login("alice")
	h.beat("bob")
	h.tick()
	h.login("carol") // behind the count
	h.toMinute(1)
	h.tick()
	h.beat("bob")
	h.toMinute(2)
	got := h.minutes()
	h.Len(got, 2)
	h.Equal([]int{2, 1}, []int{got[0].Online, got[0].Sessions})
	h.Equal(level(start(), 2, 1).SessionsMax, got[0].SessionsMax)
	h.Equal([]int{0, 0}, []int{got[1].Online, got[1].Sessions}, "silent for the window, and the sessions have expired")
}

func sampleWhole(h *harness) {
	h.Empty(h.minutes())
	h.tick()
	h.beat("alice")
	h.advance(time.Minute - time.Millisecond)
	h.tick()
	h.Empty(h.minutes(), "the minute is under way")
	h.advance(time.Millisecond)
	h.Empty(h.minutes(), "no tick has ended it")
	h.tick()
	want := level(start(), 0, 0)
	want.Beats = 1
	h.Equal([]rollcall.Sample{want}, h.minutes())
	h.beat("bob")
	h.tick()
	h.Equal([]rollcall.Sample{want}, h.minutes())
}

func sampleFlows(h *harness) {
	h.login("before the first sample")
	h.tick()
	alice := h.login("alice")
	h.beat("bob", "carol")
	h.toMinute(1)
	h.touch(alice)
	h.alive(alice)
	h.toMinute(2)
	h.logout(alice)
	h.toMinute(3)
	got := h.minutes()
	h.Len(got, 3)
	h.Equal([]int{1, 3}, []int{got[0].Logins, got[0].Beats}, "a login is a beat too")
	h.Equal([]int{0, 1}, []int{got[1].Logins, got[1].Beats}, "so is a touch, and to verify is none")
	h.Equal([]int{0, 0}, []int{got[2].Logins, got[2].Beats})
	h.Equal(map[rollcall.Cause]int{}, got[1].Ends)
	h.Equal(map[rollcall.Cause]int{rollcall.CauseLogout: 1}, got[2].Ends)
}

func sampleCauses(h *harness) {
	h.policies(
		rollcall.Policy{Device: "short", IdleTimeout: 10 * time.Second},
		rollcall.Policy{Device: "tv", IdleTimeout: time.Hour, Lifetime: 10 * time.Second},
		rollcall.Policy{Device: "one", MaxPerDevice: 1, Overflow: rollcall.EvictOldest},
	)
	h.tick()
	want := map[rollcall.Cause]int{}
	for i, cause := range rollcall.Causes() { // as many as its place says
		want[cause] = i + 1
		for n := range i + 1 {
			user := string(cause) + numbered("", n+1)[n]
			switch cause {
			case rollcall.CauseLogout:
				h.logout(h.login(user))
			case rollcall.CauseKicked:
				h.login(user)
				h.kick(rollcall.Kick{User: user})
			case rollcall.CauseReplaced:
				h.loginAs(rollcall.Login{User: user, Device: "one"})
				h.loginAs(rollcall.Login{User: user, Device: "one"})
			case rollcall.CauseExpired:
				h.loginAs(rollcall.Login{User: user, Device: "short"})
			case rollcall.CauseLifetime:
				h.loginAs(rollcall.Login{User: user, Device: "tv"})
			case rollcall.CauseBanned:
				h.login(user)
				h.ban(user, time.Hour)
			case rollcall.CauseErased:
				h.login(user)
				h.NoError(h.roll.Erase(h.ctx, user))
			}
		}
	}
	h.toMinute(1)
	h.Equal(want, h.minutes()[0].Ends)
}

func sampleGap(h *harness) {
	h.tick()
	h.beat("alice")
	h.advance(10 * time.Minute)
	h.tick()
	h.advance(time.Minute)
	h.tick()
	got := h.minutes()
	h.Len(got, 2)
	h.Equal(start(), got[0].At)
	h.Equal(start().Add(10*time.Minute), got[1].At)
	h.Equal([]int{1, 0}, []int{got[0].Beats, got[1].Beats})
}

func sampleHours(h *harness) {
	h.fresh(rollcall.Options{Window: 24 * time.Hour})
	for i := range 4 { // 0, 1, 2, 3 online at 12:00, 12:01, 12:02, 13:00
		if i == 3 {
			h.clock.Set(start().Add(time.Hour))
		}
		h.tick()
		h.loginAs(rollcall.Login{User: numbered("u", 4)[i], App: "x"})
		h.beat("u0000")
		h.advance(time.Minute)
	}
	hours := rollcall.SampleQuery{Step: rollcall.StepHour}
	first := rollcall.Sample{
		At: start(), Online: 1, OnlineMax: 2, Sessions: 1, SessionsMax: 2,
		Logins: 3, Beats: 6, Ends: map[rollcall.Cause]int{},
	}
	h.Equal([]rollcall.Sample{first}, h.samples(hours), "the first minute of the second hour is under way")
	h.tick()
	second := level(start().Add(time.Hour), 3, 3)
	second.Logins, second.Beats = 1, 2
	h.Equal([]rollcall.Sample{first, second}, h.samples(hours))
	h.Len(h.minutes(), 4)
}

func samplePublic(h *harness) {
	h.login("ghost")
	h.login("alice")
	h.hide("ghost")
	h.tick()
	h.beat("ghost", "alice")
	h.logout(h.login("ghost"))
	h.toMinute(1)
	h.tick()
	want := level(start(), 1, 1)
	want.Beats = 1
	h.Equal([]rollcall.Sample{want}, h.minutes(), "also for those who see invisible users")
}

func sampleRange(h *harness) {
	for range 5 {
		h.tick()
		h.advance(time.Minute)
	}
	h.tick()
	at := func(n int) time.Time { return start().Add(time.Duration(n) * time.Minute) }
	times := func(from, to time.Time) (out []time.Time) {
		for _, s := range h.samples(rollcall.SampleQuery{From: from, To: to}) {
			out = append(out, s.At)
		}
		return out
	}
	h.Equal([]time.Time{at(1), at(2)}, times(at(1), at(3)))
	h.Equal([]time.Time{at(2)}, times(at(1).Add(time.Millisecond), at(2).Add(time.Millisecond)))
	h.Empty(times(at(3), at(3)))
	h.Equal([]time.Time{at(0), at(1), at(2), at(3), at(4)}, times(at(0).Add(-time.Hour), time.Time{}))
	h.Len(h.samples(rollcall.SampleQuery{Step: rollcall.StepHour, From: start(), To: start().Add(time.Millisecond)}), 1)
	h.Empty(h.samples(rollcall.SampleQuery{Step: rollcall.StepHour, From: start().Add(time.Millisecond)}))
}

func sampleKept(h *harness) {
	h.tick()
	whole := func(step rollcall.Step) int {
		return len(h.samples(rollcall.SampleQuery{Step: step, From: start(), To: start().Add(time.Minute)}))
	}
	for _, c := range []struct {
		after    time.Duration
		min, hrs int
	}{
		{rollcall.KeptMinutes * time.Minute, 1, 1},
		{(rollcall.KeptMinutes + 1) * time.Minute, 0, 1},
		{rollcall.KeptHours*time.Hour - time.Minute, 0, 1},
		{rollcall.KeptHours * time.Hour, 0, 0},
	} {
		h.clock.Set(start().Add(c.after))
		h.tick()
		h.Equal([]int{c.min, c.hrs}, []int{whole(rollcall.StepMinute), whole(rollcall.StepHour)}, "after %v", c.after)
	}
}

func sampleRestart(h *harness) {
	h.tick()
	h.login("alice")
	h.advance(20 * time.Second)
	h.restart()
	h.tick()
	h.login("bob")
	h.advance(40 * time.Second)
	h.tick()
	h.advance(time.Minute)
	h.tick()
	check := func() {
		got := h.minutes()
		h.Len(got, 2)
		h.Equal([]int{0, 2, 2}, []int{got[0].Sessions, got[0].Logins, got[0].Beats})
		h.Equal(2, got[1].Sessions)
		h.Equal(2, h.samples(rollcall.SampleQuery{Step: rollcall.StepHour})[0].Logins)
	}
	check()
	h.restart()
	check()
}

func sampleCrash(h *harness) {
	store, ok := h.store.(Crasher)
	if !ok {
		return // what is kept elsewhere is not lost with a server
	}
	h.tick()
	h.beat("alice")
	h.advance(time.Second)
	h.tick()
	h.beat("bob")
	store.Crash()
	h.restart()
	h.tick()
	h.beat("carol")
	h.advance(time.Minute)
	h.tick()
	h.Equal(2, h.minutes()[0].Beats)
}

func sampleClockBack(h *harness) {
	h.tick()
	h.advance(time.Minute)
	h.tick()
	h.beat("alice")
	h.clock.Set(start())
	h.tick()
	h.beat("alice")
	h.clock.Set(start().Add(2 * time.Minute))
	h.tick()
	got := h.minutes()
	h.Len(got, 2)
	h.Equal([]int{0, 2}, []int{got[0].Beats, got[1].Beats})
}

func sampleLimits(h *harness) {
	for _, c := range []struct {
		q     rollcall.SampleQuery
		field string
		says  string
	}{
		{rollcall.SampleQuery{Step: "5m"}, "step", "neither 1m nor 1h"},
		{rollcall.SampleQuery{From: start(), To: start().Add(-time.Second)}, "to", "before from"},
		{rollcall.SampleQuery{From: start(), To: start().Add(8*24*time.Hour + time.Second)}, "from", "8 days"},
		{rollcall.SampleQuery{Step: rollcall.StepHour, From: start(), To: start().Add(400*24*time.Hour + time.Second)}, "from", "400 days"},
	} {
		_, err := h.roll.Samples(h.ctx, c.q)
		e := h.code(rollcall.CodeInvalidArgument, err)
		h.Equal(c.field, e.Field)
		h.Contains(e.Detail, c.says)
	}
	h.Empty(h.samples(rollcall.SampleQuery{From: start(), To: start().Add(8 * 24 * time.Hour)}))
	h.Empty(h.samples(rollcall.SampleQuery{Step: rollcall.StepHour, From: start(), To: start().Add(400 * 24 * time.Hour)}))
}
