package redis_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/redistest"
	"github.com/rollcall/rollcall/redis"
)

// TestAReaderIsToldThatAFailoverLostItsLastEvents has a master fail that had told a
// reader of an event which no replica has.
func TestAReaderIsToldThatAFailoverLostItsLastEvents(t *testing.T) {
	t.Parallel()
	s := redistest.StartSentinel(t, redistest.Options{})
	roll := open(t, redis.Options{URL: s.URL(), Timeout: timeout, Partitions: 2})
	ban := func(user string) bool {
		_, err := roll.Ban(t.Context(), user, time.Hour, "", "")
		return err == nil
	}
	require.Eventually(t, func() bool { return ban("kept") }, patience, 10*time.Millisecond)
	log, err := roll.EventsAfter(t.Context(), "", 10)
	require.NoError(t, err)
	kept := log[len(log)-1].ID

	// The replicas have that, and nothing that follows.
	master := s.Master()
	var replicas []*redistest.Node
	for _, n := range s.Nodes {
		if n == master {
			continue
		}
		require.Eventually(t, func() bool {
			reply, err := n.Do("INFO", "replication")
			return err == nil && strings.Contains(reply, "slave_repl_offset:"+offsetOf(t, master))
		}, patience, 5*time.Millisecond, "the replica has all")
		replicas = append(replicas, n)
	}
	for _, n := range replicas {
		n.Stop()
	}
	_, err = master.Do("CLIENT", "KILL", "TYPE", "replica")
	require.NoError(t, err)
	require.True(t, ban("lost"))
	log, err = roll.Tail(t.Context(), kept, 10)
	require.NoError(t, err)
	require.Equal(t, "lost", log[0].User)
	lost := log[0].ID

	// A reader waits behind the event that goes with the master.
	waited := make(chan error, 1)
	go func() { waited <- tailWhileAway(t.Context(), roll, lost) }()
	master.Kill()
	for _, n := range replicas {
		n.Continue()
	}
	require.Eventually(t, func() bool { return ban("after") }, patience, 50*time.Millisecond, "a replica takes over")
	require.ErrorIs(t, tailWhileAway(t.Context(), roll, lost), rollcall.ErrEventsGone)
	_, err = roll.EventsAfter(t.Context(), lost, 10)
	require.ErrorIs(t, err, rollcall.ErrEventsGone)
	select {
	case err := <-waited:
		require.ErrorIs(t, err, rollcall.ErrEventsGone)
	case <-time.After(patience):
		require.FailNow(t, "the reader who waited was told nothing")
	}

	// Who stands at an event that is there goes on behind it.
	log, err = roll.EventsAfter(t.Context(), kept, 10)
	require.NoError(t, err)
	require.Equal(t, "after", log[len(log)-1].User)
	require.NotContains(t, usersOf(log), "lost")
}

// tailWhileAway waits for an event behind a place, however often Redis does not answer.
func tailWhileAway(ctx context.Context, roll *rollcall.Roll, after rollcall.EventID) error {
	for {
		events, err := roll.Tail(ctx, after, 10)
		switch {
		case err == nil:
			return errors.New("it was given " + strings.Join(usersOf(events), ", "))
		case !errors.Is(err, rollcall.ErrUnavailable) || ctx.Err() != nil:
			return err
		}
	}
}

func usersOf(events []rollcall.Event) (users []string) {
	for _, e := range events {
		users = append(users, e.User)
	}
	return users
}

// offsetOf is how far the stream of a master to its replicas goes.
func offsetOf(t *testing.T, master *redistest.Node) string {
	t.Helper()
	reply, err := master.Do("INFO", "replication")
	require.NoError(t, err)
	_, rest, ok := strings.Cut(reply, "master_repl_offset:")
	require.True(t, ok)
	return strings.TrimSpace(strings.SplitN(rest, "\n", 2)[0])
}
