package redis

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/redistest"
)

// lossy is a client that loses answers: the commands are carried out, but their
// caller hears of a broken connection.
type lossy struct {
	rueidis.Client
	lose atomic.Int64 // how many rounds of scripts lose their answers
	lost atomic.Int64
}

func (l *lossy) drop(c rueidis.Completed) bool {
	if c.Commands()[0] != "EVALSHA" || l.lose.Add(-1) < 0 {
		return false
	}
	l.lost.Add(1)
	return true
}

// broken is the answer of a connection that broke.
func (l *lossy) broken(c rueidis.Completed) rueidis.RedisResult {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return l.Client.Do(ctx, c)
}

func (l *lossy) Do(ctx context.Context, c rueidis.Completed) rueidis.RedisResult {
	if !l.drop(c) {
		return l.Client.Do(ctx, c)
	}
	l.Client.Do(ctx, c.Pin())
	return l.broken(c)
}

func (l *lossy) DoMulti(ctx context.Context, all ...rueidis.Completed) []rueidis.RedisResult {
	if !l.drop(all[0]) {
		return l.Client.DoMulti(ctx, all...)
	}
	for i := range all {
		all[i] = all[i].Pin()
	}
	l.Client.DoMulti(ctx, all...)
	out := make([]rueidis.RedisResult, len(all))
	for i := range all {
		out[i] = l.broken(all[i])
	}
	return out
}

// newRoll opens an engine of a few partitions on a server of its own.
func newRoll(t *testing.T, o Options) (*Engine, *rollcall.Roll, *redistest.Server) {
	t.Helper()
	s := redistest.Start(t, redistest.Options{})
	o.URL = s.URL()
	e, err := Open(t.Context(), o)
	require.NoError(t, err)
	roll, err := rollcall.New(e, rollcall.Options{})
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, roll.Close())
		require.NoError(t, e.Close())
	})
	return e, roll, s
}

// TestACommandWhoseAnswerIsLostAnswersAsTheFirstTime loses the first two answers
// of each command that changes something. The command is carried out once and
// says what it did, also if somebody else undid it in between.
func TestACommandWhoseAnswerIsLostAnswersAsTheFirstTime(t *testing.T) {
	t.Parallel()
	e, roll, _ := newRoll(t, Options{Partitions: 2})
	client := &lossy{Client: e.client}
	e.client = client
	ctx, now := t.Context(), roll.Now()
	today := roll.Today()
	mark := rollcall.Mark{User: "marked", Kind: "user", Day: today}
	invisible := true

	// Everyone the commands below need.
	var in rollcall.LoggedIn
	for _, u := range []string{"kicked", "banned", "named", "erased", "patched"} {
		var err error
		in, err = roll.Login(ctx, rollcall.Login{User: u})
		require.NoError(t, err)
	}
	_, err := roll.Ban(ctx, "lifted", time.Hour, "", "")
	require.NoError(t, err)
	require.NoError(t, roll.AddFriends(ctx, "named", false, rollcall.Friend{User: "friend"}))
	link := rollcall.ConsolePass{
		Hash: rollcall.HashPass("link"), Kind: rollcall.PassLink, By: rollcall.SignedInByLink, Role: rollcall.RoleReader, Name: "mei",
		CreatedAt: now, ExpiresAt: now.Add(time.Hour), EndsAt: now.Add(time.Hour),
	}
	require.NoError(t, e.PutPass(ctx, now, link))
	is := func(err error, want rollcall.Code) error { // an error of a code is wanted
		require.Equal(t, want, rollcall.CodeOf(err))
		return nil
	}

	count := func(typ rollcall.EventType, user string) int {
		events, err := e.Tail(ctx, rollcall.EventQuery{Limit: 1000, Viewer: rollcall.ViewerAdmin})
		require.NoError(t, err)
		public, err := e.Tail(ctx, rollcall.EventQuery{Limit: 1000, Viewer: rollcall.ViewerPublic})
		require.NoError(t, err)
		n := 0
		for _, ev := range append(events, public...) {
			if ev.Type == typ && ev.User == user {
				n++
			}
		}
		return n
	}
	for _, c := range []struct {
		name string
		run  func() (any, error)
		want any
	}{
		{"a kick", func() (any, error) {
			res, err := e.End(ctx, now, rollcall.EndCommand{User: "kicked", Cause: rollcall.CauseKicked})
			return res.Ended, err
		}, 1},
		{"a ban", func() (any, error) {
			res, err := e.Ban(ctx, now, rollcall.Ban{User: "banned", Key: rollcall.BanKey{1}, At: now, Until: now.Add(time.Hour)})
			return [2]int{res.Ended, count(rollcall.UserBanned, "banned")}, err
		}, [2]int{1, 2}},
		{"an unban", func() (any, error) { return nil, roll.Unban(ctx, "lifted") }, nil},
		{"a mark", func() (any, error) {
			n, already, err := e.Mark(ctx, now, []rollcall.Mark{mark})
			return [2]int{n, already}, err
		}, [2]int{1, 0}},
		{"a mark taken back", func() (any, error) { return e.Unmark(ctx, now, []rollcall.Mark{mark}) }, []bool{true}},
		{"the end of a friendship", func() (any, error) { return e.RemoveFriend(ctx, now, "named", "friend") }, true},
		{"a user who hides", func() (any, error) {
			_, err := e.PutUser(ctx, now, "patched", rollcall.UserPatch{Invisible: &invisible})
			return count(rollcall.UserOffline, "patched"), err
		}, 1},
		{"a clearing", func() (any, error) { return e.Clear(ctx, now, now.Add(time.Minute)) }, 5},
		{"a new token", func() (any, error) {
			_, err := e.Rotate(ctx, now, in.Session.ID, rollcall.TokenHash{Home: 1})
			return nil, err
		}, nil},
		{"an erasure", func() (any, error) {
			err := e.Erase(ctx, now, "erased", rollcall.BanKey{2})
			return count(rollcall.UserErased, ""), err
		}, 2},
		{"a snapshot", func() (any, error) {
			return nil, e.Import(ctx, now, []rollcall.UserSnapshot{{User: "moved", Name: "Moved"}})
		}, nil},
		{"the use of a link", func() (any, error) {
			taken, err := e.TakePass(ctx, now, link.Hash)
			if err == nil {
				_, err = e.TakePass(ctx, now, link.Hash)
				err = is(err, rollcall.CodeNotFound)
			}
			return taken.Name, err
		}, "mei"},
		{"a run of the archive", func() (any, error) {
			err := e.RecordRun(ctx, now, rollcall.ArchiveRun{ID: 1})
			return count(rollcall.ArchiveCompleted, "") + count(rollcall.ArchiveFailed, ""), err
		}, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			client.lost.Store(0)
			client.lose.Store(2)
			got, err := c.run()
			client.lose.Store(0)
			require.NoError(t, err)
			require.Equal(t, c.want, got)
			require.EqualValues(t, 2, client.lost.Load(), "answers were lost")
		})
	}
}

// TestADayLeavesOnceThoughTheAnswerIsLost takes marks of a day out and hears how
// many there were.
func TestADayLeavesOnceThoughTheAnswerIsLost(t *testing.T) {
	t.Parallel()
	e, roll, _ := newRoll(t, Options{Partitions: 1})
	client := &lossy{Client: e.client}
	e.client = client
	ctx, day := t.Context(), roll.Today()
	_, _, err := roll.Mark(ctx, rollcall.Mark{User: "a", Day: day}, rollcall.Mark{User: "b", Day: day})
	require.NoError(t, err)
	maps, _, err := e.ListDirty(ctx, "", 10)
	require.NoError(t, err)
	require.Len(t, maps, 2)

	client.lose.Store(1)
	stillDirty, err := e.ClearDirty(ctx, maps)
	require.NoError(t, err)
	require.Zero(t, stillDirty)
	client.lose.Store(1)
	users, left, err := e.Offload(ctx, rollcall.DefaultKind, day)
	require.NoError(t, err)
	require.True(t, left)
	require.Equal(t, 2, users)
	require.EqualValues(t, 2, client.lost.Load())
}
