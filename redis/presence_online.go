package redis

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/redis/rueidis"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/enginekit"
)

// Lists of users by last sight: newest second first, within one by partition,
// within one by the bytes of their id, descending.

// onlineCursor is where a walk over users by last-seen time stands: the second in which it
// began, and the user it reached.
type onlineCursor struct {
	began, sec int64
	part       int
	user       string
}

func (c onlineCursor) encode() string {
	b := binary.BigEndian.AppendUint64(nil, uint64(c.began))
	b = binary.BigEndian.AppendUint64(b, uint64(c.sec))
	b = binary.BigEndian.AppendUint16(b, uint16(c.part))
	return string(append(b, c.user...))
}

func decodeOnlineCursor(s string) onlineCursor {
	u := unpacker{s: s} // authenticated: its form is ours
	return onlineCursor{began: u.ms(), sec: u.ms(), part: int(u.num(2)), user: u.s}
}

// onlineHead has what was read of one partition's users.
type onlineHead struct {
	seen []rollcall.Seen
	last onlineCursor // the last user looked at; its second 0 at first
	done bool
}

// onlineWalk merges the users of all partitions, as list.go tells of sessions: newest second
// first, in one second by partition, then by the bytes of the id, descending.
type onlineWalk struct {
	e      *Engine
	now    int64
	script *script
	args   []string // window or retention, public
	heads  []onlineHead
	step   int
	total  int
	began  int64
}

// Online implements [rollcall.Presence].
func (e *Engine) Online(ctx context.Context, at time.Time, window time.Duration, r rollcall.PageRequest, v rollcall.Viewer) (rollcall.Page[rollcall.Seen], error) {
	return e.usersByLastSeen(ctx, at, &e.scripts.presenceOnline, window, r, v)
}

// KnownUsers implements [rollcall.Presence].
func (e *Engine) KnownUsers(ctx context.Context, at time.Time, r rollcall.PageRequest, v rollcall.Viewer) (rollcall.Page[rollcall.Seen], error) {
	return e.usersByLastSeen(ctx, at, &e.scripts.presenceWalk, e.settings.Retention, r, v)
}

// usersByLastSeen returns a page of users by last-seen time. span is the window or the
// retention, whichever the script takes.
func (e *Engine) usersByLastSeen(ctx context.Context, at time.Time, script *script, span time.Duration, r rollcall.PageRequest, v rollcall.Viewer) (rollcall.Page[rollcall.Seen], error) {
	// Where to begin, and how much to read of each partition: about what the page needs.
	var page rollcall.Page[rollcall.Seen]
	skip := max(0, r.Number-1) * r.Limit
	w := &onlineWalk{
		e: e, now: at.UnixMilli(), script: script, args: []string{seconds(span), flag(v == rollcall.ViewerPublic)},
		heads: make([]onlineHead, len(e.keyPrefixes)),
	}
	if r.Cursor != "" {
		w.resume(decodeOnlineCursor(r.Cursor))
		skip = 0
	}
	w.step = min(500, (skip+r.Limit+1)*2/len(e.keyPrefixes)+8)
	if r.Limit == 0 {
		w.step = 0
	}
	if err := w.fill(ctx, true); err != nil {
		return page, err
	}
	page.Total = w.total

	// Take users until the page is full, and look for one more: then there is a next page.
	var last onlineCursor
	for r.Limit > 0 {
		p, ok, err := w.next(ctx)
		if err != nil || !ok {
			return page, err
		}
		h := &w.heads[p]
		s := h.seen[0]
		h.seen = h.seen[1:]
		switch {
		case skip > 0:
			skip--
		case len(page.Items) == r.Limit:
			page.Next = last.encode()
			return page, nil
		default:
			page.Items = append(page.Items, s)
			last = onlineCursor{began: w.began, sec: s.LastSeen.Unix(), part: p, user: s.User}
		}
	}
	return page, nil
}

// resume sets every partition to where the walk of a cursor goes on.
func (w *onlineWalk) resume(c onlineCursor) {
	w.began = c.began
	for p := range w.heads {
		h := &w.heads[p]
		switch {
		case p < c.part: // this second of it has been returned
			h.last = onlineCursor{sec: c.sec - 1}
		case p == c.part:
			h.last = onlineCursor{sec: c.sec, user: c.user}
		default:
			h.last = onlineCursor{sec: c.sec}
		}
	}
}

// fill reads more from those partitions of which nothing is left, until each has some or has
// ended. The first time it reads from all, and counts.
func (w *onlineWalk) fill(ctx context.Context, first bool) error {
	for {
		var calls []call
		var parts []int
		for p := range w.heads {
			h := &w.heads[p]
			if h.done || len(h.seen) > 0 {
				continue
			}
			sec := ""
			if h.last.sec != 0 {
				sec = fmt.Sprint(h.last.sec)
			}
			calls = append(calls, partCall(p, w.script, append(w.args[:2:2], sec, h.last.user, fmt.Sprint(w.step))...))
			parts = append(parts, p)
		}
		if len(calls) == 0 || (w.step == 0 && !first) {
			return nil
		}
		messages, err := w.e.do(ctx, w.now, calls...)
		if err != nil {
			return err
		}
		for i, msg := range messages {
			if err := w.take(&w.heads[parts[i]], msg, first); err != nil {
				return err
			}
		}
		w.step, first = min(500, 2*w.step), false
	}
}

func (w *onlineWalk) take(h *onlineHead, msg rueidis.RedisMessage, first bool) error {
	reply, err := msg.ToArray()
	if err != nil || len(reply) < 4 {
		return damaged("a list of users")
	}
	if first {
		n, _ := reply[0].AsInt64()
		sec, _ := reply[1].AsInt64()
		w.total += int(n)
		w.began = max(w.began, sec)
	}
	for i := 4; i+1 < len(reply); i += 2 {
		user, err1 := reply[i].ToString()
		sec, err2 := reply[i+1].AsInt64()
		if err1 != nil || err2 != nil {
			return damaged("a list of users")
		}
		h.seen = append(h.seen, rollcall.Seen{User: user, LastSeen: enginekit.TimeOfSecond(sec)})
	}
	if h.last.user, _ = reply[3].ToString(); h.last.user == "" {
		h.done = true
		return nil
	}
	if h.last.sec, err = reply[2].AsInt64(); err != nil {
		return damaged("a list of users")
	}
	return nil
}

// next returns the partition that has the next user of all.
func (w *onlineWalk) next(ctx context.Context) (int, bool, error) {
	if err := w.fill(ctx, false); err != nil {
		return 0, false, err
	}
	best := -1
	for p := range w.heads {
		h := &w.heads[p]
		if len(h.seen) > 0 && (best < 0 || h.seen[0].LastSeen.After(w.heads[best].seen[0].LastSeen)) {
			best = p
		}
	}
	return best, best >= 0, nil
}
