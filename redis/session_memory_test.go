package redis

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
)

// TestASessionTakesLittleMemory logs in as many users as a partition of a large store has, and
// holds what each takes in Redis to a bound: a key or an order more for each breaks it.
func TestASessionTakesLittleMemory(t *testing.T) {
	t.Parallel()
	r := newRig(t, 1, rollcall.Options{NoPresenceEvents: true})
	ctx := t.Context()
	memory := func() int {
		for line := range strings.Lines(r.do(t, "INFO", "memory")) {
			if text, ok := strings.CutPrefix(line, "used_memory_dataset:"); ok {
				n, err := strconv.Atoi(strings.TrimSpace(text))
				require.NoError(t, err)
				return n
			}
		}
		require.Fail(t, "Redis does not say what it holds")
		return 0
	}
	_, err := r.roll.Login(ctx, rollcall.Login{User: "first"})
	require.NoError(t, err)
	const users = 8000
	before := memory()
	for i := range users {
		_, err := r.roll.Login(ctx, rollcall.Login{User: fmt.Sprint("user", i)})
		require.NoError(t, err)
	}
	each := (memory() - before) / users
	t.Logf("%d B", each)
	require.Less(t, each, mostMemory)

	// Redis packs the hashes of tokens, as long as no field is long. The names of their keys are
	// any bytes, so Redis itself looks at them.
	encodings := strings.Fields(r.do(t, "EVAL", `
		local found = {}
		for i, key in ipairs(redis.call('KEYS', ARGV[1] .. ':tokens:*')) do found[i] = redis.call('OBJECT', 'ENCODING', key) end
		return table.concat(found, ' ')`, "0", r.e.keyPrefixes[0]))
	require.NotEmpty(t, encodings)
	require.Subset(t, []string{"listpack", "ziplist"}, encodings)
}

// mostMemory is what a session of a user with no other may take, without anything that a
// login may say, and with all that it leaves: bytes.
const mostMemory = 820
