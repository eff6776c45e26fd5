package e2e

import (
	"strings"
	"testing"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
)

// keyspace is all that a Redis holds, looked at past the engine.
type keyspace struct {
	t      *testing.T
	client rueidis.Client
}

// lookInto connects to a server or a Cluster, of which a few addresses do.
func lookInto(t *testing.T, user, password string, addresses ...string) keyspace {
	t.Helper()
	client, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress: addresses, Username: user, Password: password, DisableCache: true, ForceSingleClient: len(addresses) == 1,
	})
	require.NoError(t, err)
	t.Cleanup(client.Close)
	return keyspace{t, client}
}

// do carries out a command that may not fail.
func (k keyspace) do(on rueidis.Client, words ...string) rueidis.RedisMessage {
	k.t.Helper()
	msg, err := on.Do(k.t.Context(), on.B().Arbitrary(words[0]).Args(words[1:]...).Build()).ToMessage()
	if !rueidis.IsRedisNil(err) { // a key may have expired
		require.NoError(k.t, err, "%q", words)
	}
	return msg
}

// each visits every key, those of a master in parts.
func (k keyspace) each(visit func(on rueidis.Client, keys []string)) {
	k.t.Helper()
	for _, node := range k.client.Nodes() {
		reply := k.do(node, "ROLE")
		role, err := reply.ToArray()
		require.NoError(k.t, err)
		if name, _ := role[0].ToString(); name != "master" {
			continue
		}
		for cursor := uint64(0); ; {
			page, err := node.Do(k.t.Context(), node.B().Scan().Cursor(cursor).Count(1000).Build()).AsScanEntry()
			require.NoError(k.t, err)
			visit(node, page.Elements)
			if cursor = page.Cursor; cursor == 0 {
				break
			}
		}
	}
}

// dump returns every key with its value as Redis would move it.
func (k keyspace) dump() map[string]string {
	k.t.Helper()
	out := map[string]string{}
	k.each(func(on rueidis.Client, keys []string) {
		dumps := make([]rueidis.Completed, len(keys))
		for i, key := range keys {
			dumps[i] = on.B().Dump().Key(key).Build()
		}
		for i, value := range on.DoMulti(k.t.Context(), dumps...) {
			if text, err := value.ToString(); err == nil {
				out[keys[i]] = text
			} else {
				require.True(k.t, rueidis.IsRedisNil(err), "%v", err) // it has expired
			}
		}
	})
	return out
}

// text returns every key and every string in its value, one behind the other.
func (k keyspace) text() string {
	k.t.Helper()
	var out strings.Builder
	k.each(func(on rueidis.Client, keys []string) {
		for _, key := range keys {
			out.WriteString(key + "\n")
			strs(&out, k.value(on, key))
		}
	})
	return out.String()
}

// value reads a key of any type.
func (k keyspace) value(on rueidis.Client, key string) rueidis.RedisMessage {
	k.t.Helper()
	reply := k.do(on, "TYPE", key)
	kind, err := reply.ToString()
	require.NoError(k.t, err)
	words, ok := map[string][]string{
		"string": {"GET", key},
		"hash":   {"HGETALL", key},
		"set":    {"SMEMBERS", key},
		"zset":   {"ZRANGE", key, "0", "-1", "WITHSCORES"},
		"list":   {"LRANGE", key, "0", "-1"},
		"stream": {"XRANGE", key, "-", "+"},
		"none":   {"PING"}, // it has expired
	}[kind]
	require.True(k.t, ok, "%q is of a type that is not read here: %s", key, kind)
	return k.do(on, words...)
}

// strs writes all strings of a reply.
func strs(out *strings.Builder, msg rueidis.RedisMessage) {
	switch {
	case msg.IsArray():
		items, _ := msg.ToArray()
		for _, item := range items {
			strs(out, item)
		}
	case msg.IsMap():
		items, _ := msg.ToMap()
		for name, item := range items {
			out.WriteString(name + "\n")
			strs(out, item)
		}
	default:
		text, _ := msg.ToString()
		out.WriteString(text + "\n")
	}
}
