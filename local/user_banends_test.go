package local

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/enginekit"
	"github.com/rollcall/rollcall/internal/testbudget"
)

func TestEndsOfBansAreThoseOfTheBans(t *testing.T) {
	testbudget.Check(t, testbudget.Quick(), func(t *rapid.T) {
		var users userTable
		users.init()
		key := rapid.Custom(func(t *rapid.T) rollcall.BanKey { return rollcall.BanKey{rapid.Byte().Draw(t, "key") % 20} })
		t.Repeat(map[string]func(*rapid.T){
			"set": func(t *rapid.T) {
				users.setBan(rollcall.Ban{Key: key.Draw(t, "ban"), Until: enginekit.TimeOf(rapid.Int64Range(0, 50).Draw(t, "until"))})
			},
			"drop": func(t *rapid.T) { users.dropBan(key.Draw(t, "ban")) },
			"": func(t *rapid.T) {
				h := &users.banEnds
				require.Len(t, h.heap, len(users.bans))
				for i, e := range h.heap {
					require.Equal(t, users.bans[e.key].Until.UnixMilli(), e.at)
					require.Equal(t, i, h.place[e.key])
					require.LessOrEqual(t, h.heap[0].at, e.at)
				}
			},
		})
	})
}

func TestBansThatEndTogetherGoInStepsAndThoseThatHoldAreLeftAlone(t *testing.T) {
	s := newMemStore(t)
	opened, err := s.Open()
	require.NoError(t, err)
	e, _ := opened.(*Engine)
	clock := rollcall.NewManualClock(time.Unix(1_800_000_000, 0))
	roll, err := rollcall.New(e, rollcall.Options{Clock: clock})
	require.NoError(t, err)
	p := e.parts[3]
	const ended, holding = 2*banStep + 7, 50
	for i := 0; len(p.users.bans) < ended+holding; i++ {
		user := fmt.Sprint("u", i)
		if e.partitionOf(user) != p {
			continue
		}
		span := time.Minute
		if len(p.users.bans) >= ended {
			span = time.Hour
		}
		_, err := roll.Ban(t.Context(), user, span, "", "")
		require.NoError(t, err)
	}
	clock.Advance(time.Minute)
	for _, want := range []int{banStep, banStep, 7, 0} {
		n, err := p.trimBans(clock.Now().UnixMilli())
		require.NoError(t, err)
		require.Equal(t, want, n)
	}
	require.Len(t, p.users.bans, holding)
	require.NoError(t, roll.Close())
	require.NoError(t, e.Close())

	opened, err = s.Open()
	require.NoError(t, err)
	e, _ = opened.(*Engine)
	require.Len(t, e.parts[3].users.bans, holding, "in the store too")
	require.NoError(t, e.Close())
}
