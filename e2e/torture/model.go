package main

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// model is what is known of all users together, and of what belongs to no user.
type model struct {
	clocks  *clocks
	outages outages
	users   []*user

	mu         sync.Mutex
	erasures   map[string][]*erasure
	keys       map[string]*apiKey // by id
	askedKeys  []string           // names of keys that may have been made
	clears     []span             // when last-seen times were forgotten
	lastAnswer time.Time          // when a server answered last
	answeredAt span               // what time it was then
}

// user is a user, their model, and the command that was not answered, if there is one.
type user struct {
	id         string
	now        *userModel
	unanswered *unanswered
	recent     []string // the last commands and answers
	retry      *retry
}

// unanswered is a command that was not answered.
type unanswered struct {
	text     string
	from     time.Time
	suppose  func(p *userModel, at span) *userModel
	resolved func(done bool, at span) // nil for nothing to do
}

// apiKey is an API key, as far as it is known.
type apiKey struct {
	id, text, role string
	revoked        maybe
}

func newModel(c *clocks, users int) *model {
	w := &model{clocks: c, erasures: map[string][]*erasure{}, keys: map[string]*apiKey{}}
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
		w.users = append(w.users, &user{id: id, now: newUserModel(id)})
	}
	return w
}

func (w *model) find(id string) *user {
	for _, u := range w.users {
		if u.id == id {
			return u
		}
	}
	return nil
}

// noteAnswer notes that a server answered. A long silence may be an outage, as when the
// machine is busy.
func (w *model) noteAnswer() {
	now := w.clocks.now()
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.lastAnswer.IsZero() && time.Since(w.lastAnswer) > gap/2 {
		w.outages.add(outage{from: span{w.answeredAt.lo.Add(-gap), w.answeredAt.hi}, to: now})
	}
	w.lastAnswer, w.answeredAt = time.Now(), now
}

// remember remembers a command of a user.
func (u *user) remember(format string, args ...any) {
	u.recent = append(u.recent, time.Now().UTC().Format("15:04:05.000 ")+fmt.Sprintf(format, args...))
	if len(u.recent) > 40 {
		u.recent = u.recent[len(u.recent)-40:]
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
	for _, line := range d.user.recent {
		text += "\n  " + line
	}
	return text
}

func (d *difference) Unwrap() error { return d.what }

// crashed takes back what a crash may have lost: signs of life that came after an
// instant, as certain as that is.
func (w *model) crashed(safe time.Time) {
	for _, u := range w.users {
		u.now.crash(safe, u.unanswered != nil)
	}
}

// resolve reads a user and decides what became of a command that was not answered.
func (w *model) resolve(ctx context.Context, u *user, s caller) error {
	ideas := []*userModel{u.now}
	var during span
	if u.unanswered != nil {
		during = span{u.unanswered.from, w.clocks.now().hi}
		ideas = append(ideas, u.unanswered.suppose(u.now.clone(), during))
	}
	v, err := readView(ctx, s, u.id, ideas)
	if err != nil {
		return err
	}
	var fits []*userModel
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
		if u.unanswered == nil {
			return &difference{u, faults[0]}
		}
		return &difference{u, fmt.Errorf("after %s, which was not answered: if it was not carried out, %w; if it was, %w", u.unanswered.text, faults[0], faults[1])}
	case 1:
		u.now = fits[0]
	default:
		u.now = merge(fits[0], fits[1])
	}
	if u.unanswered != nil {
		if len(fits) == 1 && u.unanswered.resolved != nil {
			u.unanswered.resolved(done, during)
		}
		u.remember("resolved: %s (%d of 2 ideas fit)", u.unanswered.text, len(fits))
	}
	u.unanswered = nil
	return nil
}

// forgetUntoldEnds takes back ends that no server had told of when servers were away.
func (w *model) forgetUntoldEnds(since time.Time) {
	for _, u := range w.users {
		for _, s := range u.now.sessions {
			s.forgetUntoldEnd(since)
		}
	}
}

// moved says that the data was exported and imported: keys of logins to be
// repeated stay behind, and so do outages.
func (w *model) moved() {
	w.outages.makeUncertain()
	for _, u := range w.users {
		u.retry = nil
	}
}
