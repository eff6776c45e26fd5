package main

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// world is what is known of all users, and of what is not of one user.
type world struct {
	clocks  *clocks
	outages outages
	users   []*user

	mu       sync.Mutex
	erasures map[string][]*erasure
	keys     map[string]*apiKey // by id
	asked    []string           // names of keys that may have been made
	clears   []span             // when last-seen times were forgotten
	last     time.Time          // when a server answered last
	wasThere span               // what time it was then
}

// user is a user, and what a command that was not answered may have made of them.
type user struct {
	id    string
	now   *person
	doubt *doubt
	past  []string // the last commands and answers
	retry *retry
}

// doubt is a command that was not answered.
type doubt struct {
	text    string
	from    time.Time
	suppose func(p *person, at span) *person
	settled func(done bool, at span) // nil for nothing to do
}

// apiKey is an API key, as far as it is known.
type apiKey struct {
	id, text, role string
	revoked        maybe
}

func newWorld(c *clocks, users int) *world {
	w := &world{clocks: c, erasures: map[string][]*erasure{}, keys: map[string]*apiKey{}}
	for i := range users {
		id := fmt.Sprintf("user-%d", i)
		switch i % 6 {
		case 1:
			id = fmt.Sprint(1000 + i)
		case 2:
			id = fmt.Sprintf("00%d", i)
		case 3:
			id = fmt.Sprintf("ü:%d{x}*", i)
		}
		w.users = append(w.users, &user{id: id, now: newPerson(id)})
	}
	return w
}

func (w *world) find(id string) *user {
	for _, u := range w.users {
		if u.id == id {
			return u
		}
	}
	return nil
}

// heard notes that a server answered. A long silence may be an outage, as when the
// machine is busy.
func (w *world) heard() {
	now := w.clocks.now()
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.last.IsZero() && time.Since(w.last) > gap/2 {
		w.outages.add(outage{from: span{w.wasThere.lo.Add(-gap), w.wasThere.hi}, to: now})
	}
	w.last, w.wasThere = time.Now(), now
}

// note remembers a command of a user.
func (u *user) note(format string, args ...any) {
	u.past = append(u.past, time.Now().UTC().Format("15:04:05.000 ")+fmt.Sprintf(format, args...))
	if len(u.past) > 40 {
		u.past = u.past[len(u.past)-40:]
	}
}

// difference is what the run looks for.
type difference struct {
	user *user
	what error
}

func (d *difference) Error() string {
	if d.user == nil {
		return d.what.Error()
	}
	text := fmt.Sprintf("user %q: %v\nits last commands:", d.user.id, d.what)
	for _, line := range d.user.past {
		text += "\n  " + line
	}
	return text
}

func (d *difference) Unwrap() error { return d.what }

// crashed takes back what a crash may have lost: signs of life that came after an
// instant, as certain as that is.
func (w *world) crashed(safe time.Time) {
	for _, u := range w.users {
		u.now.crash(safe, u.doubt != nil)
	}
}

// settle reads a user and decides what became of a command that was not answered.
func (w *world) settle(ctx context.Context, u *user, s caller) error {
	ideas := []*person{u.now}
	var during span
	if u.doubt != nil {
		during = span{u.doubt.from, w.clocks.now().hi}
		ideas = append(ideas, u.doubt.suppose(u.now.clone(), during))
	}
	v, err := look(ctx, s, u.id, ideas)
	if err != nil {
		return err
	}
	var fits []*person
	var faults []error
	done := false // whether the last idea that fits is that it was carried out
	for i, p := range ideas {
		next, err := p.compare(v, w)
		if err != nil {
			faults = append(faults, err)
			continue
		}
		fits, done = append(fits, next), i == 1
	}
	switch len(fits) {
	case 0:
		if u.doubt == nil {
			return &difference{u, faults[0]}
		}
		return &difference{u, fmt.Errorf("after %s, which was not answered: if it was not carried out, %w; if it was, %w", u.doubt.text, faults[0], faults[1])}
	case 1:
		u.now = fits[0]
	default:
		u.now = blend(fits[0], fits[1])
	}
	if u.doubt != nil {
		if len(fits) == 1 && u.doubt.settled != nil {
			u.doubt.settled(done, during)
		}
		u.note("settled: %s (%d of 2 ideas fit)", u.doubt.text, len(fits))
	}
	u.doubt = nil
	return nil
}

// away takes back ends that nobody was told of before servers were away.
func (w *world) away(since time.Time) {
	for _, u := range w.users {
		for _, s := range u.now.sessions {
			s.untold(since)
		}
	}
}

// moved says that the data was exported and imported: keys of logins to be
// repeated stay behind, and so do outages.
func (w *world) moved() {
	w.outages.doubt()
	for _, u := range w.users {
		u.retry = nil
	}
}
