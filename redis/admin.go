package redis

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/rueidis"

	"github.com/rollcall/rollcall"
)

// API keys stand in one hash, by the hash of their text.

// PutKey implements [rollcall.Admin].
func (e *Engine) PutKey(ctx context.Context, k rollcall.APIKey) error {
	blob, err := json.Marshal(k)
	if err != nil {
		return err
	}
	msg, err := e.one(ctx, 0, keyCall(e.key("keys"), &e.scripts.apikeyPut,
		hex.EncodeToString(k.Hash[:]), string(blob), fmt.Sprint(rollcall.MaxAPIKeys)))
	if err != nil {
		return err
	}
	if n, _ := msg.AsInt64(); n == 0 {
		return &rollcall.Error{Code: rollcall.CodeConflict, Detail: "there are as many API keys as one store holds: revoke some"}
	}
	return nil
}

func unpackKey(blob string) (rollcall.APIKey, error) {
	var k rollcall.APIKey
	if err := json.Unmarshal([]byte(blob), &k); err != nil {
		return k, damaged("an API key")
	}
	return k, nil
}

// Key implements [rollcall.Admin].
func (e *Engine) Key(ctx context.Context, hash rollcall.KeyHash) (rollcall.APIKey, error) {
	msg, err := e.one(ctx, 0, plainCall(func() rueidis.Completed {
		return e.client.B().Hget().Key(e.key("keys")).Field(hex.EncodeToString(hash[:])).Build()
	}))
	if err != nil {
		return rollcall.APIKey{}, err
	}
	if msg.IsNil() {
		return rollcall.APIKey{}, rollcall.NotFound("API key")
	}
	blob, _ := msg.ToString()
	return unpackKey(blob)
}

// Keys implements [rollcall.Admin].
func (e *Engine) Keys(ctx context.Context) ([]rollcall.APIKey, error) {
	msg, err := e.one(ctx, 0, plainCall(func() rueidis.Completed { return e.client.B().Hvals().Key(e.key("keys")).Build() }))
	if err != nil {
		return nil, err
	}
	blobs, err := msg.AsStrSlice()
	if err != nil {
		return nil, damaged("the API keys")
	}
	out := make([]rollcall.APIKey, 0, len(blobs))
	for _, blob := range blobs {
		k, err := unpackKey(blob)
		if err != nil {
			return nil, err
		}
		out = append(out, k)
	}
	slices.SortFunc(out, func(a, b rollcall.APIKey) int {
		if c := a.CreatedAt.Compare(b.CreatedAt); c != 0 {
			return c
		}
		return strings.Compare(a.ID, b.ID)
	})
	return out, nil
}

// DeleteKey implements [rollcall.Admin].
func (e *Engine) DeleteKey(ctx context.Context, id string) error {
	keys, err := e.Keys(ctx)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(keys, func(k rollcall.APIKey) bool { return k.ID == id })
	if i < 0 {
		return rollcall.NotFound("API key")
	}
	_, err = e.one(ctx, 0, plainCall(func() rueidis.Completed {
		return e.client.B().Hdel().Key(e.key("keys")).Field(hex.EncodeToString(keys[i].Hash[:])).Build()
	}))
	return err
}

// perPartition is how many commands Stats sends to each partition.
const perPartition = 6

// Stats implements [rollcall.Admin]. There is no list of all users: it counts those with a
// last-seen time or those with a number, whichever are more. Memory is that of the servers,
// with whatever else they hold.
func (e *Engine) Stats(ctx context.Context, v rollcall.Viewer) (rollcall.Stats, error) {
	st := rollcall.Stats{Engine: "redis", Partitions: len(e.keyPrefixes), ClockOffset: e.ClockOffset()}
	calls := make([]call, 0, perPartition*len(e.keyPrefixes))
	for p := range e.keyPrefixes {
		b := e.client.B
		calls = append(calls,
			plainCall(func() rueidis.Completed { return b().Zcard().Key(e.of(p, "seen")).Build() }),
			plainCall(func() rueidis.Completed { return b().Hlen().Key(e.of(p, "num")).Build() }),
			plainCall(func() rueidis.Completed { return b().Hlen().Key(e.of(p, "sessions")).Build() }),
			plainCall(func() rueidis.Completed { return b().Hlen().Key(e.of(p, "bans")).Build() }),
			plainCall(func() rueidis.Completed {
				return b().Hmget().Key(e.of(p, "part")).Field("edges", "outagecount", "outages").Build()
			}),
			plainCall(func() rueidis.Completed { return b().Hlen().Key(e.of(p, "names")).Build() }))
	}
	out, err := e.do(ctx, 0, calls...)
	if err != nil {
		return st, err
	}
	hidden, err := e.hiddenCounts(ctx, v)
	if err != nil {
		return st, err
	}

	// Sum over the partitions, without what the viewer must not count.
	for i := 0; i < len(out); i += perPartition {
		seen, _ := out[i].AsInt64()
		numbered, _ := out[i+1].AsInt64()
		sessions, _ := out[i+2].AsInt64()
		bans, _ := out[i+3].AsInt64()
		fields, err := out[i+4].ToArray()
		if err != nil || len(fields) != 3 {
			return st, damaged("the state of a partition")
		}
		edges, _ := fields[0].AsInt64() // nil if there was none yet
		outages, _ := fields[1].AsInt64()
		names, _ := out[i+5].AsInt64()
		seen, sessions = seen-hidden[i/perPartition][0], sessions-hidden[i/perPartition][1]
		st.VisitNames += int(names)
		st.Users += int(max(seen, numbered))
		st.CountKnown += int(seen)
		st.Sessions += int(sessions)
		st.Bans += int(bans)
		st.Friends += int(edges)
		st.Outages = max(st.Outages, int(outages))
		packed, _ := fields[2].ToString()
		st.LatestOutages = append(st.LatestOutages, unpackOutages(packed)...)
	}
	st.LatestOutages = joinOutages(st.LatestOutages)
	err = e.memory(ctx, &st)
	return st, err
}

// hiddenCounts returns for each partition how many last-seen times and sessions of invisible
// users the viewer must not count.
func (e *Engine) hiddenCounts(ctx context.Context, v rollcall.Viewer) ([][2]int64, error) {
	counts := make([][2]int64, len(e.keyPrefixes))
	if v == rollcall.ViewerAdmin {
		return counts, nil
	}
	out, err := e.inAllParts(ctx, 0, &e.scripts.presenceHidden)
	if err != nil {
		return nil, err
	}
	for p, msg := range out {
		n, err := msg.AsIntSlice()
		if err != nil || len(n) != 2 {
			return nil, damaged("the state of a partition")
		}
		counts[p] = [2]int64(n)
	}
	return counts, nil
}

// memory asks each server how much memory it uses.
func (e *Engine) memory(ctx context.Context, st *rollcall.Stats) error {
	for address, node := range e.client.Nodes() {
		info, err := node.Do(ctx, node.B().Info().Section("memory").Build()).ToString()
		if err != nil {
			return errorOf(err)
		}
		for line := range strings.Lines(info) {
			if v, ok := strings.CutPrefix(strings.TrimSpace(line), "used_memory:"); ok {
				n, _ := strconv.ParseInt(v, 10, 64)
				st.Memory = append(st.Memory, rollcall.MemoryPart{Name: "redis " + address, Bytes: n})
			}
		}
	}
	slices.SortFunc(st.Memory, func(a, b rollcall.MemoryPart) int { return strings.Compare(a.Name, b.Name) })
	return nil
}
