package httpapi

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/rollcall/rollcall"
)

// Looks of streams at their friends. A look asks for the list of friends and for the
// presence of all on it. With thousands of streams most friends are on many lists, and
// most questions are small. So streams wait in a line, and a few workers look for many
// of them at once: the lists in one question, and each friend's presence once.
//
// What events tell does not wait for looks. So a look may be older than an event that
// the stream has been told of since: such friends are left as events said, see
// liveFriends.touched.

// How many streams are looked for together, and by how many workers.
const (
	looksAtOnce = 2
	lookStreams = 64
	lookFriends = 20_000 // of all of them; a stream that has more is looked for alone
	firstLook   = 300    // friends that a stream is taken to have before its first look
)

// lookLine is where streams wait for a look.
type lookLine struct {
	mu      sync.Mutex
	streams []*liveFriends // each at most once
	workers int
}

// friendLook is what one look at a user's friends has found.
type friendLook struct {
	at         time.Time
	online     []rollcall.FriendStatus
	unfriended []string      // no friends any more
	end        *rollcall.End // of the session, if it has ended
	err        error
}

// wantLook has the stream look at its friends as soon as it is its turn. If a look is
// under way, another one follows it.
func (l *liveFriends) wantLook() {
	l.mu.Lock()
	put := !l.wanted && !l.looking && !l.over
	l.wanted = true
	l.mu.Unlock()
	if put {
		l.putForLook(l)
	}
}

func (s *openStreams) putForLook(l *liveFriends) {
	line := &s.looks
	line.mu.Lock()
	line.streams = append(line.streams, l)
	hire := line.workers < looksAtOnce
	if hire {
		line.workers++
	}
	line.mu.Unlock()
	if hire {
		go s.lookForAll()
	}
}

// lookForAll looks until no stream waits.
func (s *openStreams) lookForAll() {
	for batch := s.looks.next(); len(batch) > 0; batch = s.looks.next() {
		s.lookFor(batch)
	}
}

// next takes the streams that wait for longest; none ends the worker.
func (line *lookLine) next() []*liveFriends {
	line.mu.Lock()
	defer line.mu.Unlock()
	n, friends := 0, 0
	for n < min(len(line.streams), lookStreams) {
		if friends += line.streams[n].size; n > 0 && friends > lookFriends {
			break
		}
		n++
	}
	if n == 0 {
		line.streams = nil // a burst leaves no room behind
		line.workers--
		return nil
	}
	batch := slices.Clone(line.streams[:n])
	clear(line.streams[:n])
	line.streams = line.streams[n:]
	return batch
}

// lookFor looks for some streams, and gives each what was found.
func (s *openStreams) lookFor(batch []*liveFriends) {
	found := make([]friendLook, len(batch))
	defer func() {
		if v := recover(); v != nil {
			s.faults.panicked(s.ending, v, debug.Stack())
			for i := range found {
				found[i] = friendLook{err: fmt.Errorf("panic: %v", v)}
			}
		}
		for i, l := range batch {
			l.looked(found[i])
		}
	}()
	for _, l := range batch {
		l.beginLook()
	}
	s.checkSessions(s.ending, batch, found)
	s.readFriends(s.ending, batch, found)
}

// beginLook says that what is read from now on is the look.
func (l *liveFriends) beginLook() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wanted, l.looking = false, true
}

// looked gives the stream what was found.
func (l *liveFriends) looked(found friendLook) {
	l.mu.Lock()
	l.looking, l.found = false, &found
	again := l.wanted && !l.over
	l.mu.Unlock()
	if again {
		l.putForLook(l)
	}
	l.wake()
}

// checkSessions finds the sessions that have ended: this server was not told of all,
// as when the user was erased.
func (s *openStreams) checkSessions(ctx context.Context, batch []*liveFriends, found []friendLook) {
	var all sync.WaitGroup
	for i, l := range batch {
		all.Go(func() {
			found[i] = friendLook{err: errPanicked} // unless it is told better
			defer func() {
				if v := recover(); v != nil {
					s.faults.panicked(ctx, v, debug.Stack())
				}
			}()
			found[i].end, found[i].err = l.endOf(ctx)
		})
	}
	all.Wait()
}

// readFriends reads the friends of the streams whose sessions live, and makes the
// streams follow them.
func (s *openStreams) readFriends(ctx context.Context, batch []*liveFriends, found []friendLook) {
	var living, grown []int
	for i := range batch {
		if found[i].err == nil && found[i].end == nil {
			living = append(living, i)
		}
	}
	s.readLists(ctx, batch, found, living, func(i int, friends []rollcall.FriendStatus) {
		l := batch[i]
		names := make(map[string]struct{}, len(friends))
		for _, f := range friends {
			names[f.User] = struct{}{}
		}
		var added int
		added, found[i].unfriended = l.reader.Follow(names, func(topic string) bool { return !isFriendTopic(topic) })
		if added > 0 {
			grown = append(grown, i)
		}
	})
	// Who came or went before they were followed was not told: look once more.
	s.readLists(ctx, batch, found, grown, func(int, []rollcall.FriendStatus) {})
}

// readLists reads the lists of some of the streams, and notes who is online.
func (s *openStreams) readLists(ctx context.Context, batch []*liveFriends, found []friendLook, which []int, use func(i int, friends []rollcall.FriendStatus)) {
	if len(which) == 0 {
		return
	}
	users := make([]string, len(which))
	for k, i := range which {
		users[k] = batch[i].user
	}
	lists, err := s.public.roll.FriendsOfMany(ctx, users...)
	for k, i := range which {
		if err != nil {
			found[i].err = err
			continue
		}
		found[i].at, found[i].online = s.public.roll.Now(), nil
		batch[i].size = len(lists[k])
		for _, f := range lists[k] {
			if f.Online {
				found[i].online = append(found[i].online, f)
			}
		}
		use(i, lists[k])
	}
}

// endOf returns how the session ended; nil if it lives.
func (l *liveFriends) endOf(ctx context.Context) (*rollcall.End, error) {
	_, err := l.truth.roll.Verify(ctx, rollcall.SessionRef{ID: l.session})
	var e *rollcall.Error
	switch {
	case err == nil:
		return nil, nil //nolint:nilnil // no end is not an error
	case !errors.As(err, &e):
		return nil, err
	case e.Code == rollcall.CodeSessionEnded:
		return &rollcall.End{Cause: e.Cause, Reason: e.Reason}, nil
	case e.Code == rollcall.CodeUnauthenticated || e.Code == rollcall.CodeNotFound:
		return &rollcall.End{Cause: rollcall.CauseErased}, nil
	}
	return nil, err
}
