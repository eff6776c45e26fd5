package httpapi

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/rollcall/rollcall"
)

// friendLook is what one look at a user's friends has found.
type friendLook struct {
	at         time.Time
	online     []rollcall.FriendStatus
	unfriended []string      // no friends any more
	end        *rollcall.End // of the session, if it has ended
	err        error
}

// look looks at the friends, in its turn, and makes the stream follow them. It runs
// in a goroutine of its own, whose stack goes with it: that of the stream, which
// lives for hours, stays small.
func (l *liveFriends) look(ctx context.Context) friendLook {
	found := make(chan friendLook, 1)
	go func() {
		var f friendLook
		defer func() {
			if v := recover(); v != nil {
				l.faults.panicked(ctx, v, debug.Stack())
				f = friendLook{err: fmt.Errorf("panic: %v", v)}
			}
			found <- f
		}()
		f = l.lookNow(ctx)
	}()
	return <-found
}

func (l *liveFriends) lookNow(ctx context.Context) friendLook {
	select {
	case l.looks <- struct{}{}:
	case <-ctx.Done():
		return friendLook{err: ctx.Err()}
	}
	defer func() { <-l.looks }()

	// A session whose end this server was not told of, as when the user was erased.
	if end, err := l.endOf(ctx); err != nil || end != nil {
		return friendLook{end: end, err: err}
	}
	names, online, err := l.list(ctx)
	if err != nil {
		return friendLook{err: err}
	}
	added, unfriended := l.reader.Follow(names, func(topic string) bool { return !isFriendTopic(topic) })
	if added > 0 {
		// Who came or went before they were followed was not told: look once more.
		if _, online, err = l.list(ctx); err != nil {
			return friendLook{err: err}
		}
	}
	return friendLook{at: l.public.roll.Now(), online: online, unfriended: unfriended}
}

// endOf returns how the session ended; nil if it lives.
func (l *liveFriends) endOf(ctx context.Context) (*rollcall.End, error) {
	_, err := l.truth.roll.Verify(ctx, rollcall.SessionRef{ID: l.me.ID})
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

// list returns the names of all friends, and those who are online.
func (l *liveFriends) list(ctx context.Context) (names map[string]struct{}, online []rollcall.FriendStatus, err error) {
	names = make(map[string]struct{})
	for cursor := ""; ; {
		page, err := l.public.roll.Friends(ctx, l.me.User, rollcall.PageRequest{Limit: rollcall.MaxLimit, Cursor: cursor})
		if err != nil {
			return nil, nil, err
		}
		for _, f := range page.Items {
			names[f.User] = struct{}{}
			if f.Online {
				online = append(online, f)
			}
		}
		if cursor = page.Next; cursor == "" {
			return names, online, nil
		}
	}
}
