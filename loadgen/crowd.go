package loadgen

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/rollcall/rollcall"
)

// userPrefix begins the ids of all users; a number follows.
const userPrefix = "rollcall-bench-"

// userID returns the id of a user by number.
func userID(i int) string { return userPrefix + strconv.Itoa(i) }

// IsUser reports whether an id is that of a user made by this package:
// "rollcall-bench-" and a number.
func IsUser(id string) bool {
	number, ok := strings.CutPrefix(id, userPrefix)
	n, err := strconv.Atoi(number)
	return ok && err == nil && n >= 0 && userID(n) == id
}

// login is the login of a user. The same device again replaces the session, so that
// each user has one at most.
func login(i int) rollcall.Login {
	return rollcall.Login{User: userID(i), App: "bench", Device: "bench", DeviceID: "bench"}
}

// crowd is the users who are there before the load begins.
type crowd struct {
	ids    []string // of the first users, as it takes time to make one
	tokens []string // of the users who are logged in, by their number
}

// idsKept bounds the ids of a crowd that are made only once.
const idsKept = 1 << 20

func newCrowd(o *Options) *crowd {
	c := &crowd{ids: make([]string, min(o.Users, idsKept))}
	for i := range c.ids {
		c.ids[i] = userID(i)
	}
	return c
}

// id returns the id of a user by number.
func (c *crowd) id(i int) string {
	if i < len(c.ids) {
		return c.ids[i]
	}
	return userID(i)
}

// makeCrowd has all users seen, and logs in and befriends those that the mix needs.
func makeCrowd(ctx context.Context, t *Target, o *Options, done func(share float64)) (*crowd, error) {
	c, s := newCrowd(o), t.setup()
	const chunk = 1000
	steps := []func() error{func() error {
		return inParallel(ctx, o.Connections, (o.Users+chunk-1)/chunk, func(ctx context.Context, i int) error {
			users := make([]string, 0, chunk)
			for u := i * chunk; u < min((i+1)*chunk, o.Users); u++ {
				users = append(users, userID(u))
			}
			return s.Beat(ctx, users...)
		})
	}}
	if o.Mix.has(Touches, Logins, Verify, Lists) {
		c.tokens = make([]string, o.Sessions)
		steps = append(steps, func() error {
			return inParallel(ctx, o.Connections, o.Sessions, func(ctx context.Context, i int) error {
				in, err := s.Login(ctx, login(i))
				c.tokens[i] = in.Token
				return err
			})
		})
	}
	if o.Mix.has(Friends) {
		steps = append(steps, func() error {
			return inParallel(ctx, o.Connections, min(o.Users, friendLists), func(ctx context.Context, i int) error {
				var friends []rollcall.Friend
				for k := 1; k <= min(friendsEach, o.Users-1); k++ {
					friends = append(friends, rollcall.Friend{User: userID((i + k) % o.Users)})
				}
				return s.ReplaceFriends(ctx, userID(i), friends)
			})
		})
	}
	for i, step := range steps {
		done(float64(i) / float64(len(steps)))
		if err := step(); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// inParallel calls work for 0 to n-1, so many at a time, until one fails.
func inParallel(ctx context.Context, width, n int, work func(ctx context.Context, i int) error) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var all sync.WaitGroup
	var taken atomic.Int64
	for range min(width, n) {
		all.Go(func() {
			for {
				i := int(taken.Add(1)) - 1
				if i >= n || ctx.Err() != nil {
					return
				}
				if err := work(ctx, i); err != nil {
					stop(err)
					return
				}
			}
		})
	}
	all.Wait()
	return context.Cause(ctx)
}

// erased reports whether a user is gone: an erasure that finds nobody has nothing to do.
func erased(err error) bool {
	return err == nil || rollcall.CodeOf(err) == rollcall.CodeNotFound
}

// cleaners is how many users are erased at a time.
const cleaners = 32

// Count returns how many users of this package a service knows, and how many users
// in all. It goes through all users that have a last-seen time.
func Count(ctx context.Context, s Service) (ours, all int, err error) {
	err = eachPage(ctx, s, func(users []string, _ int) error {
		ours += len(users)
		return nil
	}, func(total int) { all = total })
	return ours, all, err
}

// errOthers ends a search for users that are not of this package.
var errOthers = errors.New("there are others")

// HasOthers reports whether a service knows users that are not of this package. It
// goes through the users that have a last-seen time up to the first such one.
func HasOthers(ctx context.Context, s Service) (bool, error) {
	err := eachPage(ctx, s, func(_ []string, others int) error {
		if others > 0 {
			return errOthers
		}
		return nil
	}, func(int) {})
	if errors.Is(err, errOthers) {
		return true, nil
	}
	return false, err
}

// Clean erases the users of this package that have a last-seen time, and calls done
// now and then with how many it has erased.
func Clean(ctx context.Context, s Service, done func(erased int)) (int, error) {
	var n atomic.Int64
	err := eachPage(ctx, s, func(users []string, _ int) error {
		err := inParallel(ctx, cleaners, len(users), func(ctx context.Context, i int) error {
			err := s.Erase(ctx, users[i])
			if !erased(err) {
				return err
			}
			n.Add(1)
			return nil
		})
		if done != nil {
			done(int(n.Load()))
		}
		return err
	}, func(int) {})
	return int(n.Load()), err
}

// eachPage goes through the users that have a last-seen time, and visits those of
// this package; it tells how many others each page has.
func eachPage(ctx context.Context, s Service, visit func(ours []string, others int) error, total func(int)) error {
	for cursor, first := "", true; first || cursor != ""; first = false {
		page, err := s.KnownUsers(ctx, rollcall.PageRequest{Limit: rollcall.MaxLimit, Cursor: cursor})
		if err != nil {
			return err
		}
		if first {
			total(page.Total)
		}
		var users []string
		for _, seen := range page.Items {
			if IsUser(seen.User) {
				users = append(users, seen.User)
			}
		}
		if err := visit(users, len(page.Items)-len(users)); err != nil {
			return err
		}
		if page.Next != "" && page.Next == cursor {
			return errors.New("a cursor repeats itself")
		}
		cursor = page.Next
	}
	return nil
}
