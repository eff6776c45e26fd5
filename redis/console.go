package redis

import (
	"context"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/enginekit"
)

// Passes to the console stand in one hash, rc:passes, by the hash of their text. One
// that was taken stands there until the next is put, behind takenPass and the request
// that took it: so a request whose answer was lost can be repeated.
const takenPass = "taken "

func (e *Engine) passCall(s *script, args ...string) call {
	return keyCall(e.key("passes"), s, args...)
}

func passField(hash rollcall.PassHash) string { return hex.EncodeToString(hash[:]) }

func milliseconds(t time.Time) string { return strconv.FormatInt(t.UnixMilli(), 10) }

// PutPass implements [rollcall.Console].
func (e *Engine) PutPass(ctx context.Context, now time.Time, p rollcall.ConsolePass) error {
	record, err := enginekit.EncodePass(p)
	if err != nil {
		return err
	}
	_, err = e.one(ctx, 0, e.passCall(&e.scripts.consolePut, milliseconds(now), passField(p.Hash), string(record),
		fmt.Sprint(rollcall.MaxPassesPerHolder), fmt.Sprint(rollcall.MaxPasses)))
	return err
}

// Pass implements [rollcall.Console].
func (e *Engine) Pass(ctx context.Context, now time.Time, hash rollcall.PassHash) (rollcall.ConsolePass, error) {
	msg, err := e.one(ctx, 0, plainCall(func() rueidis.Completed {
		return e.client.B().Hget().Key(e.key("passes")).Field(passField(hash)).Build()
	}))
	if err != nil {
		return rollcall.ConsolePass{}, err
	}
	record, _ := msg.ToString() // nil if there is none
	if record == "" || strings.HasPrefix(record, takenPass) {
		return rollcall.ConsolePass{}, rollcall.NotFound("pass")
	}
	p, err := enginekit.DecodePass(hash, []byte(record))
	if err != nil {
		return p, damaged("a pass to the console")
	}
	if !now.Before(p.ExpiresAt) {
		return rollcall.ConsolePass{}, rollcall.NotFound("pass")
	}
	return p, nil
}

// ExtendPass implements [rollcall.Console].
func (e *Engine) ExtendPass(ctx context.Context, now time.Time, hash rollcall.PassHash, expires time.Time) error {
	msg, err := e.one(ctx, 0, e.passCall(&e.scripts.consoleExtend, milliseconds(now), passField(hash), milliseconds(expires)))
	if err != nil {
		return err
	}
	if n, _ := msg.AsInt64(); n == 0 {
		return rollcall.NotFound("pass")
	}
	return nil
}

// TakePass implements [rollcall.Console].
func (e *Engine) TakePass(ctx context.Context, now time.Time, hash rollcall.PassHash) (rollcall.ConsolePass, error) {
	msg, err := e.one(ctx, 0, e.passCall(&e.scripts.consoleTake, milliseconds(now), passField(hash),
		fmt.Sprint(e.holder, e.requests.Add(1))))
	if err != nil {
		return rollcall.ConsolePass{}, err
	}
	record, _ := msg.ToString() // nil if there is none
	if record == "" {
		return rollcall.ConsolePass{}, rollcall.NotFound("pass")
	}
	p, err := enginekit.DecodePass(hash, []byte(record))
	if err != nil {
		return p, damaged("a pass to the console")
	}
	return p, nil
}
