package udpbeat_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/udpbeat"
)

// sender returns a sender to the post, whose clock then is the system's.
func (p *post) sender() *udpbeat.Sender {
	p.Helper()
	p.clock.Set(time.Now())
	key, with := p.key(rollcall.RoleWriter)
	s, err := udpbeat.Dial(p.Context(), p.listener.Addr().String(), key.ID, with)
	require.NoError(p, err)
	p.Cleanup(func() { require.NoError(p, s.Close()) })
	return s
}

func TestASenderSharesUsersOutToDatagrams(t *testing.T) {
	p := newPost(t)
	s := p.sender()
	users := make([]string, 300)
	for i := range users {
		users[i] = fmt.Sprintf("%s-%d", strings.Repeat("x", i%100), i)
	}
	require.NoError(t, s.Beat(t.Context(), users...))
	p.expect(300, nil)
	require.EqualValues(t, 300, s.Sent())
	statuses, err := p.roll.Status(t.Context(), users...)
	require.NoError(t, err)
	for _, status := range statuses {
		require.True(t, status.Online, status.User)
	}
}

func TestSendersCallersMayBeMany(t *testing.T) {
	p := newPost(t)
	s := p.sender()
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for k := range 20 {
				if s.Beat(t.Context(), fmt.Sprint(i, "-", k)) != nil {
					t.Error("a beat was not sent")
				}
			}
		})
	}
	all.Wait()
	p.expect(160, nil) // none is taken for a repeat
}

func TestASenderSaysWhatItCannotSend(t *testing.T) {
	p := newPost(t)
	s := p.sender()
	require.ErrorContains(t, s.Beat(t.Context(), "alice", strings.Repeat("x", rollcall.MaxUserLen+1)), "users[1]")
	_, err := udpbeat.Dial(t.Context(), p.listener.Addr().String(), "no id", udpbeat.Key{})
	require.Equal(t, rollcall.CodeInvalidArgument, rollcall.CodeOf(err))
}
