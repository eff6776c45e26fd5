package webhook

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/dns/dnsmessage"

	"github.com/rollcall/rollcall"
)

func TestPrivateTargetsAreRefusedWhenTheyAreDialed(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"127.0.0.1", "127.9.9.9", "0.0.0.0", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1",
		"192.0.0.1", "192.0.2.1", "198.18.0.1", "198.51.100.1", "203.0.113.1", "224.0.0.1", "239.1.1.1", "240.0.0.1",
		"255.255.255.255", "168.63.129.16", "::ffff:0:7f00:1", "::ffff:0:808:808", "1000::1", "4000::1", "::", "::1", "::7f00:1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "64:ff9b::7f00:1", "64:ff9b:1::1",
		"fe80::1", "fec0::1", "fc00::1", "fd12::1", "ff02::1", "2001::1", "2001:db8::1", "2002:7f00:1::1", "100::1", "3fff::1", "5f00::1",
	} {
		addr := netip.MustParseAddr(text)
		require.Error(t, Allow{}.address(addr), text)
		c := newClient(&dialer{})
		o := c.post(t.Context(), request{url: "http://" + netip.AddrPortFrom(addr, 9).String() + "/", at: time.Now()})
		require.Error(t, o.err, text)
		if text != "0.0.0.0" && text != "::" { // which the system takes for this machine
			require.True(t, o.refused, "%s: %v", text, o.err)
		}
		require.True(t, o.refused || o.status == 0)
		c.close()
	}
	for _, text := range []string{"1.1.1.1", "8.8.8.8", "93.184.216.34", "2606:4700:4700::1111", "2a00:1450::1", "::ffff:8.8.8.8"} {
		require.NoError(t, Allow{}.address(netip.MustParseAddr(text)), text)
	}
}

func TestAllowNamesNetworksAndHosts(t *testing.T) {
	t.Parallel()
	a, err := ParseAllow([]string{"10.1.0.0/16", " ::1", "127.0.0.1", "Hooks.Internal."})
	require.NoError(t, err)
	require.Equal(t, []string{"hooks.internal"}, a.Hosts)
	for text, ok := range map[string]bool{"10.1.2.3": true, "10.2.2.3": false, "::1": true, "127.0.0.1": true, "127.0.0.2": false, "::ffff:10.1.0.1": true} {
		require.Equal(t, ok, a.address(netip.MustParseAddr(text)) == nil, text)
	}
	for _, text := range []string{"10.1.0.0/99", "host:80", "*.internal", "http://x/y", "fe80::1%eth0", "::ffff:10.0.0.0/104"} {
		_, err := ParseAllow([]string{text})
		var e *rollcall.Error
		require.ErrorAs(t, err, &e, text)
		require.Equal(t, "webhooks.allow", e.Field)
	}
}

// changing is a resolver whose answers change: the first is public, the others are this
// machine.
func changing(t *testing.T) (*net.Resolver, *atomic.Int32) {
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	var asked atomic.Int32
	go func() {
		buf := make([]byte, 1500)
		for {
			n, from, err := conn.ReadFrom(buf)
			if err != nil {
				return
			}
			var q dnsmessage.Message
			if q.Unpack(buf[:n]) != nil || len(q.Questions) != 1 {
				continue
			}
			answer := dnsmessage.Message{Header: dnsmessage.Header{ID: q.ID, Response: true, RecursionAvailable: true}, Questions: q.Questions}
			if q.Questions[0].Type == dnsmessage.TypeA {
				addr := [4]byte{127, 0, 0, 1}
				if asked.Add(1) == 1 {
					addr = [4]byte{93, 184, 216, 34}
				}
				answer.Answers = []dnsmessage.Resource{{
					Header: dnsmessage.ResourceHeader{Name: q.Questions[0].Name, Type: dnsmessage.TypeA, Class: dnsmessage.ClassINET},
					Body:   &dnsmessage.AResource{A: addr},
				}}
			}
			if text, err := answer.Pack(); err == nil {
				_, _ = conn.WriteTo(text, from)
			}
		}
	}()
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", conn.LocalAddr().String())
	}}, &asked
}

func TestANameThatComesToMeanAPrivateAddressIsRefused(t *testing.T) {
	t.Parallel()
	var reached atomic.Int32
	inside := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) }))
	defer inside.Close()
	port := inside.URL[strings.LastIndex(inside.URL, ":"):]
	resolver, asked := changing(t)

	// Whoever looked the name up before would have seen a public address.
	first, err := resolver.LookupNetIP(t.Context(), "ip4", "rebinding.example.")
	require.NoError(t, err)
	require.NoError(t, Allow{}.address(first[0]))

	c := newClient(&dialer{resolver: resolver})
	defer c.close()
	target := "http://rebinding.example." + port + "/"
	for range 3 {
		o := c.post(t.Context(), request{url: target, at: time.Now()})
		require.True(t, o.refused, "%v", o.err)
	}
	require.Greater(t, asked.Load(), int32(1))
	require.Zero(t, reached.Load())

	// A host that is named may be anywhere.
	open := newClient(&dialer{resolver: resolver, allow: Allow{Hosts: []string{"rebinding.example"}}})
	defer open.close()
	require.NoError(t, open.post(t.Context(), request{url: target, at: time.Now()}).err)
	require.Equal(t, int32(1), reached.Load())
}

func TestNeitherRedirectsNorProxiesAreFollowed(t *testing.T) {
	var reached atomic.Int32
	inside := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) }))
	defer inside.Close()
	outside := httptest.NewServer(http.RedirectHandler(inside.URL, http.StatusTemporaryRedirect))
	defer outside.Close()
	t.Setenv("HTTP_PROXY", inside.URL)
	t.Setenv("http_proxy", inside.URL)
	c := newClient(&dialer{allow: Allow{Networks: prefixes("127.0.0.1/32")}})
	defer c.close()
	o := c.post(t.Context(), request{url: outside.URL, at: time.Now()})
	require.Equal(t, 307, o.status)
	require.ErrorContains(t, o.err, "redirect")
	require.Zero(t, reached.Load())
}

func TestAMessageIsSignedAsStandardWebhooksSays(t *testing.T) {
	t.Parallel()
	var got http.Header
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r.Header
		w.Header().Set("Retry-After", "120")
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	defer receiver.Close()
	c := newClient(&dialer{allow: Allow{Networks: prefixes("127.0.0.1/32")}})
	defer c.close()
	// The example of the specification's libraries.
	key := []byte("\x30\x71\x1d\x64\xd6\xfe\x31\x2b\xd2\xdd\x72\x0f\xbb\x55\x5b\x61")
	o := c.post(t.Context(), request{
		url: receiver.URL, id: "msg_1", at: time.Unix(1614265330, 0), body: []byte(`{"test": 2432232314}`), keys: [][]byte{key, {1}},
	})
	require.Equal(t, 2*time.Minute, o.retryAfter)
	require.Equal(t, "msg_1", got.Get("webhook-id"))
	require.Equal(t, "1614265330", got.Get("webhook-timestamp"))
	require.Len(t, strings.Fields(got.Get("webhook-signature")), 2)
	require.Equal(t, "application/json", got.Get("Content-Type"))
}

func TestRetryAfterIsSecondsOrADate(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC)
	for text, want := range map[string]time.Duration{
		"": 0, "x": 0, "-5": 0, "7": 7 * time.Second, "999999": maxRetryAfter, "Tue, 03 Feb 2026 04:06:06 GMT": time.Minute, "Tue, 03 Feb 2026 04:04:06 GMT": 0,
	} {
		require.Equal(t, want, retryAfter(text, now), text)
	}
}
