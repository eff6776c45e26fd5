package httpapi

import (
	"bytes"
	"context"
	"math/rand/v2"
	"net/http"
	"slices"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/fanout"
)

// liveFriends is one stream of a user's friends who come and go.
//
// It follows the events of its friends. It also looks at the list of friends and
// their presence now and then, at once when the list is changed through this
// server: there are no events of friendships. A look that finds a friend offline
// who was told to be online is not believed before the next one finds the same: who
// logs out is back within seconds as a rule, and then no event is made. So a stream
// always comes to tell what GET /v1/me/friends/online tells.
type liveFriends struct {
	*stream
	user     string
	session  rollcall.SessionID
	reader   *fanout.Reader[liveChange]
	nextLook *time.Timer // wants a look
	size     int         // how many friends the last look found; of the worker that looks

	// Under the lock of the stream.
	wanted  bool        // a look is wanted that has not begun
	looking bool        // one is under way
	found   *friendLook // by the last look; nil if it was told

	// Of whoever has the turn.
	shown   bool // the snapshot was told
	ended   bool // the end of the session was told: the last event
	waiting []*fanout.Message[liveChange]
	online  nameSet             // who the client was told is there
	doubted map[string]struct{} // of them, those that the last look did not find
	touched map[string]struct{} // who came or went since the look began that is under way
}

const (
	lookEvery = 40 * time.Second
	// doubtedLook is how soon a look follows one that was not believed: longer than
	// the usual leave grace.
	doubtedLook = 12 * time.Second
	// looksSpread is the time in which all streams look when events are missing.
	looksSpread = 5 * time.Second
	// snapshotPart is how many friends one event of a snapshot holds.
	snapshotPart = 500
)

// comeAndGone is the data of a friend who comes or goes.
type comeAndGone struct {
	User string  `json:"user"`
	At   instant `json:"at" doc:"when it happened"`
}

// snapshot is the data of the first events: the friends who are online.
type snapshot struct {
	Items    []friend `json:"items" nullable:"false"`
	Complete bool     `json:"complete" doc:"false if more of the snapshot follows"`
}

// sessionEnd is the data of the last event.
type sessionEnd struct {
	At     instant        `json:"at,omitempty"`
	Cause  rollcall.Cause `json:"cause"`
	Reason string         `json:"reason,omitempty"`
}

func (s *Server) registerLiveFriends() {
	live := op("GET /v1/me/friends/events", "my-friends-events", "End user", "My friends who come and go, as it happens")
	live.Description = "A stream of server-sent events. snapshot says which friends are online, in several parts if they are many; then online and offline tell of each that comes or goes. " +
		"It tells what GET /v1/me/friends/online tells, within seconds when a friend comes or goes and within a minute when friendships change. " +
		"session.ended is the last event of a session that has ended, with its cause. The stream has no ids: one that begins anew begins with a snapshot."
	example := frame("", "online", comeAndGone{User: "alice", At: "2026-02-03T04:05:06.789Z"})
	live.Responses = map[string]*huma.Response{"200": {
		Description: "A stream without end",
		Content:     map[string]*huma.MediaType{streamType: {Schema: &huma.Schema{Type: huma.TypeString}, Example: string(example)}},
	}}
	s.registerPlain(live, s.streamFriends)
}

// streamFriends answers with a stream of the caller's friends.
func (s *Server) streamFriends(w http.ResponseWriter, r *http.Request) {
	if answeredHead(w, r) {
		return
	}
	c := callerOf(r.Context())
	leave, err := s.streams.enter(friendStreams, c.streamOwner())
	if err != nil {
		s.fail(w, r, err)
		return
	}
	release, err := s.streams.holdBoth(r.Context())
	if err != nil {
		leave()
		s.fail(w, r, err)
		return
	}
	l := &liveFriends{user: c.session.User, session: c.session.ID, size: firstLook}
	l.stream = s.newStream(friendStreams, l, release, leave)
	l.answer(w, r)
	defer l.recovered()
	l.stream.begun(r.Context(), l.begin())
}

// holdBoth makes both feeds run: one tells who comes and goes, the other of the ends
// of sessions, also of users who are invisible.
func (s *openStreams) holdBoth(ctx context.Context) (release func(), err error) {
	if err := s.public.hold(ctx); err != nil {
		return nil, err
	}
	if err := s.truth.hold(ctx); err != nil {
		s.public.release()
		return nil, err
	}
	return func() {
		s.truth.release()
		s.public.release()
	}, nil
}

// begin joins those who are told, and wants the first look: what it finds is the
// snapshot.
func (l *liveFriends) begin() error {
	l.reader, _ = l.openStreams.friends.Join(fanout.Want[liveChange]{
		Topics:  []string{sessionTopic(l.session), listTopic(l.user)},
		Overrun: func() { l.end(errBehind) }, Wake: l.wake,
	})
	l.nextLook = time.AfterFunc(time.Hour, l.wantLook)
	l.wantLook()
	return l.out.say(greeting())
}

// leave implements teller.
func (l *liveFriends) leave() {
	if l.reader != nil {
		l.nextLook.Stop()
		l.reader.Leave()
	}
}

// untilLook is the time to the next look: for each stream another.
func (l *liveFriends) untilLook() time.Duration {
	every := l.lookEvery
	if len(l.doubted) > 0 {
		every = min(every, doubtedLook)
	}
	return every*3/4 + rand.N(every/2) //nolint:gosec // spreads work, protects nothing
}

// tell implements teller: it sends what events and looks tell.
func (l *liveFriends) tell(beat bool) error {
	for said := true; said; {
		if l.ended {
			return errEnded
		}
		var err error
		if said, err = l.tellSome(); err != nil {
			return err
		}
	}
	if beat {
		return l.out.sendText(beatFrame)
	}
	return nil
}

// tellSome sends some of what waits; false if nothing did. The snapshot comes first,
// and events before what a look has found: those that wait behind it are newer.
func (l *liveFriends) tellSome() (bool, error) {
	if l.shown {
		if err := l.take(); err != nil {
			return false, err
		}
		if len(l.waiting) > 0 {
			return true, l.tellChanges()
		}
		l.waiting = nil
	}
	found := l.takeFound()
	switch {
	case found == nil:
		return false, nil
	case found.end != nil:
		return true, l.sayEnd(nil, found.end)
	case found.err != nil && !l.shown:
		return false, found.err
	}
	var text []byte
	switch {
	case found.err != nil: // the next look may do better
	case l.shown:
		text = l.compare(found)
	default:
		text, l.shown = l.snapshot(found.online), true
	}
	l.touched = nil
	l.nextLook.Reset(l.untilLook())
	return true, l.out.sendText(text)
}

// take takes what has come, unless something waits still.
func (l *liveFriends) take() error {
	if len(l.waiting) > 0 {
		return nil
	}
	changes, _, cut := l.reader.Take()
	if cut {
		return errBehind
	}
	l.waiting = changes
	if len(changes) == 0 {
		return nil
	}
	// What is under way may have been read before these.
	l.mu.Lock()
	stale := l.looking || l.found != nil
	l.mu.Unlock()
	for _, c := range changes {
		if stale && c.Of.user != "" {
			if l.touched == nil {
				l.touched = make(map[string]struct{})
			}
			l.touched[c.Of.user] = struct{}{}
		}
	}
	return nil
}

// takeFound takes what a look has found; nil for nothing.
func (l *liveFriends) takeFound() *friendLook {
	l.mu.Lock()
	defer l.mu.Unlock()
	found := l.found
	l.found = nil
	return found
}

// tellChanges sends changes that wait.
func (l *liveFriends) tellChanges() error {
	text := l.out.piece()
	for len(l.waiting) > 0 && text.len() < pieceLen {
		c := l.waiting[0]
		l.waiting = l.waiting[1:]
		user := c.Of.user
		switch c.Of.kind {
		case liveOnline:
			if l.online.add(user) {
				text.add(c.Data)
			}
			delete(l.doubted, user)
		case liveOffline:
			if l.forget(user) {
				text.add(c.Data)
			}
		case liveEnded:
			return l.sayEnd(text, c.Of.end)
		case liveLook:
			l.wantLook()
		case liveDoubt:
			l.nextLook.Reset(rand.N(looksSpread)) //nolint:gosec // spreads work, protects nothing
		}
	}
	return l.out.send(text)
}

// forget notes that a friend is not there, and reports whether the client was told that
// they were.
func (l *liveFriends) forget(user string) bool {
	delete(l.doubted, user)
	return l.online.remove(user)
}

// snapshot notes who is online, and is what the client is told of them.
func (l *liveFriends) snapshot(online []rollcall.FriendStatus) []byte {
	var text bytes.Buffer
	names := make([]string, len(online))
	for i, f := range online {
		names[i] = f.User
	}
	l.online = l.openStreams.friends.Names(names)
	slices.Sort(l.online)
	for {
		part := online[:min(len(online), snapshotPart)]
		online = online[len(part):]
		text.Write(frame("", "snapshot", snapshot{Items: each(part, friendOf), Complete: len(online) == 0}))
		if len(online) == 0 {
			return text.Bytes()
		}
	}
}

// compare returns what a look has found that the client was not told.
func (l *liveFriends) compare(found *friendLook) []byte {
	var text bytes.Buffer
	say := func(name, user string, at time.Time) {
		text.Write(frame("", name, comeAndGone{User: user, At: instantOf(at)}))
	}
	there := make(map[string]bool, len(found.online))
	for _, f := range found.online {
		there[f.User] = true
		if _, newer := l.touched[f.User]; !newer && l.online.add(f.User) {
			say("online", f.User, f.LastSeen)
		}
	}
	for _, user := range found.unfriended {
		if l.forget(user) {
			say("offline", user, found.at)
		}
	}
	before := l.doubted
	l.doubted = nil
	l.online = slices.DeleteFunc(l.online, func(user string) bool {
		if _, newer := l.touched[user]; there[user] || newer {
			return false
		}
		if _, again := before[user]; again {
			say("offline", user, found.at)
			return true
		}
		if l.doubted == nil {
			l.doubted = make(map[string]struct{})
		}
		l.doubted[user] = struct{}{}
		return false
	})
	return text.Bytes()
}

// sayEnd sends the last event, behind text that is put together; nil for none.
func (l *liveFriends) sayEnd(text *piece, end *rollcall.End) error {
	if text == nil {
		text = l.out.piece()
	}
	text.add(frame("", string(rollcall.SessionEnded), sessionEnd{At: instantOf(end.At), Cause: end.Cause, Reason: end.Reason}))
	l.ended = true
	return l.out.send(text)
}
