package redis

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/redistest"
)

// edgesIn returns all edges of the lists, and all reverse edges, as "user>friend".
func edgesIn(t *testing.T, s *redistest.Server, e *Engine, users []string) (edges, reverse map[string]bool) {
	t.Helper()
	edges, reverse = make(map[string]bool), make(map[string]bool)
	for _, u := range users {
		list, err := e.friendsOf(t.Context(), 0, u)
		require.NoError(t, err)
		for _, f := range list.friends {
			edges[u+">"+f.User] = true
		}
		msg, err := e.client.Do(t.Context(), e.client.B().Zrange().Key(e.of(e.partOf(u), "r:"+u)).Min("0").Max("-1").Build()).AsStrSlice()
		require.NoError(t, err)
		for _, by := range msg {
			reverse[by+">"+u] = true
		}
	}
	return edges, reverse
}

// TestEveryEdgeHasItsReverseEdge changes the same lists on two servers at one
// time, in every way there is, while reverse edges are pruned at once.
func TestEveryEdgeHasItsReverseEdge(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Options{})
	engines := make([]*Engine, 2)
	for i := range engines {
		e, err := Open(t.Context(), Options{URL: s.URL(), Partitions: 4, Timeout: time.Minute})
		require.NoError(t, err)
		require.NoError(t, e.Configure(t.Context(), rollcall.Settings{Timezone: "UTC", EndedKeep: time.Hour}))
		t.Cleanup(func() { require.NoError(t, e.Close()) })
		engines[i] = e
	}
	ctx, at := t.Context(), time.Unix(1_800_000_000, 0)
	var users []string
	for i := range 6 {
		users = append(users, fmt.Sprint("user", i))
	}
	var many []rollcall.Friend // more than one script takes
	for i := range edgeStep + 50 {
		many = append(many, rollcall.Friend{User: fmt.Sprint("far", i)})
	}
	var all sync.WaitGroup
	for w := range 8 {
		e, rng := engines[w%2], rand.New(rand.NewPCG(uint64(w), 1))
		all.Go(func() {
			for range 40 {
				u, f := users[rng.IntN(len(users))], users[rng.IntN(len(users))]
				var err error
				switch rng.IntN(20) {
				case 0:
					err = e.ReplaceFriends(ctx, at, u, []rollcall.Friend{{User: f}})
				case 1:
					err = e.ReplaceFriends(ctx, at, u, nil)
				case 2:
					err = e.Erase(ctx, at, u, rollcall.BanKey{})
				case 3:
					err = e.pruneOlderThan(ctx, at.UnixMilli(), 0)
				case 4:
					err = e.AddFriends(ctx, at, u, many)
				case 5, 6, 7, 8, 9, 10:
					_, err = e.RemoveFriend(ctx, at, u, f)
				default:
					err = e.AddFriends(ctx, at, u, []rollcall.Friend{{User: f}})
				}
				if err != nil {
					t.Errorf("a change of friends failed: %v", err)
				}
			}
		})
	}
	all.Wait()
	for _, f := range many {
		users = append(users, f.User)
	}
	edges, reverse := edgesIn(t, s, engines[0], users)
	for edge := range edges {
		require.True(t, reverse[edge], "%s has no reverse edge", edge)
	}

	// What was left is pruned, and only that.
	for range 20 {
		require.NoError(t, engines[0].pruneOlderThan(ctx, at.UnixMilli(), 0))
	}
	after, reverse := edgesIn(t, s, engines[0], users)
	require.Equal(t, edges, after)
	require.Equal(t, edges, reverse)

	// An erasure finds all, and leaves no id behind.
	for _, u := range users {
		require.NoError(t, engines[1].Erase(ctx, at, u, rollcall.BanKey{}))
	}
	edges, reverse = edgesIn(t, s, engines[0], users)
	require.Empty(t, edges)
	require.Empty(t, reverse)
	keys, err := engines[0].client.Do(ctx, engines[0].client.B().Keys().Pattern("*user[0-9]*").Build()).AsStrSlice()
	require.NoError(t, err)
	require.Empty(t, keys)
	for p := range engines[0].keyPrefixes {
		left, err := engines[0].client.Do(ctx, engines[0].client.B().Zrange().Key(engines[0].of(p, "leftovers")).Min("0").Max("-1").Build()).AsStrSlice()
		require.NoError(t, err)
		require.Empty(t, left)
	}
}

// TestPruningAndChangesDoNotCross goes through the ways in which the steps of a
// change and of a pruning can fall between one another.
func TestPruningAndChangesDoNotCross(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Options{})
	e, err := Open(t.Context(), Options{URL: s.URL(), Partitions: 4, Timeout: time.Minute})
	require.NoError(t, err)
	require.NoError(t, e.Configure(t.Context(), rollcall.Settings{Timezone: "UTC"}))
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	ctx, at := t.Context(), time.Unix(1_800_000_000, 0)
	now := at.UnixMilli()
	users := []string{"alice", "bob"}
	add := func(stamp string) bool {
		again, err := e.readListChange(e.one(ctx, now, partCall(e.partOf("alice"), &e.scripts.friendAdd, "alice", stamp, "10", "bob", "")))
		require.NoError(t, err)
		return !again
	}
	loosen := func() string {
		stamp, noted, err := e.noteReverseEdges(ctx, now, "alice", []string{"bob"}, "10")
		require.NoError(t, err)
		require.Equal(t, []string{"bob"}, noted)
		return stamp
	}

	// The pruning falls between the reverse edge and the edge.
	stamp := loosen()
	require.NoError(t, e.addReverseEdges(ctx, now, "alice", stamp, []string{"bob"}))
	require.NoError(t, e.pruneOlderThan(ctx, now, 0))
	require.False(t, add(stamp), "the reverse edge is gone: the edge is refused")

	// The adding falls between the steps of the pruning.
	loosen()
	msg, err := e.one(ctx, now, partCall(e.partOf("alice"), &e.scripts.friendFindLeftover, "0", "10"))
	require.NoError(t, err)
	given, err := msg.ToArray()
	require.NoError(t, err)
	require.Len(t, given, 1)
	left, err := given[0].AsStrSlice()
	require.NoError(t, err)
	stamp = loosen()
	require.NoError(t, e.addReverseEdges(ctx, now, "alice", stamp, []string{"bob"}))
	require.NoError(t, e.prune(ctx, now, left[0], left[1], left[2:]))
	require.True(t, add(stamp))
	edges, reverse := edgesIn(t, s, e, users)
	require.Equal(t, map[string]bool{"alice>bob": true}, edges)
	require.Equal(t, edges, reverse, "written since it was given up: it stays")

	// The pruning falls between the note of an edge that leaves and its end.
	stamp, _, err = e.noteReverseEdges(ctx, now, "alice", []string{"bob"}, "")
	require.NoError(t, err)
	before, err := e.friendsOf(ctx, now, "alice")
	require.NoError(t, err)
	require.NoError(t, e.pruneOlderThan(ctx, now, 0))
	again, err := e.readListChange(e.one(ctx, now, partCall(e.partOf("alice"), &e.scripts.friendSwap, "alice", "nothing", "0", before.stamp, stamp)))
	require.NoError(t, err)
	require.True(t, again, "the note is gone: the edge stays")
	require.NoError(t, e.ReplaceFriends(ctx, at, "alice", nil))
	require.NoError(t, e.pruneOlderThan(ctx, now, 0))
	edges, reverse = edgesIn(t, s, e, users)
	require.Empty(t, edges)
	require.Empty(t, reverse)
}
