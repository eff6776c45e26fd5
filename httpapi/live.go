package httpapi

import (
	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/fanout"
)

// liveChange is what a stream of live friends is told of.
type liveChange struct {
	kind liveKind
	user string        // who came or went
	end  *rollcall.End // of the stream's own session
}

type liveKind uint8

const (
	liveOnline  liveKind = iota // a friend came
	liveOffline                 // a friend went
	liveEnded                   // the session has ended
	liveLook                    // the friends may be others: look now
	liveDoubt                   // events are missing: look soon
)

// Topics of live friends. A friend's is the id; the others begin with a control
// character, which no id has.
func sessionTopic(id rollcall.SessionID) string { return "\x00" + string(id[:]) }
func listTopic(user string) string              { return "\x01" + user }

func isFriendTopic(topic string) bool { return topic != "" && topic[0] > '\x01' }

// tellPresence tells those who follow a friend that the friend came or went. Its
// events are those that the public is told, so it knows of nobody who is invisible.
func (s *openStreams) tellPresence(events []rollcall.Event) {
	for i := range events {
		e := &events[i]
		kind, name := liveOnline, "online"
		switch e.Type {
		case rollcall.UserOnline:
		case rollcall.UserOffline:
			kind, name = liveOffline, "offline"
		default:
			continue
		}
		if e.User != "" && s.friends.Followed(e.User) {
			s.tell(e.User, frame("", name, comeAndGone{User: e.User, At: instantOf(e.At)}), liveChange{kind: kind, user: e.User})
		}
	}
}

// tellEnds tells streams that their session has ended.
func (s *openStreams) tellEnds(events []rollcall.Event) {
	for i := range events {
		e := &events[i]
		if topic := sessionTopic(e.Session); e.Type == rollcall.SessionEnded && s.friends.Followed(topic) {
			s.tell(topic, nil, liveChange{kind: liveEnded, end: &rollcall.End{At: e.At, Cause: e.Cause, Reason: e.Reason}})
		}
	}
}

// friendsChanged has the streams of users look at their friends: this server was
// asked to change them.
func (s *openStreams) friendsChanged(users ...string) {
	for _, user := range users {
		if topic := listTopic(user); s.friends.Followed(topic) {
			s.tell(topic, nil, liveChange{kind: liveLook})
		}
	}
}

// doubtFriends has all streams look soon, as events are missing.
func (s *openStreams) doubtFriends() {
	s.friends.Broadcast("", &fanout.Message[liveChange]{Of: liveChange{kind: liveDoubt}})
}

func (s *openStreams) tell(topic string, data []byte, c liveChange) {
	s.friends.Publish("", &fanout.Message[liveChange]{Topic: topic, Data: data, Of: c})
}
