package demo

import (
	"context"
	"slices"
	"time"

	"github.com/rollcall/rollcall"
)

// touch is a sign of life that waits for others.
type touch struct {
	ref rollcall.SessionRef
	of  *visit
}

// missedAfter is how late a login may be before it does not happen.
const missedAfter = time.Minute

// advance does all that people do up to an instant. In the past it sets the clock to
// the instant of each step.
func (w *World) advance(ctx context.Context, roll *rollcall.Roll, to time.Time, clock *rollcall.ManualClock) error {
	w.planUntil(to, w.heardFrom())
	for len(w.steps) > 0 && !w.steps[0].at.After(to) {
		s := w.steps.next()
		if clock != nil {
			clock.Set(s.at)
		} else if s.of.id.IsZero() && to.Sub(s.at) > missedAfter {
			continue // the machine has slept: they did not all wait for it
		}
		if err := w.do(ctx, roll, s); err != nil && !isLife(err) {
			return err
		}
	}
	if clock != nil {
		clock.Set(to)
	}
	return w.touchAll(ctx, roll)
}

// isLife reports whether an error is what happens to people: they were banned, or somebody
// at the console has ended their session or erased them.
func isLife(err error) bool {
	return slices.Contains([]rollcall.Code{
		rollcall.CodeUserBanned, rollcall.CodeSessionEnded, rollcall.CodeSessionLimit, rollcall.CodeNotFound,
		rollcall.CodeUnauthenticated, rollcall.CodeConflict,
	}, rollcall.CodeOf(err))
}

func (w *World) do(ctx context.Context, roll *rollcall.Roll, s step) error {
	v := s.of
	if v.id.IsZero() {
		return w.login(ctx, roll, s)
	}
	switch {
	case !v.here: // it has been ended by somebody
		return nil
	case s.at.Before(v.until):
		w.touches = append(w.touches, touch{rollcall.SessionRef{ID: v.id}, v})
		w.goOn(s.at, v)
		return nil
	}
	return w.end(ctx, roll, v)
}

// goOn plans the next step of a visit that goes on.
func (w *World) goOn(from time.Time, v *visit) {
	next := from.Add(touchEvery + time.Duration(v.dice.roll()*float64(touchEvery/2)))
	if next.After(v.until) {
		next = v.until
	}
	w.steps.add(next, v)
}

func (w *World) login(ctx context.Context, roll *rollcall.Roll, s step) error {
	v, p := s.of, &w.people[s.of.who]
	in, err := roll.Login(ctx, rollcall.Login{
		User: p.id, Kind: p.kind, Name: p.name, App: v.device.app, Device: v.device.class, DeviceID: v.device.id,
		IP: v.device.ip, UserAgent: v.device.agent, Attrs: map[string]string{"region": v.device.region},
	})
	if err != nil {
		return err
	}
	v.id, v.here = in.Session.ID, true
	w.goOn(s.at, v)
	if rollcall.DayOf(s.at, w.opts.Timezone) != p.joined {
		return nil
	}
	_, err = roll.PutUser(ctx, p.id, rollcall.UserPatch{Kind: &p.kind, Name: &p.name})
	return err
}

// Why people are shown out, and by whom.
var (
	kickReasons = []string{
		"password changed", "sign-in from an unusual place", "account shared", "spam in a channel", "device reported lost", "payment under review",
	}
	banReasons = []string{"harassment", "spam", "payment fraud"}
	moderators = []string{"mika (support)", "support desk", "joanna (trust)", "fraud watch"}
)

func (w *World) end(ctx context.Context, roll *rollcall.Roll, v *visit) error {
	v.here = false
	d, ref := &v.dice, rollcall.SessionRef{ID: v.id}
	var err error
	switch v.ending {
	case logsOut:
		_, err = roll.Kick(ctx, rollcall.Kick{Session: v.id, Cause: rollcall.CauseLogout})
	case goesQuiet:
	case leaves:
		_, err = roll.Leave(ctx, ref)
	case isKicked:
		_, err = roll.Kick(ctx, rollcall.Kick{Session: v.id, Reason: one(d, kickReasons), Actor: one(d, moderators)})
	case isBanned:
		actor := one(d, moderators)
		_, err = roll.Ban(rollcall.WithActor(ctx, actor), w.people[v.who].id, time.Duration(2+d.below(70))*time.Hour, one(d, banReasons), actor)
	}
	return err
}

// touchAll sends the signs of life that have come together.
func (w *World) touchAll(ctx context.Context, roll *rollcall.Roll) error {
	for some := range slices.Chunk(w.touches, rollcall.MaxLimit) {
		refs := make([]rollcall.SessionRef, len(some))
		for i := range some {
			refs[i] = some[i].ref
		}
		touched, err := roll.TouchAll(ctx, refs)
		if err != nil {
			return err
		}
		for i := range touched {
			some[i].of.here = some[i].of.here && touched[i].Live
		}
	}
	w.touches = w.touches[:0]
	return nil
}
