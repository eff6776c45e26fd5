package httpapi

import (
	"bytes"
	"context"
	"math/rand/v2"
	"net/http"
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
	*openStreams
	me     rollcall.Session
	out    *sse
	faults *faultLog

	reader  *fanout.Reader[liveChange]
	online  map[string]struct{} // who the client was told is there
	doubted map[string]struct{} // of them, those that the last look did not find
}

const (
	lookEvery = 20 * time.Second
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
	c := callerOf(r.Context())
	leave, err := s.streams.enter(friendStreams, c.streamOwner())
	if err != nil {
		s.fail(w, r, err)
		return
	}
	defer leave()
	release, err := s.streams.holdBoth(r.Context())
	if err != nil {
		s.fail(w, r, err)
		return
	}
	defer release()
	ctx, end := s.streams.lifeOf(r.Context(), c)
	defer end(nil)
	out, err := openSSE(w)
	defer out.close()
	defer context.AfterFunc(ctx, out.cut)()
	l := &liveFriends{openStreams: s.streams, me: c.session, out: out, faults: s.faults, online: make(map[string]struct{})}
	if err == nil {
		err = l.run(ctx)
	}
	s.streams.ended(ctx, friendStreams, err)
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

// run sends what happens until the stream ends, and returns why it does.
func (l *liveFriends) run(ctx context.Context) error {
	l.reader, _ = l.friends.Join(fanout.Want[liveChange]{
		Topics: []string{sessionTopic(l.me.ID), listTopic(l.me.User)}, Overrun: l.out.cut,
	})
	defer l.reader.Leave()
	first := l.look(ctx)
	switch {
	case first.err != nil:
		return first.err
	case first.end != nil:
		return l.sayEnd(first.end)
	}
	if err := l.out.write(l.snapshot(first.online)); err != nil {
		return err
	}

	err := l.follow(ctx)
	if l.reader.Behind() {
		return errBehind // which is why it could not be written to
	}
	return err
}

// follow sends what events and looks tell.
func (l *liveFriends) follow(ctx context.Context) error {
	beat, look := time.NewTimer(untilBeat()), time.NewTimer(l.untilLook())
	defer beat.Stop()
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-l.reader.Ready():
			if err := l.take(look); err != nil {
				return err
			}
		case <-look.C:
			if err := l.lookAgain(ctx); err != nil {
				return err
			}
			look.Reset(l.untilLook())
		case <-beat.C:
			if err := l.out.write(beatFrame); err != nil {
				return err
			}
			beat.Reset(untilBeat())
		}
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

// take sends what has come, and puts a look forward that cannot wait.
func (l *liveFriends) take(look *time.Timer) error {
	changes, _, cut := l.reader.Take()
	if cut {
		return errBehind
	}
	var text bytes.Buffer
	for _, c := range changes {
		user := c.Of.user
		switch _, there := l.online[user]; c.Of.kind {
		case liveOnline:
			if !there {
				l.online[user] = struct{}{}
				text.Write(c.Data)
			}
			delete(l.doubted, user)
		case liveOffline:
			if there {
				l.forget(user)
				text.Write(c.Data)
			}
		case liveEnded:
			if err := l.out.write(text.Bytes()); err != nil {
				return err
			}
			return l.sayEnd(c.Of.end)
		case liveLook:
			look.Reset(0)
		case liveDoubt:
			look.Reset(rand.N(looksSpread)) //nolint:gosec // spreads work, protects nothing
		}
	}
	if text.Len() == 0 {
		return nil
	}
	return l.out.write(text.Bytes())
}

func (l *liveFriends) forget(user string) {
	delete(l.online, user)
	delete(l.doubted, user)
}

// snapshot notes who is online, and is what the client is told of them.
func (l *liveFriends) snapshot(online []rollcall.FriendStatus) []byte {
	var text bytes.Buffer
	for {
		part := online[:min(len(online), snapshotPart)]
		online = online[len(part):]
		for _, f := range part {
			l.online[f.User] = struct{}{}
		}
		text.Write(frame("", "snapshot", snapshot{Items: each(part, friendOf), Complete: len(online) == 0}))
		if len(online) == 0 {
			return text.Bytes()
		}
	}
}

// lookAgain looks, and tells the client what events have not told.
func (l *liveFriends) lookAgain(ctx context.Context) error {
	found := l.look(ctx)
	switch {
	case found.err != nil:
		return ctx.Err() // the next look may do better
	case found.end != nil:
		return l.sayEnd(found.end)
	}
	text := l.compare(found)
	if text == nil {
		return nil
	}
	return l.out.write(text)
}

// compare returns what a look has found that the client was not told.
func (l *liveFriends) compare(found friendLook) []byte {
	var text bytes.Buffer
	say := func(name, user string, at time.Time) {
		text.Write(frame("", name, comeAndGone{User: user, At: instantOf(at)}))
	}
	there := make(map[string]bool, len(found.online))
	for _, f := range found.online {
		there[f.User] = true
		if _, told := l.online[f.User]; !told {
			l.online[f.User] = struct{}{}
			say("online", f.User, f.LastSeen)
		}
	}
	for _, user := range found.unfriended {
		if _, told := l.online[user]; told {
			l.forget(user)
			say("offline", user, found.at)
		}
	}
	before := l.doubted
	l.doubted = nil
	for user := range l.online {
		if there[user] {
			continue
		}
		if _, again := before[user]; again {
			l.forget(user)
			say("offline", user, found.at)
			continue
		}
		if l.doubted == nil {
			l.doubted = make(map[string]struct{})
		}
		l.doubted[user] = struct{}{}
	}
	return text.Bytes()
}

// sayEnd sends the last event.
func (l *liveFriends) sayEnd(end *rollcall.End) error {
	if err := l.out.write(frame("", string(rollcall.SessionEnded), sessionEnd{At: instantOf(end.At), Cause: end.Cause, Reason: end.Reason})); err != nil {
		return err
	}
	return errEnded
}
