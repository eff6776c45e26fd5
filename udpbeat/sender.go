package udpbeat

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/rollcall/rollcall"
)

// Sender sends gateway beats under an API key of its own. Nobody answers them: that
// Beat succeeds says only that the datagrams are on their way. It is safe for
// concurrent use.
type Sender struct {
	conn net.Conn
	id   string
	key  Key

	mu      sync.Mutex // datagrams go out in the order of their counters
	counter uint64
	buffer  []byte
	users   uint64 // sent
}

// Dial returns a sender to the listener at address, such as "127.0.0.1:8081". The id
// is that of an API key of role writer or admin, and key its beat key. No other
// sender may use the API key at the same time, as the counter belongs to it.
func Dial(ctx context.Context, address, id string, key Key) (*Sender, error) {
	if _, err := (GatewayBeat{Key: id, Users: []string{"probe"}}).Append(nil, key); err != nil {
		return nil, err
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "udp", address)
	if err != nil {
		return nil, unsent(err)
	}
	// Nanoseconds rise across restarts, and faster than datagrams can be sent.
	return &Sender{conn: conn, id: id, key: key, counter: uint64(time.Now().UnixNano())}, nil //nolint:gosec // after 1970
}

// Beat is a sign of life of users. They are shared out to as many datagrams as they
// need. An id that cannot be a user's is refused, and nothing is sent. If a datagram
// cannot be sent, those before it have been.
func (s *Sender) Beat(ctx context.Context, users ...string) error {
	for i, user := range users {
		if err := rollcall.CheckUser(user); err != nil {
			return fmt.Errorf("users[%d]: %w", i, err)
		}
	}
	for len(users) > 0 {
		if err := ctx.Err(); err != nil {
			return unsent(err)
		}
		n := fitting(users)
		if err := s.send(users[:n]); err != nil {
			return err
		}
		users = users[n:]
	}
	return nil
}

// fitting returns how many of the users fit into one datagram.
func fitting(users []string) int {
	size := gatewayHead + macSize
	for i, user := range users {
		if size += 1 + len(user); size > MaxSize {
			return i
		}
	}
	return len(users)
}

func (s *Sender) send(users []string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counter++
	beat := GatewayBeat{Key: s.id, Seconds: uint32(time.Now().Unix()), Counter: s.counter, Users: users} //nolint:gosec // until 2106
	datagram, err := beat.Append(s.buffer[:0], s.key)
	if err != nil {
		return err
	}
	s.buffer = datagram
	if _, err := s.conn.Write(datagram); err != nil {
		return unsent(err)
	}
	s.users += uint64(len(users))
	return nil
}

// Sent returns how many users have been sent.
func (s *Sender) Sent() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.users
}

// Close closes the socket.
func (s *Sender) Close() error { return s.conn.Close() }

func unsent(err error) error {
	return &rollcall.Error{Code: rollcall.CodeUnavailable, Detail: "the beats could not be sent", Err: err}
}
