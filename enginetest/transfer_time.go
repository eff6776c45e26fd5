package enginetest

import (
	"time"

	"github.com/rollcall/rollcall"
)

// keptSession is a session of another engine, begun and last touched some time
// ago, with a deadline of its own.
func (h *harness) keptSession(user string, ago time.Duration, expires time.Time) rollcall.SessionSnapshot {
	id := rollcall.NewSessionID(h.now().Add(-ago), user, 7)
	return rollcall.SessionSnapshot{
		Session: rollcall.Session{ID: id, User: user, Kind: "user", LoginAt: id.Time(), SeenAt: id.Time(), ExpiresAt: expires},
		Token:   rollcall.TokenKey{1}, Idle: rollcall.DefaultIdleTimeout,
	}
}

func moveFarDeadline(x *moving) {
	h := x.to
	h.tick()
	native := h.login("native")
	h.advance(time.Second)
	moved := h.keptSession("moved", time.Hour, h.now().Add(30*24*time.Hour))
	h.NoError(h.roll.Import(h.ctx, rollcall.UserSnapshot{User: "moved", Sessions: []rollcall.SessionSnapshot{moved}}))
	h.Zero(h.outages())
	want := h.now().Add(rollcall.DefaultRestartGrace)
	for range 2 {
		got, err := h.roll.Session(h.ctx, moved.ID)
		h.NoError(err)
		h.Equal(want, got.ExpiresAt)
		got, err = h.roll.Session(h.ctx, native.Session.ID)
		h.NoError(err)
		h.Equal(native.Session.ExpiresAt, got.ExpiresAt)
		h.restart()
		h.tick()
	}
	h.live(rollcall.DefaultRestartGrace - time.Millisecond)
	_, err := h.roll.Verify(h.ctx, rollcall.SessionRef{ID: moved.ID})
	h.NoError(err)
	h.advance(time.Millisecond)
	_, err = h.roll.Verify(h.ctx, rollcall.SessionRef{ID: moved.ID})
	h.code(rollcall.CodeSessionEnded, err)
	h.tick()
	got, err := h.roll.Session(h.ctx, moved.ID)
	h.NoError(err)
	h.Equal(want, got.End.At)
	h.live(5 * time.Minute)
	h.Zero(h.count(rollcall.DefaultWindow), "nobody was heard")
	h.alive(native)
}

func moveAfterHours(x *moving) {
	x.from.tick()
	moved := x.login("moved")
	x.to.tick()
	x.to.beat("early")
	expired := x.to.login("expired")
	for range 3 * 60 * 15 { // x.to lives, x.from is down
		x.advance(4 * time.Second)
		x.to.count(time.Minute)
	}
	x.from.tick()
	x.to.tick()
	after := x.to.last()
	x.move()
	x.to.alive(moved)
	x.to.ended(rollcall.CauseExpired, expired)
	x.Zero(x.to.count(rollcall.DefaultWindow))
	x.False(x.to.status("early").Online)
	x.Len(x.to.list(rollcall.SessionQuery{}), 1)
	x.advance(time.Second)
	x.to.tick()
	x.Empty(x.to.transitions(rollcall.ViewerAdmin, after))
	x.Zero(x.to.outages())
}

func moveBanned(x *moving) {
	h := x.to
	h.ban("mallory", time.Hour)
	moved := h.keptSession("mallory", time.Minute, h.now().Add(29*time.Minute))
	snapshot := rollcall.UserSnapshot{User: "mallory", Sessions: []rollcall.SessionSnapshot{moved}}
	h.code(rollcall.CodeConflict, h.roll.Import(h.ctx, snapshot))
	_, err := h.roll.Touch(h.ctx, rollcall.SessionRef{ID: moved.ID})
	h.code(rollcall.CodeUnauthenticated, err)

	snapshot.Bans = []rollcall.BanSnapshot{{Ban: rollcall.Ban{User: "mallory", At: h.now(), Until: h.now().Add(time.Hour)}}}
	e := h.code(rollcall.CodeInvalidArgument, h.roll.Import(h.ctx, snapshot))
	h.Equal("snapshots[0].sessions", e.Field)

	snapshot.Bans = nil
	h.advance(time.Hour)
	h.NoError(h.roll.Import(h.ctx, snapshot), "the ban is over")
}
