package redis

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/enginekit"
)

// StartSession implements [rollcall.Sessions].
func (e *Engine) StartSession(ctx context.Context, at time.Time, b rollcall.StartSession) (rollcall.StartResult, error) {
	// The retry key first, so that no other request logs in under it meanwhile.
	now := at.UnixMilli()
	claimed, err := e.claim(ctx, now, &b)
	if err != nil {
		return rollcall.StartResult{}, err
	}
	started, err := e.startSession(ctx, now, &b)
	if err != nil && claimed && !errors.Is(err, rollcall.ErrUnavailable) {
		// A login that was refused holds no key. One that may have been carried out keeps it.
		err = errors.Join(err, e.unclaim(ctx, now, &b))
	}
	return started, err
}

// claimKey returns the key under which a retry key is claimed. Its partition follows from the
// retry key, not from the user: so one claim holds against logins of all users.
func (e *Engine) claimKey(r *rollcall.Retry) string {
	return e.of(e.home(uint16(r.Key[0])<<8|uint16(r.Key[1])), "claim:"+string(r.Key[:]))
}

// claim claims the retry key of a login for its request; false if the login has none.
// Several logins of one request may hold it: the nonce tells them apart.
func (e *Engine) claim(ctx context.Context, now int64, b *rollcall.StartSession) (bool, error) {
	if b.Retry == nil {
		return false, nil
	}
	msg, err := e.one(ctx, now, keyCall(e.claimKey(b.Retry), &e.scripts.retryClaim, string(b.Retry.Request[:]),
		string(b.Retry.Nonce[:]), fmt.Sprint(now), fmt.Sprint(e.settings.RetryKeep.Milliseconds())))
	if err != nil {
		return false, err
	}
	n, err := msg.AsInt64()
	if err == nil && n == 0 {
		err = errRetryTaken()
	}
	return err == nil, err
}

// unclaim releases a login's hold on its retry key.
func (e *Engine) unclaim(ctx context.Context, now int64, b *rollcall.StartSession) error {
	_, err := e.one(ctx, now, keyCall(e.claimKey(b.Retry), &e.scripts.retryRelease, string(b.Retry.Nonce[:])))
	return err
}

func errRetryTaken() error {
	return &rollcall.Error{Code: rollcall.CodeConflict, Field: "idempotency_key", Detail: "was used for another login"}
}

// makeRoomStep bounds the sessions that one script of a login ends for each limit.
const makeRoomStep = 16

// startSession sends a login until it succeeds or is refused. The script may ask for
// something that has to come first: a kind to be known, an erasure or a cutoff to be
// finished. If very many sessions have to make room, as after a limit was lowered, each
// attempt ends some of them, until the limit is kept without the login.
func (e *Engine) startSession(ctx context.Context, now int64, b *rollcall.StartSession) (out rollcall.StartResult, err error) {
	ahead := "" // ids that earlier attempts ended
	for {
		msg, err := e.oneConfirmed(ctx, now, e.loginCall(now, b, ahead))
		if err != nil {
			return out, err
		}
		e.news.wake()
		reply, err := msg.ToArray()
		if err != nil || len(reply) == 0 {
			return out, damaged("the answer to a login")
		}
		switch status, _ := reply[0].ToString(); status {
		case "ok":
			r, err := unpackLive(reply)
			out.Session, out.Ended = r.Session, replacedSessions(reply[5])
			return out, err
		case "again":
			return readReplay(now, reply)
		case "banned":
			return out, bannedError(b.BanKey, reply[1])
		case "limit":
			return out, limitError(reply[1:])
		case "conflict":
			return out, errRetryTaken()
		case "kind": // nothing else refuses the login
			err = e.knowKinds(ctx, now, b.Session.Kind)
		case "erasing": // first, as the login is a new user's
			err = e.eraseAhead(ctx, now, b.Session.User, reply[1:])
		case "cutoff":
			_, _, err = e.drainCutoff(ctx, now, e.partOf(b.Session.User), "", b.Session.User)
		case "more":
			ids, _ := reply[1].ToString()
			ahead += ids
		default:
			err = damaged("the answer to a login")
		}
		if err != nil {
			return out, err
		}
	}
}

// loginCall is one attempt at a login. ahead are the ids that earlier attempts ended.
func (e *Engine) loginCall(now int64, b *rollcall.StartSession, ahead string) call {
	s := &b.Session
	var random, home packer
	random.u64(b.Random)
	home.u16(uint16(rollcall.HashUser(s.User)))
	day, month, retry, request, nonce := "", "", "", "", ""
	if b.MarkToday {
		day, month = fmt.Sprint(int32(b.Today)), fmt.Sprint(int32(rollcall.MonthOf(b.Today)))
	}
	if b.Retry != nil {
		retry, request, nonce = string(b.Retry.Key[:]), string(b.Retry.Request[:]), string(b.Retry.Nonce[:])
	}
	c := partCall(e.partOf(s.User), &e.scripts.sessionStart,
		packPolicies(b.Policies.List()), s.User, string(b.BanKey[:]), s.Kind, s.Name, s.App, s.Device, s.DeviceID,
		addrText(s.IP), packRest(s), tokenText(b.Token), random.text(), home.text(), day,
		retry, request, nonce, fmt.Sprint(e.settings.RetryKeep.Milliseconds()), flag(s.Kind == "" || e.kinds.has(s.Kind, now)),
		packIDs(b.Evict), fmt.Sprint(rollcall.MaxConflicts), fmt.Sprint(makeRoomStep), ahead, month)
	c.noRepeat = b.Retry == nil
	return c
}

// limitError reads {limit, {id, app, device, seen}, …}.
func limitError(reply []rueidis.RedisMessage) error {
	limit, err := reply[0].AsInt64()
	if err != nil {
		return damaged("the answer to a login")
	}
	inTheWay := make([]rollcall.Conflict, 0, len(reply)-1)
	for _, msg := range reply[1:] {
		of, err := msg.AsStrSlice()
		if err != nil || len(of) != 4 || len(of[0]) != 16 {
			return damaged("the answer to a login")
		}
		seen, err := strconv.ParseInt(of[3], 10, 64)
		if err != nil {
			return damaged("the answer to a login")
		}
		id := idOf(of[0])
		inTheWay = append(inTheWay, rollcall.Conflict{ID: id, App: of[1], Device: of[2], LoginAt: id.Time(), SeenAt: enginekit.TimeOrZero(seen)})
	}
	return rollcall.SessionLimitError(int(limit), inTheWay)
}

func replacedSessions(packed rueidis.RedisMessage) []rollcall.Ended {
	text, _ := packed.ToString()
	var out []rollcall.Ended
	for _, id := range idsOf(text) {
		out = append(out, rollcall.Ended{ID: id, Cause: rollcall.CauseReplaced})
	}
	return out
}

// readReplay reads the first answer to a login, when the login was repeated.
func readReplay(now int64, reply []rueidis.RedisMessage) (rollcall.StartResult, error) {
	var out rollcall.StartResult
	if len(reply) != 4 {
		return out, damaged("the answer to a login")
	}
	nonce, _ := reply[1].ToString()
	copy(out.Nonce[:], nonce)
	out.Ended = replacedSessions(reply[2])
	r, err := unpackFound(reply[3])
	switch {
	case rollcall.CodeOf(err) == rollcall.CodeNotFound: // it had ended, and then its user was erased
		return out, rollcall.SessionEndedError(&rollcall.End{At: enginekit.TimeOrZero(now), Cause: rollcall.CauseErased})
	case err == nil && r.End != nil:
		return out, rollcall.SessionEndedError(r.End)
	}
	out.Session = r.Session
	out.Replayed = err == nil
	return out, err
}

func bannedError(key rollcall.BanKey, msg rueidis.RedisMessage) error {
	blob, _ := msg.ToString()
	ban, err := unpackBan(string(key[:]), blob)
	if err != nil {
		return err
	}
	return &rollcall.Error{
		Code: rollcall.CodeUserBanned, Reason: ban.Reason,
		Detail: "banned until " + ban.Until.Format(time.RFC3339),
	}
}

// unpackLive reads {'live', id, record, seen, expires}.
func unpackLive(reply []rueidis.RedisMessage) (record, error) {
	if len(reply) < 5 {
		return record{}, damaged("a session")
	}
	id, _ := reply[1].ToString()
	blob, _ := reply[2].ToString()
	seen, err1 := reply[3].AsInt64()
	expires, err2 := reply[4].AsInt64()
	if err1 != nil || err2 != nil {
		return record{}, damaged("a session")
	}
	return unpackRecord(idOf(id), blob, seen, expires)
}

// unpackFound reads what session_lookup.lua returns for a session: a live one, an ended one
// with End set, or CodeNotFound.
func unpackFound(msg rueidis.RedisMessage) (record, error) {
	reply, err := msg.ToArray()
	if err != nil || len(reply) == 0 {
		return record{}, damaged("a session")
	}
	switch status, _ := reply[0].ToString(); {
	case status == "live":
		return unpackLive(reply)
	case status == "overdue" && len(reply) == 7:
		r, err := unpackLive(reply)
		end, _ := reply[5].AsInt64()
		cause, _ := reply[6].ToString()
		r.End = &rollcall.End{At: enginekit.TimeOrZero(end), Cause: rollcall.Cause(cause)}
		return r, err
	case status == "ended" && len(reply) == 3:
		id, _ := reply[1].ToString()
		blob, _ := reply[2].ToString()
		return unpackEnd(idOf(id), blob)
	case status == "unknown":
		return record{}, rollcall.NotFound("session")
	default:
		return record{}, damaged("a session")
	}
}

// touchStep bounds the references of one script.
const touchStep = 100

// Touch implements [rollcall.Sessions].
func (e *Engine) Touch(ctx context.Context, at time.Time, refs []rollcall.Ref, policies *rollcall.Policies) ([]rollcall.Touched, error) {
	packed := packPolicies(policies.List())
	out := make([]rollcall.Touched, len(refs))
	err := e.eachRef(ctx, at, refs, &e.scripts.sessionTouch, []string{packed}, func(i int, msg rueidis.RedisMessage) error {
		r, err := unpackFound(msg)
		if err != nil && rollcall.CodeOf(err) != rollcall.CodeNotFound {
			return err
		}
		out[i] = rollcall.Touched{Live: err == nil && r.End == nil, Session: r.Session}
		return nil
	})
	if err != nil {
		return nil, err
	}
	e.news.wake()
	return out, nil
}

// eachRef runs a script on references, in bounded steps, and calls each with what it
// returns for one.
func (e *Engine) eachRef(ctx context.Context, at time.Time, refs []rollcall.Ref, s *script, args []string, each func(i int, msg rueidis.RedisMessage) error) error {
	parts, places := e.byPart(len(refs), func(i int) int { return e.homeOf(refs[i]) })
	var calls []call
	var which [][]int
	for j, p := range parts {
		for from := 0; from < len(places[j]); from += touchStep {
			some := places[j][from:min(len(places[j]), from+touchStep)]
			list := append([]string(nil), args...)
			for _, i := range some {
				list = append(list, refText(refs[i]))
			}
			calls, which = append(calls, partCall(p, s, list...)), append(which, some)
		}
	}
	out, err := e.do(ctx, at.UnixMilli(), calls...)
	if err != nil {
		return err
	}
	for c, msg := range out {
		found, err := msg.ToArray()
		if err != nil || len(found) != len(which[c]) {
			return damaged("an answer about sessions")
		}
		for j, i := range which[c] {
			if err := each(i, found[j]); err != nil {
				return err
			}
		}
	}
	return nil
}

func flag(set bool) string {
	if set {
		return "1"
	}
	return "0"
}

// lookup finds one session.
func (e *Engine) lookup(ctx context.Context, at time.Time, ref rollcall.Ref, v rollcall.Viewer) (r record, err error) {
	err = e.eachRef(ctx, at, []rollcall.Ref{ref}, &e.scripts.sessionLookup, []string{flag(v == rollcall.ViewerPublic), "0"}, func(_ int, msg rueidis.RedisMessage) error {
		r, err = unpackFound(msg)
		return err
	})
	return r, err
}

// Lookup implements [rollcall.Sessions].
func (e *Engine) Lookup(ctx context.Context, at time.Time, ref rollcall.Ref, v rollcall.Viewer) (rollcall.Session, error) {
	r, err := e.lookup(ctx, at, ref, v)
	return r.Session, err
}

// Leave implements [rollcall.Sessions].
func (e *Engine) Leave(ctx context.Context, at time.Time, ref rollcall.Ref) (rollcall.Session, error) {
	var found record
	window := strconv.FormatInt(int64(e.settings.Window/time.Second), 10)
	err := e.eachRef(ctx, at, []rollcall.Ref{ref}, &e.scripts.sessionLeave, []string{window}, func(_ int, msg rueidis.RedisMessage) (err error) {
		found, err = unpackFound(msg)
		return err
	})
	return found.Session, err
}

// UpdateSession implements [rollcall.Sessions].
func (e *Engine) UpdateSession(ctx context.Context, at time.Time, id rollcall.SessionID, p rollcall.SessionPatch) (rollcall.Session, error) {
	return e.change(ctx, at, id, func(r *record) { p.Apply(&r.Session) })
}

// Rotate implements [rollcall.Sessions].
func (e *Engine) Rotate(ctx context.Context, at time.Time, id rollcall.SessionID, token rollcall.TokenHash) (rollcall.Session, error) {
	return e.change(ctx, at, id, func(r *record) { r.token = tokenText(token) })
}

// change edits a live session: it reads the record, and replaces it unless somebody else
// has meanwhile.
func (e *Engine) change(ctx context.Context, at time.Time, id rollcall.SessionID, edit func(*record)) (rollcall.Session, error) {
	for {
		r, err := e.lookup(ctx, at, rollcall.Ref{ID: id}, rollcall.ViewerAdmin)
		if err != nil {
			return r.Session, err
		}
		if r.End != nil {
			return r.Session, rollcall.SessionEndedError(r.End)
		}
		before := r.pack()
		edit(&r)
		msg, err := e.oneConfirmed(ctx, at.UnixMilli(), partCall(e.home(id.Home()), &e.scripts.sessionChange, idText(id), before, r.pack()))
		if err != nil {
			return r.Session, err
		}
		if reply, err := msg.ToArray(); err == nil && len(reply) == 1 {
			if status, _ := reply[0].ToString(); status == "again" {
				continue
			}
		}
		after, err := unpackFound(msg)
		if err == nil && after.End != nil {
			err = rollcall.SessionEndedError(after.End)
		}
		return after.Session, err
	}
}
