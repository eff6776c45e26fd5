package takeover_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/rollcall/rollcall/internal/redistest"
	"github.com/rollcall/rollcall/takeover"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// now is when the tests happen: long ago, on a Wednesday, at noon.
var now = time.Date(2026, time.March, 4, 12, 0, 0, 0, time.UTC)

// old is a Redis on which a system was built by hand.
type old struct {
	t      testing.TB
	server *redistest.Server
	client rueidis.Client
}

func newOld(t testing.TB, o redistest.Options) *old {
	t.Helper()
	server := redistest.Start(t, o)
	option := rueidis.ClientOption{InitAddress: []string{server.Addr()}, DisableCache: true, ForceSingleClient: true, DisableRetry: o.Proxied}
	if o.User != nil {
		option.Username, option.Password = o.User.Name, o.User.Password
	}
	client, err := rueidis.NewClient(option)
	require.NoError(t, err)
	t.Cleanup(client.Close)
	return &old{t, server, client}
}

// source reads it as fast as it can.
func (o *old) source() *takeover.Source {
	o.t.Helper()
	s, err := takeover.NewSource(o.client, takeover.SourceOptions{Rate: 10_000_000})
	require.NoError(o.t, err)
	return s
}

// do runs commands, one a line, whose words are parted by spaces.
func (o *old) do(lines ...string) {
	o.t.Helper()
	cmds := make([]rueidis.Completed, len(lines))
	for i, line := range lines {
		cmds[i] = o.client.B().Arbitrary(strings.Fields(line)...).Build()
	}
	for i, r := range o.client.DoMulti(o.t.Context(), cmds...) {
		if err := r.Error(); !rueidis.IsRedisNil(err) {
			require.NoError(o.t, err, "%s", lines[i])
		}
	}
}

// ask runs a command and returns its answer as texts.
func (o *old) ask(line string) []string {
	o.t.Helper()
	r := o.client.Do(o.t.Context(), o.client.B().Arbitrary(strings.Fields(line)...).Build())
	if list, err := r.AsStrSlice(); err == nil {
		return list
	}
	if n, err := r.AsInt64(); err == nil {
		return []string{strconv.FormatInt(n, 10)}
	}
	text, err := r.ToString()
	require.NoError(o.t, err, "%s", line)
	return []string{text}
}

func ms(ago time.Duration) string  { return fmt.Sprint(now.Add(-ago).UnixMilli()) }
func sec(ago time.Duration) string { return fmt.Sprint(now.Add(-ago).Unix()) }
