package transfer_test

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/redistest"
	"github.com/rollcall/rollcall/redis"
	"github.com/rollcall/rollcall/transfer"
)

// openRedis opens an engine on a Redis.
func openRedis(t *testing.T) *rollcall.Roll {
	t.Helper()
	engine, err := redis.Open(t.Context(), redis.Options{URL: redistest.Start(t, redistest.Options{}).URL(), Timeout: time.Minute})
	require.NoError(t, err)
	roll, err := rollcall.New(engine, rollcall.Options{Clock: rollcall.NewManualClock(now), Secret: []byte("the secret of the tests of transfer")})
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, roll.Close())
		require.NoError(t, engine.Close())
	})
	return roll
}

// hooked gives a store webhooks of all sorts.
func hooked(t *testing.T, roll *rollcall.Roll) []rollcall.Webhook {
	t.Helper()
	add := func(n rollcall.NewWebhook) rollcall.Webhook {
		n.URL = "https://example.com/hooks?a=1&b=<2>"
		w, _, err := roll.CreateWebhook(t.Context(), n)
		require.NoError(t, err)
		return w
	}
	add(rollcall.NewWebhook{})
	add(rollcall.NewWebhook{Description: "日本 \"x\"", Batch: true, Invisible: true, RetryKey: "k"})
	rotated := add(rollcall.NewWebhook{Filter: rollcall.EventFilter{
		Types: []rollcall.EventType{rollcall.SessionEnded, rollcall.UserOnline}, User: "alice", Cause: rollcall.CauseKicked,
	}})
	for range 2 {
		_, _, err := roll.RotateWebhook(t.Context(), rotated.ID)
		require.NoError(t, err)
	}
	gone := add(rollcall.NewWebhook{Filter: rollcall.EventFilter{User: "victim"}})
	stopped := add(rollcall.NewWebhook{})
	require.NoError(t, roll.StopWebhook(t.Context(), stopped.ID, rollcall.WebhookFailing))
	require.NoError(t, roll.Erase(t.Context(), "victim"))
	all, err := roll.Webhooks(t.Context())
	require.NoError(t, err)
	require.Len(t, all, 4)
	for _, w := range all {
		require.NotEqual(t, gone.ID, w.ID)
	}
	return all
}

// carried is what an export carries over of a webhook.
func carried(all []rollcall.Webhook) (out []rollcall.Webhook) {
	for _, w := range all {
		w.After, w.Revision, w.Replay, w.Asked = "", 0, nil, ""
		out = append(out, w)
	}
	return out
}

// move exports all of a store and enters it into another.
func move(t *testing.T, from, to *rollcall.Roll, o transfer.Options) (transfer.Counts, transfer.Summary, string) {
	t.Helper()
	var out bytes.Buffer
	counts, err := transfer.Export(t.Context(), from, &out, nil)
	require.NoError(t, err)
	text := unpacked(t, out.Bytes())
	summary, err := take(t, to, &out, o)
	require.NoError(t, err)
	return counts, summary, text
}

func TestWebhooksGoFromTheEmbeddedEngineToRedisAndBack(t *testing.T) {
	t.Parallel()
	stores := []*rollcall.Roll{open(t, ""), openRedis(t), open(t, "")}
	_, err := stores[0].Login(t.Context(), rollcall.Login{User: "before"})
	require.NoError(t, err)
	want := hooked(t, stores[0])
	for i, to := range stores[1:] {
		_, err := to.Login(t.Context(), rollcall.Login{User: fmt.Sprint("there", i)})
		require.NoError(t, err)
		last, err := to.LastEvent(t.Context())
		require.NoError(t, err)
		counts, summary, text := move(t, stores[i], to, transfer.Options{Webhooks: true})
		require.Equal(t, len(want), counts.Webhooks)
		require.Equal(t, len(want), summary.Webhooks)
		require.Zero(t, summary.KnownWebhooks)
		require.NotContains(t, text, "whsec_")
		require.NotContains(t, text, "victim")
		got, err := to.Webhooks(t.Context())
		require.NoError(t, err)
		require.Equal(t, carried(want), carried(got))
		for j := range got {
			require.Equal(t, last, got[j].After, "no event of before is told by the new store")
			require.Equal(t, stores[0].WebhookKeys(&want[j]), to.WebhookKeys(&got[j]), "receivers know the secret")
		}
	}
	_, summary, _ := move(t, stores[2], stores[0], transfer.Options{Webhooks: true, SkipKnown: true})
	require.Zero(t, summary.Webhooks)
	require.Equal(t, len(want), summary.KnownWebhooks)
	got, err := stores[0].Webhooks(t.Context())
	require.NoError(t, err)
	require.Equal(t, want, got, "what is known stays as it is")
}

// TestWebhooksOfAFileAreTakenInOnlyIfThatIsWanted: whoever can change a file could else
// have all that happens sent to themselves.
func TestWebhooksOfAFileAreTakenInOnlyIfThatIsWanted(t *testing.T) {
	from, to := open(t, ""), open(t, "")
	hooked(t, from)
	_, summary, text := move(t, from, to, transfer.Options{Keys: true})
	require.Zero(t, summary.Webhooks)
	require.Equal(t, 4, summary.FoundWebhooks)
	all, err := to.Webhooks(t.Context())
	require.NoError(t, err)
	require.Empty(t, all)

	// One that is left out or spoiled is noticed.
	line := regexp.MustCompile(`\{"webhook":.*日本.*`).FindString(text)
	require.ErrorIs(t, verify(strings.NewReader(strings.Replace(text, line+"\n", "", 1))), transfer.ErrDamaged)
	header, _, _ := strings.Cut(text, "\n")
	for _, spoiled := range []string{
		strings.Replace(line, `"generation":1`, `"generation":0`, 1),
		strings.Replace(line, "https://", "ftp://", 1),
		strings.Replace(line, `"id":"wh_`, `"id":"xx_`, 1),
		strings.Replace(line, `{"id"`, `{"secret":"x","id"`, 1),
	} {
		require.NotEqual(t, line, spoiled)
		_, err := take(t, to, strings.NewReader(header+"\n"+spoiled+"\n"), transfer.Options{Webhooks: true})
		require.ErrorContains(t, err, "line 2: ", spoiled)
	}
	all, err = to.Webhooks(t.Context())
	require.NoError(t, err)
	require.Empty(t, all)
}
