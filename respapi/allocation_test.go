package respapi

import (
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/local"
)

// wire is a connection of which only the writing is looked at.
type wire struct{ net.Conn }

func (wire) Write(b []byte) (int, error)      { return len(b), nil }
func (wire) Read([]byte) (int, error)         { return 0, io.EOF }
func (wire) SetWriteDeadline(time.Time) error { return nil }
func (wire) SetReadDeadline(time.Time) error  { return nil }

// TestTheSteadyPathAllocatesOnlyWhatTheEngineDoes compares commands with the calls of the
// service that they make.
func TestTheSteadyPathAllocatesOnlyWhatTheEngineDoes(t *testing.T) {
	engine, err := local.Open("", local.Options{InMemory: true})
	require.NoError(t, err)
	defer engine.Close()
	roll, err := rollcall.New(engine, rollcall.Options{})
	require.NoError(t, err)
	defer roll.Close()
	dialect, err := ParseDialect([]string{"users = presence", "log_{month}_{kind}_{user} = attendance"})
	require.NoError(t, err)
	l, err := Listen(roll, "127.0.0.1:0", Options{NoKeys: true, Dialect: dialect})
	require.NoError(t, err)
	defer l.Close()
	c := newConn(l, wire{})

	now, today := roll.Now().Unix(), roll.Today()
	ctx := t.Context()
	users := []string{"user-1"}
	mark := rollcall.Mark{User: "user-1", Kind: "office", Day: today}
	for _, test := range []struct {
		command string
		engine  func() error
	}{
		{"BEAT user-1", func() error { return roll.Beat(ctx, users...) }},
		{fmt.Sprintf("ZADD users %d user-1", now), func() error { _, err := roll.Status(ctx, users...); return errOr(err, roll.Beat(ctx, users...)) }},
		{"ZSCORE users user-1", func() error { _, err := roll.Status(ctx, users...); return err }},
		{fmt.Sprintf("SETBIT log_%s_office_user-1 %d 1", today.String()[:7], today.Date().Day()-1), func() error { _, _, err := roll.Mark(ctx, mark); return err }},
	} {
		input := []byte(test.command + "\r\n")
		command := func() {
			c.from, c.to = 0, copy(c.buf, input)
			c.charged = false
			if !c.work() || c.failed != "" {
				t.Fatalf("%s failed", test.command)
			}
		}
		engineAlone := testing.AllocsPerRun(2000, func() {
			if err := test.engine(); err != nil {
				t.Fatal(err)
			}
		})
		through := testing.AllocsPerRun(2000, command)
		require.LessOrEqual(t, through, engineAlone, test.command)
	}
}

func errOr(first, second error) error {
	if first != nil {
		return first
	}
	return second
}
