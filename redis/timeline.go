package redis

import (
	"context"
	"encoding/binary"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/enginekit"
)

// Reading a timeline.
//
// There is no index by user: it would make each login and each change of presence dearer, and
// cost memory for each user, for a question that is asked rarely. A user's events stand
// in the two streams of their partition. A look reads both from the end back, and picks
// those of the user by the bytes that name them.
//
// A look reads up to maxTimelineLook events, of whomever. With the number of partitions and of
// events kept that are set unless said otherwise, that is all that a partition keeps. How far it
// goes does not depend on the user, so a reader cannot tell a user of whom
// all is hidden from one who never was.

const (
	maxTimelineLook = 32768 // events that one look reads
	timelineStep    = 512   // events of a stream that one command reads
)

// Timeline implements [rollcall.Timelines].
func (e *Engine) Timeline(ctx context.Context, q rollcall.TimelineQuery) (rollcall.TimelinePart, error) {
	if err := e.checkOpen(); err != nil {
		return rollcall.TimelinePart{}, err
	}
	look := timelineLook{Engine: e, q: &q, part: e.partOf(q.User), user: timelineUser(q.User)}
	cursor := int64(math.MaxInt64)
	if q.Cursor != "" {
		p, ok := e.parseEventID(rollcall.EventID(q.Cursor))
		if !ok || p.part != look.part {
			return rollcall.TimelinePart{}, rollcall.Invalid("cursor", "is of another store or another user")
		}
		cursor = p.at
	}

	// Settle first: no event may come into the log before one that was told.
	known, err := e.settledEnd(ctx, true)
	if err != nil || known.settled.at == 0 {
		return rollcall.TimelinePart{}, err
	}
	before := min(cursor, known.settled.startIn(look.part))
	if err := look.readErased(ctx); err != nil {
		return rollcall.TimelinePart{}, err
	}
	if err := look.read(ctx, before); err != nil {
		return rollcall.TimelinePart{}, err
	}
	return look.page(), nil
}

// timelineLook is one look for the events of a user.
type timelineLook struct {
	*Engine
	q      *rollcall.TimelineQuery
	part   int
	user   string // as an event has it
	floor  int64  // events up to this place are an erased user's
	found  []event
	oldest int64 // some stream was not looked at before this place; 0 if all were to their end
}

// timelineUser is how the packed form of an event names a user.
func timelineUser(user string) string { return string([]byte{byte(len(user))}) + user }

// userAt is where the user stands in the packed form of an event: behind type, audience and time.
const userAt = 1 + 1 + 8

// readErased finds out up to where events may name an erased user with the id.
func (l *timelineLook) readErased(ctx context.Context) error {
	msg, err := l.one(ctx, 0, plainCall(func() rueidis.Completed {
		return l.client.B().Get().Key(l.of(l.part, "erasure:"+l.q.User)).Build()
	}))
	if err != nil {
		return err
	}
	note, err := msg.ToString()
	switch {
	case rueidis.IsRedisNil(err):
		return nil
	case err != nil:
		return damaged("an erasure")
	case len(note) >= erasureNoteLen+8: // the user is removed
		l.floor = int64(binary.BigEndian.Uint64([]byte(note[erasureNoteLen:])))
	}
	return nil
}

// erasureNoteLen is the length of the note of an erasure whose user is still there; the place of the
// last event that may name them follows (redis/lua/lib/user_erasure.lua).
const erasureNoteLen = 32

// timelineStream is how far a look has come in one stream.
type timelineStream struct {
	key    string
	before int64
	want   int // events that the page still takes
}

// read goes through the streams side by side, from before a place back. Of each it takes one event more
// than the page holds: so it is known whether there are more.
func (l *timelineLook) read(ctx context.Context, before int64) error {
	var open []*timelineStream
	for _, family := range l.q.Families() {
		open = append(open, &timelineStream{key: l.of(l.part, streams[family]), before: before, want: l.q.Limit + 1})
	}
	for looked := 0; len(open) > 0 && looked < l.timelineBound; {
		step := min(timelineStep, max(1, (l.timelineBound-looked)/len(open)))
		calls := make([]call, len(open))
		for i, s := range open {
			calls[i] = plainCall(func() rueidis.Completed {
				return l.client.B().Xrevrange().Key(s.key).End(streamPlace(s.before - 1)).Start(streamPlace(max(l.floor+1, l.oldest))).Count(int64(step)).Build()
			})
		}
		messages, err := l.do(ctx, 0, calls...)
		if err != nil {
			return err
		}
		left := open[:0]
		for i, s := range open {
			n, end, err := l.take(s, messages[i], step)
			if err != nil {
				return err
			}
			looked += n
			switch {
			case end:
			case s.want <= 0:
				l.oldest = max(l.oldest, s.before)
			default:
				left = append(left, s)
			}
		}
		open = left
	}
	for _, s := range open {
		l.oldest = max(l.oldest, s.before)
	}
	return nil
}

func streamPlace(at int64) string { return strconv.FormatInt(at, 10) + "-0" }

// take picks the user's events from a step through a stream, of up to so many events. end says that
// there is nothing more to look for in it.
func (l *timelineLook) take(s *timelineStream, msg rueidis.RedisMessage, step int) (n int, end bool, err error) {
	entries, err := msg.AsXRange()
	if err != nil {
		return 0, false, damaged("the events")
	}
	for _, entry := range entries {
		at, err := strconv.ParseInt(strings.TrimSuffix(entry.ID, "-0"), 10, 64)
		blob := entry.FieldValues["e"]
		if err != nil || len(blob) < userAt {
			return 0, false, damaged("an event")
		}
		s.before = at
		if !strings.HasPrefix(blob[userAt:], l.user) || !enginekit.Audience(blob[1]).Shows(l.q.Viewer) {
			continue
		}
		ev, err := unpackEvent(blob, place{at, l.part})
		switch {
		case err != nil:
			return 0, false, err
		case ev.At.Before(l.q.Since):
			return len(entries), true, nil // and so are all older ones
		case l.q.Shows(&ev.Event):
			l.found = append(l.found, ev)
			if s.want--; s.want == 0 {
				return len(entries), false, nil
			}
		}
	}
	return len(entries), len(entries) < step, nil
}

// page merges the streams to a page.
func (l *timelineLook) page() rollcall.TimelinePart {
	slices.SortFunc(l.found, func(a, b event) int { return int(max(-1, min(1, b.place.at-a.place.at))) })
	var out rollcall.TimelinePart
	for _, ev := range l.found {
		if ev.place.at < l.oldest { // the other stream may have some between
			break
		}
		if len(out.Events) == l.q.Limit {
			out.Next = string(out.Events[l.q.Limit-1].ID)
			return out
		}
		ev.ID = l.eventID(ev.place)
		out.Events = append(out.Events, ev.Event)
	}
	if l.oldest > 0 {
		out.Next = string(l.eventID(place{l.oldest, l.part}))
	}
	return out
}

// SessionsByID implements [rollcall.Timelines].
func (e *Engine) SessionsByID(ctx context.Context, at time.Time, ids []rollcall.SessionID, v rollcall.Viewer) ([]rollcall.Session, error) {
	refs := make([]rollcall.Ref, len(ids))
	for i, id := range ids {
		refs[i] = rollcall.Ref{ID: id}
	}
	found := make([]*rollcall.Session, len(ids))
	err := e.eachRef(ctx, at, refs, &e.scripts.sessionLookup, []string{flag(v == rollcall.ViewerPublic), "0"}, func(i int, msg rueidis.RedisMessage) error {
		r, err := unpackFound(msg)
		switch {
		case rollcall.CodeOf(err) == rollcall.CodeNotFound:
			return nil
		case err == nil:
			found[i] = &r.Session
		}
		return err
	})
	out := make([]rollcall.Session, 0, len(ids))
	for _, s := range found {
		if s != nil {
			out = append(out, *s)
		}
	}
	return out, err
}
