package replay

import (
	"cmp"
	"context"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/rollcall/rollcall"
)

// Options say what to play and what to ask. The zero value works for a log of
// edges.
type Options struct {
	Format   Format          // default Edges
	Idle     time.Duration   // silence that ends a session; default 30m
	Windows  []time.Duration // for probes; default 60, 300, 600 and 3600 s
	Probes   []int64         // instants to ask at, in unix seconds up to Latest
	Friends  []string        // users whose online friends each probe lists
	Timezone *time.Location  // of the civil day; default UTC
	// Progress, if set, is told now and then how many of all rows were played.
	Progress func(done, total int)
}

func (o *Options) fill() {
	o.Format = cmp.Or(o.Format, Edges)
	o.Idle = cmp.Or(o.Idle, rollcall.DefaultIdleTimeout)
	if len(o.Windows) == 0 {
		o.Windows = []time.Duration{time.Minute, 5 * time.Minute, 10 * time.Minute, time.Hour}
	}
	if o.Timezone == nil {
		o.Timezone = time.UTC
	}
	o.Probes = slices.Sorted(slices.Values(o.Probes))
}

// player plays a log to a Roll.
type player struct {
	o        Options
	log      *log
	roll     *rollcall.Roll
	clock    *rollcall.ManualClock
	sessions []rollcall.SessionID // of each user, the latest
	report   *Report
}

// Play reads a log and plays it to an engine, which must be empty. The engine
// stays the caller's to close. If the log breaks off, the report is of what came
// before, and the error says where.
func Play(ctx context.Context, engine rollcall.Engine, in io.Reader, o Options) (*Report, error) {
	o.fill()
	parse, err := parserOf(o.Format)
	if err != nil {
		return nil, err
	}
	l, err := readLog(ctx, in, parse, o.Timezone)
	if err != nil {
		return nil, err
	}
	policies, err := rollcall.NewPolicies(rollcall.Policy{IdleTimeout: o.Idle})
	if err != nil {
		return nil, err
	}
	p := &player{o: o, log: l, clock: rollcall.NewManualClock(time.Unix(0, 0)), report: newReport(l, o)}
	if len(l.acts) > 0 {
		p.clock.Set(time.Unix(l.acts[0].at, 0))
	}
	p.roll, err = rollcall.New(engine, rollcall.Options{
		Clock: p.clock, Policies: policies, Timezone: o.Timezone,
		AttendanceOn: rollcall.AttendOnBeat, NoPresenceEvents: true,
		Retention: max(rollcall.DefaultRetention, slices.Max(o.Windows)),
	})
	if err != nil {
		return nil, err
	}
	if err := p.play(ctx); err != nil {
		return nil, err
	}
	if err := p.roll.Close(); err != nil {
		return nil, err
	}
	return p.report, l.cut
}

func (p *player) play(ctx context.Context) error {
	if err := p.befriend(ctx); err != nil {
		return err
	}
	p.sessions = make([]rollcall.SessionID, len(p.log.users.texts))
	probes := p.o.Probes
	acts := p.log.acts
	for played := 0; len(acts) > 0; {
		n := 1 // rows of one second
		for n < len(acts) && acts[n].at == acts[0].at {
			n++
		}
		for len(probes) > 0 && probes[0] < acts[0].at {
			if err := p.probe(ctx, probes[0]); err != nil {
				return err
			}
			probes = probes[1:]
		}
		if err := p.second(ctx, acts[:n]); err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		played += n
		acts = acts[n:]
		if p.o.Progress != nil {
			p.o.Progress(played, len(p.log.acts))
		}
	}
	// The days are summed up while the clock stands at the last row: from a later
	// probe every streak would look broken off.
	if err := p.figures(ctx); err != nil {
		return err
	}
	for _, at := range probes {
		if err := p.probe(ctx, at); err != nil {
			return err
		}
	}
	return nil
}

// befriend makes the friends of those users whose friends are asked for.
func (p *player) befriend(ctx context.Context) error {
	asked := make(map[uint32]map[string]bool)
	for _, u := range p.o.Friends {
		if n, ok := p.log.users.numbers[u]; ok {
			asked[n] = make(map[string]bool)
		}
	}
	for _, a := range p.log.acts {
		if friends, ok := asked[a.user]; ok && a.friend != 0 && a.friend != a.user {
			friends[p.log.users.texts[a.friend]] = true
		}
	}
	for n, friends := range asked {
		list := make([]rollcall.Friend, 0, len(friends))
		for u := range friends {
			list = append(list, rollcall.Friend{User: u})
		}
		if err := p.roll.ReplaceFriends(ctx, p.log.users.texts[n], list); err != nil {
			return err
		}
	}
	return nil
}

// second plays the rows of one second: each visitor's first counts, the others
// change nothing.
func (p *player) second(ctx context.Context, acts []act) error {
	p.clock.Set(time.Unix(acts[0].at, 0))
	var users []act
	seen := make(map[uint32]bool, len(acts))
	for _, a := range acts {
		if !seen[a.user] {
			seen[a.user] = true
			users = append(users, a)
		}
	}
	for batch := range slices.Chunk(users, rollcall.MaxLimit) {
		if err := p.signsOfLife(ctx, batch); err != nil {
			return err
		}
	}
	online, err := p.roll.OnlineCount(ctx, 0)
	if err != nil {
		return err
	}
	if online > p.report.Peak.Online {
		p.report.Peak = Peak{At: instant(p.clock.Now()), Online: online}
	}
	return nil
}

// signsOfLife touches the sessions of users; those without a live one log in.
func (p *player) signsOfLife(ctx context.Context, users []act) error {
	var refs []rollcall.SessionRef // of those who have logged in before
	for _, a := range users {
		if id := p.sessions[a.user]; !id.IsZero() {
			refs = append(refs, rollcall.SessionRef{ID: id})
		}
	}
	var touched []rollcall.Touched
	if len(refs) > 0 {
		var err error
		if touched, err = p.roll.TouchAll(ctx, refs); err != nil {
			return err
		}
	}
	for _, a := range users {
		if !p.sessions[a.user].IsZero() {
			live := touched[0].Live
			if touched = touched[1:]; live {
				continue
			}
		}
		in, err := p.roll.Login(ctx, rollcall.Login{User: p.log.users.texts[a.user], Kind: p.log.kinds.texts[a.kind]})
		if err != nil {
			return err
		}
		p.sessions[a.user] = in.Session.ID
		p.report.Sessions++
	}
	return nil
}

// probe asks all there is to ask at an instant.
func (p *player) probe(ctx context.Context, at int64) error {
	p.clock.Set(time.Unix(at, 0))
	out := Probe{At: at, Online: make(map[string]int), Sessions: []ProbeSession{}}
	for _, w := range p.o.Windows {
		n, err := p.roll.OnlineCount(ctx, w)
		if err != nil {
			return err
		}
		out.Online[seconds(w)] = n
	}
	if err := p.probeSessions(ctx, &out); err != nil {
		return err
	}
	for _, u := range p.o.Friends {
		online, err := p.friendsOf(ctx, u)
		if err != nil {
			return err
		}
		if out.Friends == nil {
			out.Friends = make(map[string][]string)
		}
		out.Friends[u] = online
	}
	p.report.Probes = append(p.report.Probes, out)
	return nil
}

func (p *player) probeSessions(ctx context.Context, out *Probe) error {
	q := rollcall.SessionQuery{Page: rollcall.PageRequest{Limit: rollcall.MaxLimit}}
	for {
		page, err := p.roll.Sessions(ctx, q)
		if err != nil {
			return err
		}
		out.SessionsTotal = page.Total
		for _, s := range page.Items {
			out.Sessions = append(out.Sessions, ProbeSession{s.User, s.LoginAt.Unix()})
		}
		if q.Page.Cursor = page.Next; page.Next == "" {
			break
		}
	}
	slices.SortFunc(out.Sessions, func(a, b ProbeSession) int {
		return cmp.Or(cmp.Compare(b.Login, a.Login), strings.Compare(a.User, b.User))
	})
	return nil
}

func (p *player) friendsOf(ctx context.Context, user string) ([]string, error) {
	online := []string{}
	q := rollcall.FriendQuery{User: user, Window: slices.Max(p.o.Windows), Page: rollcall.PageRequest{Limit: rollcall.MaxLimit}}
	for {
		page, err := p.roll.OnlineFriends(ctx, q)
		if err != nil {
			return nil, err
		}
		for _, f := range page.Items {
			online = append(online, f.User)
		}
		if q.Page.Cursor = page.Next; page.Next == "" {
			return online, nil
		}
	}
}
