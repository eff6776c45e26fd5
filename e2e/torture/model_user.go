package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/rollcall/rollcall"
)

// userModel is what must be true of one user.
type userModel struct {
	id         string
	sessions   map[string]*session // all that ever were since the last erasure, by id
	unanswered *session            // of a login that was not answered: it may have started
	presence   presence

	kind, name string
	invisible  bool
	ban        *ban
	friends    map[string]*edge
	days       days
}

func newUserModel(id string) *userModel {
	return &userModel{id: id, sessions: map[string]*session{}, kind: rollcall.DefaultKind, friends: map[string]*edge{}, days: days{}}
}

func (p *userModel) clone() *userModel {
	c := *p
	c.sessions = make(map[string]*session, len(p.sessions))
	for id, s := range p.sessions {
		c.sessions[id] = s.clone()
	}
	if p.unanswered != nil {
		c.unanswered = p.unanswered.clone()
	}
	if p.ban != nil {
		b := *p.ban
		c.ban = &b
	}
	c.friends = make(map[string]*edge, len(p.friends))
	for f, e := range p.friends {
		x := *e
		c.friends[f] = &x
	}
	c.days, c.presence = p.days.clone(), p.presence.clone()
	return &c
}

// age ends what has certainly ended by itself.
func (p *userModel) age(now span, o *outages) {
	for _, s := range p.sessions {
		s.age(now, o)
	}
	if p.ban != nil && !now.lo.Before(p.ban.until.hi) {
		p.ban = nil
	}
}

// live returns the sessions that have not certainly ended, in the order of logins.
func (p *userModel) live() []*session {
	var out []*session
	for _, s := range p.sessions {
		if s.end == nil {
			out = append(out, s)
		}
	}
	slices.SortFunc(out, byID)
	return out
}

// crash takes back what a crash may have lost. A session that certainly lives was
// not lost, and so its login still is a sign of life.
func (p *userModel) crash(safe time.Time, doubtful bool) {
	p.presence.crash(safe)
	for _, s := range p.sessions {
		s.crash(safe)
		if s.end == nil && !s.mayHaveExpired && !s.mayHaveEnded && !doubtful && s.login.lo.After(p.presence.cleared) {
			p.presence.known = yes
			p.presence.seen.lo = later(p.presence.seen.lo, s.login.lo)
		}
	}
}

// finish ends sessions by a command. Who loses the last one by it is gone.
func (p *userModel) finish(cause rollcall.Cause, reason string, at span, sessions ...*session) {
	ended := no
	for _, s := range sessions {
		if s.end != nil {
			continue
		}
		if s.mayHaveExpired || s.mayHaveEnded { // another end may have come first
			s.end = &end{at: span{earlier(s.seen.lo, at.lo), at.hi}, told: true}
			ended = max(ended, perhaps)
			continue
		}
		s.end = &end{cause: cause, reason: reason, at: at, told: true}
		ended = yes
	}
	leaves := cause == rollcall.CauseLogout || cause == rollcall.CauseKicked || cause == rollcall.CauseBanned
	if ended == no || !leaves {
		return
	}
	rest := p.live()
	switch {
	case len(rest) == 0 && ended == yes:
		p.presence.leave(at)
	case len(rest) == 0 || slices.ContainsFunc(rest, func(s *session) bool { return s.mayHaveExpired || s.mayHaveEnded }):
		if p.presence.gone != yes {
			p.presence.gone = perhaps
		}
		p.presence.left = &at
	}
}

// ban keeps a user out.
type ban struct {
	until  span
	reason string
}

// wireBan is a ban as servers tell of it.
type wireBan struct {
	User      string
	At, Until time.Time
	Reason    string
}

// banned says whether the user is.
func (p *userModel) banned(now span) maybe {
	switch {
	case p.ban == nil || !now.lo.Before(p.ban.until.hi):
		return no
	case now.hi.Before(p.ban.until.lo):
		return yes
	default:
		return perhaps
	}
}

// putBan sets a ban, and ends the sessions.
func (p *userModel) putBan(d time.Duration, reason string, at span) {
	p.finish(rollcall.CauseBanned, reason, at, p.live()...)
	p.ban = &ban{until: at.shift(d), reason: reason}
}

// erased is what is left of a user after an erasure: a ban, without what was said
// about it.
func (p *userModel) erased() *userModel {
	next := newUserModel(p.id)
	if p.ban != nil {
		next.ban = &ban{until: p.ban.until}
	}
	return next
}

// view is what a server says of a user.
type view struct {
	at       span
	sessions []wireSession
	user     struct {
		Kind, Name string
		Invisible  bool
		Online     bool
		LastSeen   time.Time `json:"last_seen"`
		Sessions   int
		Friends    int
		Ban        *wireBan
	}
	status  wireStatus
	friends []wireFriend
	days    map[string][]rollcall.Day // by kind
	tokens  map[string]string         // "live", how it ended, or "unknown"
	ended   map[string]wireSession    // by id; Cause is "" if it is not known
}

// compare compares the person with what a server says, and returns the person as
// it is known then.
func (p *userModel) compare(v *view, w *model) (*userModel, error) {
	next := p.clone()
	next.age(v.at, &w.outages)
	for _, step := range []func(*view, *model) error{
		next.compareSessions, next.compareEnds, next.compareUser, next.compareBan, next.compareFriends, next.compareDays,
	} {
		if err := step(v, w); err != nil {
			return nil, err
		}
	}
	if err := next.presence.compare(v.status, v.at, &w.outages); err != nil {
		return nil, err
	}
	return next, nil
}

func (p *userModel) compareSessions(v *view, w *model) error {
	if !slices.IsSortedFunc(v.sessions, func(a, b wireSession) int { return strings.Compare(b.ID, a.ID) }) {
		return fmt.Errorf("the sessions are not listed newest first: %v", idsOf(v.sessions))
	}
	listed := map[string]wireSession{}
	for _, x := range v.sessions {
		listed[x.ID] = x
		s := p.sessions[x.ID]
		if s == nil {
			if p.unanswered == nil {
				return fmt.Errorf("session %s is not known", x.ID)
			}
			s = p.unanswered
			s.id, p.sessions[x.ID], p.unanswered = x.ID, s, nil
		}
		if s.end != nil {
			return fmt.Errorf("session %s lives and has ended (%s, %s)", x.ID, s.end.cause, s.end.at)
		}
		if err := s.compare(x, &w.outages); err != nil {
			return err
		}
	}
	if p.unanswered != nil && !p.unanswered.mayHaveExpired {
		at, _ := p.unanswered.deadline(&w.outages)
		if v.at.hi.Before(at.lo) {
			return fmt.Errorf("no session of the login at %s", p.unanswered.login)
		}
	}
	for id, s := range p.sessions {
		if _, there := listed[id]; there || s.end != nil {
			s.mayHaveEnded = false
			continue
		}
		if s.mayHaveEnded {
			s.end = &end{at: span{s.login.lo, v.at.hi}, told: true}
			continue
		}
		at, causes := s.deadline(&w.outages)
		if v.at.hi.Before(at.lo) {
			return fmt.Errorf("session %s is not listed and lives until %s (seen %s)", id, at, s.seen)
		}
		s.end = &end{at: at, told: true}
		if len(causes) == 1 {
			s.end.cause = causes[0]
		}
	}
	return nil
}

func idsOf(list []wireSession) (out []string) {
	for _, s := range list {
		out = append(out, s.ID)
	}
	return out
}

// endedKept is how long an ended session is remembered.
const endedKept = 24 * time.Hour

func (p *userModel) compareEnds(v *view, w *model) error {
	for id, x := range v.ended {
		s := p.sessions[id]
		if s == nil || s.end == nil {
			continue
		}
		switch {
		case x.Cause == "" && v.at.hi.Before(s.end.at.lo.Add(endedKept)):
			return fmt.Errorf("session %s ended at %s (%s) and is forgotten", id, s.end.at, s.end.cause)
		case x.Cause == "":
			continue
		case s.end.cause != "" && x.Cause != s.end.cause:
			return fmt.Errorf("session %s ended as %s instead of %s", id, x.Cause, s.end.cause)
		case s.end.reason != "" && x.Reason != s.end.reason: // a batch of touches tells no reason
			return fmt.Errorf("session %s ended with reason %q instead of %q", id, x.Reason, s.end.reason)
		case !s.end.at.has(x.EndedAt):
			return fmt.Errorf("session %s ended at %s instead of %s", id, instant(x.EndedAt), s.end.at)
		}
		s.end.cause, s.end.reason, s.end.at, s.end.told = x.Cause, x.Reason, exactly(x.EndedAt), true
	}
	for _, s := range p.sessions {
		state, asked := v.tokens[s.token]
		if !asked || s.token == "" {
			continue
		}
		at, _ := s.deadline(&w.outages)
		switch {
		case s.end == nil && state != "live" && !v.at.hi.Before(at.lo): // between two reads
			s.end = &end{at: at, told: true}
		case s.end == nil && state != "live":
			return fmt.Errorf("the token of session %s is %s and it lives", s.id, state)
		case s.end != nil && state == "live":
			return fmt.Errorf("the token of session %s lives and it ended (%s)", s.id, s.end.cause)
		case s.end != nil && s.end.cause != "" && state != "unknown" && state != string(s.end.cause):
			return fmt.Errorf("the token of session %s ended as %s instead of %s", s.id, state, s.end.cause)
		}
	}
	return nil
}

func (p *userModel) compareUser(v *view, _ *model) error {
	u := v.user
	if u.Kind != p.kind || u.Name != p.name || u.Invisible != p.invisible {
		return fmt.Errorf("the user is {kind %q, name %q, invisible %t} instead of {%q, %q, %t}", u.Kind, u.Name, u.Invisible, p.kind, p.name, p.invisible)
	}
	if u.Friends != len(v.friends) {
		return fmt.Errorf("the user has %d friends, and %d are listed", u.Friends, len(v.friends))
	}
	return nil
}

func (p *userModel) compareBan(v *view, _ *model) error {
	switch want := p.banned(v.at); {
	case want == yes && v.user.Ban == nil:
		return fmt.Errorf("there is no ban, and it holds until %s", p.ban.until)
	case want == no && v.user.Ban != nil:
		return fmt.Errorf("there is a ban until %s", instant(v.user.Ban.Until))
	case v.user.Ban == nil:
		p.ban = nil
	case !p.ban.until.has(v.user.Ban.Until) || v.user.Ban.Reason != p.ban.reason:
		return fmt.Errorf("the ban is until %s (%q) instead of %s (%q)", instant(v.user.Ban.Until), v.user.Ban.Reason, p.ban.until, p.ban.reason)
	default:
		p.ban.until = exactly(v.user.Ban.Until)
	}
	return nil
}

// merge returns what is known of a user if both models fit.
func merge(a, b *userModel) *userModel {
	out := b
	out.presence.seen = span{earlier(a.presence.seen.lo, b.presence.seen.lo), later(a.presence.seen.hi, b.presence.seen.hi)}
	if a.presence.gone != b.presence.gone {
		out.presence.gone = perhaps
	}
	if a.presence.left != nil && out.presence.left == nil {
		out.presence.left = a.presence.left
	}
	for id, s := range a.sessions {
		if o := out.sessions[id]; o != nil && o.end == nil && s.end == nil {
			o.seen = span{earlier(o.seen.lo, s.seen.lo), later(o.seen.hi, s.seen.hi)}
			if o.token != s.token {
				o.token = ""
			}
		}
	}
	return out
}

// keysOf are the keys of a map in their order.
func keysOf[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
