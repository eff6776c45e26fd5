package replay_test

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rollcall/rollcall/internal/testbudget"
	"github.com/rollcall/rollcall/local"
	"github.com/rollcall/rollcall/replay"
)

// sign is a row, as the model sees it.
type sign struct {
	at   int64
	user string
}

// naive works out a log by looking at all rows for each question.
type naive struct {
	signs []sign // in order of time
	idle  int64  // seconds
}

// logins returns who logged in when: whoever was silent for the idle time.
func (n *naive) logins() []replay.ProbeSession {
	last := make(map[string]int64)
	var out []replay.ProbeSession
	for _, s := range n.signs {
		if before, ok := last[s.user]; !ok || s.at-before >= n.idle {
			out = append(out, replay.ProbeSession{User: s.user, Login: s.at})
		}
		last[s.user] = s.at
	}
	return out
}

func (n *naive) lastSeen(at int64) map[string]int64 {
	last := make(map[string]int64)
	for _, s := range n.signs {
		if s.at <= at {
			last[s.user] = s.at
		}
	}
	return last
}

func (n *naive) online(at, window int64) int {
	online := 0
	for _, last := range n.lastSeen(at) {
		if at-window <= last {
			online++
		}
	}
	return online
}

func (n *naive) live(at int64) []replay.ProbeSession {
	began := make(map[string]int64)
	for _, l := range n.logins() {
		if l.Login <= at {
			began[l.User] = l.Login
		}
	}
	out := []replay.ProbeSession{}
	for user, last := range n.lastSeen(at) {
		if at-last < n.idle {
			out = append(out, replay.ProbeSession{User: user, Login: began[user]})
		}
	}
	slices.SortFunc(out, func(a, b replay.ProbeSession) int {
		return cmp.Or(cmp.Compare(b.Login, a.Login), strings.Compare(a.User, b.User))
	})
	return out
}

// peak tries every second there is.
func (n *naive) peak() (at int64, most int) {
	for t := n.signs[0].at; t <= n.signs[len(n.signs)-1].at; t++ {
		if online := n.online(t, 300); online > most {
			at, most = t, online
		}
	}
	return at, most
}

func TestReportsAreThoseOfAModel(t *testing.T) {
	testbudget.Check(t, testbudget.Quick(), func(t *rapid.T) {
		const epoch = 1_700_000_000
		instant := rapid.Int64Range(epoch, epoch+1500)
		model := naive{idle: rapid.Int64Range(1, 400).Draw(t, "idle")}
		model.signs = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) sign {
			return sign{instant.Draw(t, "at"), rapid.SampledFrom([]string{"a", "b", "c", "10", "9"}).Draw(t, "user")}
		}), 1, 30).Draw(t, "signs")
		var log bytes.Buffer
		for _, s := range model.signs {
			fmt.Fprintf(&log, "%s someone %d\n", s.user, s.at)
		}
		slices.SortStableFunc(model.signs, func(a, b sign) int { return cmp.Compare(a.at, b.at) })
		o := replay.Options{
			Idle:    time.Duration(model.idle) * time.Second,
			Windows: []time.Duration{time.Second, 100 * time.Second},
			Probes:  rapid.SliceOfN(rapid.Int64Range(epoch-10, epoch+2000), 1, 5).Draw(t, "probes"),
		}
		engine, err := local.Open("replay", local.Options{InMemory: true})
		require.NoError(t, err)
		defer func() { require.NoError(t, engine.Close()) }()
		got, err := replay.Play(t.Context(), engine, &log, o)
		require.NoError(t, err)

		require.Len(t, model.logins(), got.Sessions)
		at, most := model.peak()
		require.Equal(t, most, got.Peak.Online)
		require.Equal(t, at, time.Time(got.Peak.At).Unix())
		require.Len(t, got.Probes, len(o.Probes))
		for _, p := range got.Probes {
			require.Equal(t, map[string]int{"1": model.online(p.At, 1), "100": model.online(p.At, 100)}, p.Online)
			require.Equal(t, model.live(p.At), p.Sessions)
		}
	})
}
