package httpapi_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
)

// TestAStalledReaderIsCutOffAndTheOthersGoOn has one reader take nothing of more than
// a megabyte while 100 others read along.
func TestAStalledReaderIsCutOffAndTheOthersGoOn(t *testing.T) {
	const readers, writers, most = 100, 16, 40_000
	s := newSite(t)
	base := s.listen()
	var others []*stream
	for range readers {
		st := s.open(base, "reader", "/v1/events?types=user.banned&user=other")
		<-st.frames
		<-st.frames
		others = append(others, st)
	}
	s.stall(base)

	// Events come until the reader is cut off, which is long before there are most.
	reason := strings.Repeat("r", rollcall.MaxReasonLen)
	cutOff := func() bool {
		return strings.Contains(s.ok(200, "", "GET", "/metrics", ""), `rollcall_streams_ended_total{cause="behind",kind="events"} 1`)
	}
	for made := 0; !cutOff(); made += 10 * writers {
		require.Less(t, made, most, "the reader is cut off")
		var all sync.WaitGroup
		for w := range writers {
			all.Go(func() {
				for n := range 10 {
					_, err := s.roll.Ban(context.Background(), fmt.Sprint("u", made+10*w+n), time.Hour, reason, "")
					assert.NoError(t, err)
				}
			})
		}
		all.Wait()
	}
	s.ok(200, "admin", "PUT", "/v1/bans/other", `{"duration":"1h"}`)
	for _, st := range others {
		require.Equal(t, "other", st.event().User, "others go on")
	}
}

// stall opens a stream and reads nothing of it.
func (s *site) stall(base string) {
	s.t.Helper()
	conn, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", strings.TrimPrefix(base, "http://"))
	require.NoError(s.t, err)
	s.t.Cleanup(func() { _ = conn.Close() })
	require.NoError(s.t, conn.(*net.TCPConn).SetReadBuffer(4<<10))
	r, err := http.NewRequestWithContext(context.Background(), http.MethodGet, base+"/v1/events", nil)
	require.NoError(s.t, err)
	r.Header.Set("Authorization", "Bearer "+s.keys[rollcall.RoleReader])
	require.NoError(s.t, r.Write(conn))
}
