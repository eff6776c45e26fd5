package e2e

import (
	"encoding/hex"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/udpbeat"
)

// How much junk comes, and for how long.
var (
	junkRate = flag.Int("junk", 20_000, "datagrams of junk a second in TestJunkByUDPCostsNoMemoryAndNoBeat")
	junkTime = flag.Duration("junk-for", 2*time.Second, "how long they come")
)

// junkMemory is how much the memory of the server may grow while junk comes, in KiB.
const junkMemory = 48 << 10

// junk makes datagrams that a server must not count. One of them counted, once.
type junk struct {
	rng     *rand.Rand
	keyID   [8]byte
	session rollcall.SessionID
	counted []byte
}

func (j *junk) next() []byte {
	now := uint32(time.Now().Unix()) //nolint:gosec // until 2106
	switch j.rng.IntN(6) {
	case 0: // anything
		b := make([]byte, j.rng.IntN(1500))
		for i := range b {
			b[i] = byte(j.rng.Uint32())
		}
		return b
	case 1: // nothing
		return nil
	case 2: // a session that there is, or not, with a MAC that is not its own
		if j.rng.IntN(2) == 0 {
			j.session[j.rng.IntN(16)] ^= 1
		}
		return udpbeat.SessionBeat{Session: j.session, Seconds: now, Counter: j.rng.Uint32()}.Append(nil, udpbeat.Key{1})
	case 3: // the gateway's own key, with a MAC that is not its own
		b, _ := udpbeat.GatewayBeat{Key: hex.EncodeToString(j.keyID[:]), Seconds: now, Counter: j.rng.Uint64(), Users: []string{"evil"}}.Append(nil, udpbeat.Key{1}) // these are fine
		return b
	case 4: // long
		return append([]byte{2}, make([]byte, 8000)...)
	default: // again
		return j.counted
	}
}

// flood sends junk at a rate until the time is up, and returns how much. What the
// system throws away does not matter.
func (j *junk) flood(conn net.Conn, rate int, until time.Time) (sent int) {
	const perTurn = time.Millisecond
	turns := time.NewTicker(perTurn)
	defer turns.Stop()
	for began := time.Now(); time.Now().Before(until); <-turns.C {
		for due := int(time.Since(began).Seconds() * float64(rate)); sent < due && time.Now().Before(until); sent++ {
			_, _ = conn.Write(j.next())
		}
	}
	return sent
}

// udpCounts reads the counters of beats by UDP.
func (s *server) udpCounts() map[string]int {
	s.t.Helper()
	_, text, err := s.call(request{method: "GET", path: "/metrics"})
	require.NoError(s.t, err)
	out := map[string]int{}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if n, err := strconv.ParseFloat(value, 64); err == nil && strings.HasPrefix(name, "rollcall_udp_") {
			out[name] = int(n)
		}
	}
	return out
}

// TestJunkByUDPCostsNoMemoryAndNoBeat sends beats of a gateway amid much that is none.
func TestJunkByUDPCostsNoMemoryAndNoBeat(t *testing.T) {
	t.Parallel()
	s := start(t, buildBinary(t), t.TempDir(), "--udp-listen", "127.0.0.1:0")
	var m []string
	require.Eventually(t, func() bool {
		m = regexp.MustCompile(`"udp":"([^"]+)"`).FindStringSubmatch(s.stderr.String())
		return m != nil
	}, patience, 10*time.Millisecond, "the log says where beats are taken")
	in := s.loginAs("alice")
	var made struct {
		ID      string
		BeatKey string `json:"beat_key"`
	}
	s.get(&made, request{method: "POST", path: "/v1/keys", body: map[string]any{"role": "writer"}}, http.StatusCreated)
	key, err := hex.DecodeString(made.BeatKey)
	require.NoError(t, err)
	sender, err := udpbeat.Dial(t.Context(), m[1], made.ID, udpbeat.Key(key))
	require.NoError(t, err)
	defer sender.Close()

	// The server knows the key, and one datagram of it has counted.
	conns := make([]net.Conn, 2)
	for i := range conns {
		conns[i], err = (&net.Dialer{}).DialContext(t.Context(), "udp", m[1])
		require.NoError(t, err)
		t.Cleanup(func() { _ = conns[i].Close() })
	}
	counted, err := udpbeat.GatewayBeat{Key: made.ID, Seconds: uint32(time.Now().Unix()), Counter: 1, Users: []string{"first"}}.Append(nil, udpbeat.Key(key)) //nolint:gosec // until 2106
	require.NoError(t, err)
	_, err = conns[0].Write(counted)
	require.NoError(t, err)
	const users = `rollcall_udp_beats_total{of="users"}`
	require.Eventually(t, func() bool { return s.udpCounts()[users] == 1 }, time.Minute, 100*time.Millisecond, "the first beat counts")

	// Junk comes from two sockets, and a beat every 10 ms.
	before, began := s.kib("VmRSS"), time.Now()
	until := began.Add(*junkTime)
	var floods sync.WaitGroup
	sent := make([]int, len(conns))
	for i, conn := range conns {
		j := &junk{rng: rand.New(rand.NewPCG(1, uint64(i))), counted: counted} //nolint:gosec // no secrets
		id, err := hex.DecodeString(made.ID)
		require.NoError(t, err)
		copy(j.keyID[:], id)
		j.session, err = rollcall.ParseSessionID(in.Session.ID)
		require.NoError(t, err)
		floods.Go(func() { sent[i] = j.flood(conn, *junkRate/len(conns), until) })
	}
	good := 0
	beats := time.NewTicker(10 * time.Millisecond)
	defer beats.Stop()
	for ; time.Now().Before(until); <-beats.C {
		require.NoError(t, sender.Beat(t.Context(), fmt.Sprint("good-", good)))
		good++
	}
	floods.Wait()
	took := time.Since(began)

	// What is counted settles; then nothing has grown, and nothing was answered.
	var counts map[string]int
	require.Eventually(t, func() bool {
		last := counts
		counts = s.udpCounts()
		return last != nil && fmt.Sprint(last) == fmt.Sprint(counts)
	}, time.Minute, 600*time.Millisecond, "the counters come to rest")
	after, junked := s.kib("VmHWM"), 0
	for name, n := range counts {
		if strings.Contains(name, "dropped") {
			junked += n
		}
	}
	t.Logf("%d datagrams of junk in %v (%.0f a second), of which the server read %d; %d of %d beats amid it counted; memory %.1f MiB, then %.1f MiB at most; %v",
		sent[0]+sent[1], took.Round(time.Millisecond), float64(sent[0]+sent[1])/took.Seconds(), junked, counts[users]-1, good, float64(before)/1024, float64(after)/1024, counts)
	require.Greater(t, counts[users], 1+good/10, "beats amid junk count, but for what the system throws away on a busy machine")
	require.LessOrEqual(t, counts[users], 1+good, "nothing else counts")
	require.Less(t, after-before, junkMemory, "KiB of memory")
	require.Zero(t, counts[`rollcall_udp_beats_total{of="sessions"}`])
	for _, conn := range slices.Clone(conns) {
		require.NoError(t, conn.SetReadDeadline(time.Now().Add(20*time.Millisecond)))
		_, err := conn.Read(make([]byte, 2000))
		require.ErrorIs(t, err, os.ErrDeadlineExceeded, "something was answered")
	}
	s.kill()
}
