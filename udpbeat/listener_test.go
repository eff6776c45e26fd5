package udpbeat_test

import (
	"fmt"
	"net"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/local"
	"github.com/rollcall/rollcall/udpbeat"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long a test waits for what must come; a slow machine is no fault.
const patience = time.Minute

// post is a listener over an engine of its own, with a sender.
type post struct {
	*testing.T
	roll     *rollcall.Roll
	clock    *rollcall.ManualClock
	listener *udpbeat.Listener
	out      net.Conn
	sent     uint64
}

func newPost(t *testing.T) *post {
	t.Helper()
	engine, err := local.Open("", local.Options{InMemory: true})
	require.NoError(t, err)
	p := &post{T: t, clock: rollcall.NewManualClock(time.Unix(1_800_000_000, 0))}
	p.roll, err = rollcall.New(engine, rollcall.Options{Clock: p.clock})
	require.NoError(t, err)
	p.listener, err = udpbeat.Listen(p.roll, "127.0.0.1:0", udpbeat.Options{})
	require.NoError(t, err)
	p.out, err = (&net.Dialer{}).DialContext(t.Context(), "udp", p.listener.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, p.out.Close())
		require.NoError(t, p.listener.Close())
		require.NoError(t, p.roll.Close())
		require.NoError(t, engine.Close())
	})
	return p
}

func (p *post) send(datagram []byte) {
	p.Helper()
	_, err := p.out.Write(datagram)
	require.NoError(p, err)
	p.sent++
}

// expect waits until all beats that were sent have been counted as wanted, by a
// reason or as accepted.
func (p *post) expect(accepted uint64, dropped map[udpbeat.Reason]uint64) {
	p.Helper()
	counts := func() (string, bool) {
		sessions, users := p.listener.Accepted()
		same := sessions+users == accepted
		text := fmt.Sprintf("accepted %d", sessions+users)
		for _, r := range udpbeat.Reasons() {
			same = same && p.listener.Dropped(r) == dropped[r]
			text += fmt.Sprintf(", %s %d", r, p.listener.Dropped(r))
		}
		return text, same
	}
	for began := time.Now(); ; runtime.Gosched() {
		text, same := counts()
		if same {
			return
		}
		require.Less(p, time.Since(began), patience, "waited for accepted %d, dropped %v; there are: %s", accepted, dropped, text)
	}
}

func (p *post) seconds() uint32 { return uint32(p.clock.Now().Unix()) }

func (p *post) login(user string) rollcall.LoggedIn {
	p.Helper()
	in, err := p.roll.Login(p.Context(), rollcall.Login{User: user})
	require.NoError(p, err)
	return in
}

func (p *post) key(role rollcall.Role) (rollcall.APIKey, udpbeat.Key) {
	p.Helper()
	key, _, err := p.roll.CreateKey(p.Context(), rollcall.NewKey{Role: role})
	require.NoError(p, err)
	return key, p.roll.KeyBeatKey([8]byte(key.Hash[:8]))
}

func (p *post) gateway(key rollcall.APIKey, with udpbeat.Key, counter uint64, users ...string) []byte {
	p.Helper()
	b, err := udpbeat.GatewayBeat{Key: key.ID, Seconds: p.seconds(), Counter: counter, Users: users}.Append(nil, with)
	require.NoError(p, err)
	return b
}

func TestASessionBeatIsATouchAtItsArrival(t *testing.T) {
	p := newPost(t)
	in := p.login("alice")
	p.clock.Advance(20 * time.Minute)
	p.send(udpbeat.SessionBeat{Session: in.Session.ID, Seconds: p.seconds() - 30, Counter: 1}.Append(nil, in.BeatKey))
	p.expect(1, nil)

	s, err := p.roll.Session(t.Context(), in.Session.ID)
	require.NoError(t, err)
	require.True(t, p.clock.Now().Equal(s.SeenAt))
	require.True(t, p.clock.Now().Add(30*time.Minute).Equal(s.ExpiresAt))
}

func TestAGatewayBeatIsASignOfLifeOfItsUsers(t *testing.T) {
	p := newPost(t)
	key, with := p.key(rollcall.RoleWriter)
	p.send(p.gateway(key, with, 1, "alice", "42", "界"))
	p.expect(3, nil)

	statuses, err := p.roll.Status(t.Context(), "alice", "42", "界", "bob")
	require.NoError(t, err)
	var online []string
	for _, s := range statuses {
		if s.Online {
			online = append(online, s.User)
		}
	}
	require.Equal(t, []string{"alice", "42", "界"}, online)
}

func TestWhatDoesNotCountIsCountedByItsReason(t *testing.T) {
	p := newPost(t)
	in := p.login("alice")
	beat := func(seconds, counter uint32) []byte {
		return udpbeat.SessionBeat{Session: in.Session.ID, Seconds: seconds, Counter: counter}.Append(nil, in.BeatKey)
	}
	good := beat(p.seconds(), 70)
	p.send(good)
	p.expect(1, nil)

	want := map[udpbeat.Reason]uint64{}
	one := func(r udpbeat.Reason, beats uint64, datagram []byte) {
		t.Helper()
		p.send(datagram)
		want[r] += beats
		p.expect(1, want)
	}
	one(udpbeat.Replayed, 1, good)
	one(udpbeat.Replayed, 1, beat(p.seconds(), 6)) // 64 before the highest
	one(udpbeat.Stale, 1, beat(p.seconds()-61, 71))
	one(udpbeat.Stale, 1, beat(p.seconds()+61, 71))
	one(udpbeat.Malformed, 1, good[:40])
	one(udpbeat.Malformed, 1, []byte("GET / HTTP/1.1\r\n\r\n"))
	one(udpbeat.Malformed, 1, make([]byte, 2000))
	forged := append([]byte{}, good...)
	forged[40] ^= 1
	one(udpbeat.Unauthenticated, 1, forged)

	reader, readerKey := p.key(rollcall.RoleReader)
	one(udpbeat.Refused, 2, p.gateway(reader, readerKey, 1, "bob", "carol"))
	writer, writerKey := p.key(rollcall.RoleWriter)
	require.NoError(t, p.roll.RevokeKey(t.Context(), writer.ID))
	p.clock.Advance(3 * time.Second) // roles are read anew after two
	one(udpbeat.Refused, 1, p.gateway(writer, writerKey, 1, "bob"))

	_, err := p.roll.Kick(t.Context(), rollcall.Kick{User: "alice"})
	require.NoError(t, err)
	one(udpbeat.Ended, 1, beat(p.seconds(), 71))

	statuses, err := p.roll.Status(t.Context(), "bob", "carol")
	require.NoError(t, err)
	require.False(t, statuses[0].Online || statuses[1].Online)
	p.silent()
}

func TestASessionHasTenBeatsASecondAndNoMore(t *testing.T) {
	p := newPost(t)
	alice, bob := p.login("alice"), p.login("bob")
	counter := uint32(0)
	beats := func(in rollcall.LoggedIn, n int) {
		for range n {
			counter++
			p.send(udpbeat.SessionBeat{Session: in.Session.ID, Seconds: p.seconds(), Counter: counter}.Append(nil, in.BeatKey))
		}
	}
	beats(alice, 25)
	p.expect(10, map[udpbeat.Reason]uint64{udpbeat.RateLimited: 15})
	beats(bob, 10) // what one sends is nothing to the other
	p.expect(20, map[udpbeat.Reason]uint64{udpbeat.RateLimited: 15})
	p.clock.Advance(time.Second)
	beats(alice, 10)
	p.expect(30, map[udpbeat.Reason]uint64{udpbeat.RateLimited: 15})

	key, with := p.key(rollcall.RoleWriter)
	for i := range uint64(20) {
		p.send(p.gateway(key, with, i+1, "carol"))
	}
	p.expect(50, map[udpbeat.Reason]uint64{udpbeat.RateLimited: 15})
}

// silent holds that nothing was ever answered.
func (p *post) silent() {
	p.Helper()
	require.NoError(p, p.out.SetReadDeadline(time.Now().Add(20*time.Millisecond)))
	n, err := p.out.Read(make([]byte, 2000))
	var late net.Error
	require.ErrorAs(p, err, &late)
	require.True(p, late.Timeout())
	require.Zero(p, n)
}

func TestBeatsCountWhileJunkComes(t *testing.T) {
	p := newPost(t)
	key, with := p.key(rollcall.RoleWriter)
	in := p.login("alice")
	junk := udpbeat.SessionBeat{Session: in.Session.ID, Seconds: p.seconds(), Counter: 1}.Append(nil, udpbeat.Key{})
	stop := make(chan struct{})
	flooded := make(chan int)
	go func() {
		out, err := (&net.Dialer{}).DialContext(t.Context(), "udp", p.listener.Addr().String())
		if err != nil {
			close(flooded)
			return
		}
		defer out.Close()
		n := 0
		for ; ; n++ {
			select {
			case <-stop:
				flooded <- n
				return
			default:
				_, _ = out.Write(junk) // what the kernel throws away is fine
			}
		}
	}()

	var before, after runtime.MemStats
	for counter := uint64(1); ; counter++ {
		p.send(p.gateway(key, with, counter, "bob"))
		_, users := p.listener.Accepted()
		junked := p.listener.Dropped(udpbeat.Unauthenticated)
		if junked >= 2_000 && before.Sys == 0 {
			runtime.ReadMemStats(&before)
		}
		if users >= 50 && junked >= 20_000 {
			break
		}
		runtime.Gosched()
	}
	close(stop)
	require.Positive(t, <-flooded)
	runtime.ReadMemStats(&after)
	require.Less(t, after.Sys, before.Sys+32<<20, "memory grows with junk")
	p.silent()
}
