package takeover

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/rollcall/rollcall"
)

// Answers are what both sides are asked in the shadow; see [Importer.Shadow].
type Answers interface {
	Target
	OnlineCount(ctx context.Context, window time.Duration) (int, error)
	Online(ctx context.Context, window time.Duration, p rollcall.PageRequest) (rollcall.Page[rollcall.Seen], error)
	OnlineFriends(ctx context.Context, q rollcall.FriendQuery) (rollcall.Page[rollcall.FriendStatus], error)
}

// Shadowed is how both sides answered one kind of question.
type Shadowed struct {
	Question    string       `json:"question"`
	Asked       int          `json:"asked"`
	Differences int          `json:"differences"` // entries that differed, and still did when asked about again
	InDoubt     int          `json:"in_doubt"`    // entries that differed when last asked about, too short a time
	First       []Difference `json:"first"`       // the first 20 differences
	Old         Latency      `json:"old"`
	Here        Latency      `json:"here"`
}

// Latency is how long answers took, in microseconds.
type Latency struct {
	Median int64 `json:"p50_us"`
	P99    int64 `json:"p99_us"`
}

const (
	shadowWindow = 5 * time.Minute
	// shadowSlack is how much later or earlier a time may be: the look of a follower and the
	// time between the two questions lie in between.
	shadowSlack = fresh
	mostShadow  = 100_000 // questions of a kind whose times are kept
	mostDoubts  = 1000    // entries of a kind that differ; later ones are left out
	mostAsked   = 10      // entries of a kind that a round asks about
)

// question is a kind of question that a shadow asks.
type question struct {
	Shadowed
	old, here []time.Duration
	doubts    map[string]doubt // by entry

	// next returns a few entries to ask about.
	next func(context.Context) ([]string, error)
	// compare asks both sides about an entry. It returns nil where they agree, or rightly differ.
	compare func(context.Context, *question, string) (*differing, error)
}

// differing are two answers that do not agree.
type differing struct {
	old, here string
	// same is what the old side must still say for the difference to have lasted.
	same string
}

// doubt is an entry that differs: since when, or that it has been reported.
type doubt struct {
	since    time.Time
	same     string
	reported bool
}

// Shadow asks both sides the same questions in turn until ctx ends, a round every wait,
// and reports where they differ and how long they took. Whoever follows the old system may be
// behind it by a moment, so a difference counts once it has lasted for Settle.
func (m *Importer) Shadow(ctx context.Context, wait time.Duration) ([]Shadowed, error) {
	to, ok := m.to.(Answers)
	if !ok {
		return nil, fmt.Errorf("%T does not answer all questions", m.to)
	}
	questions := m.questions(to)
	tick := time.NewTicker(wait)
	defer tick.Stop()
	for {
		for _, q := range questions {
			if err := m.round(ctx, q); err != nil && !over(ctx, err) {
				return nil, err
			}
		}
		select {
		case <-ctx.Done():
			out := make([]Shadowed, len(questions))
			for i, q := range questions {
				q.InDoubt = len(q.doubts) - q.Differences
				q.Old, q.Here = latencyOf(q.old), latencyOf(q.here)
				out[i] = q.Shadowed
			}
			return out, nil
		case <-tick.C:
		}
	}
}

// questions are those of a layout.
func (m *Importer) questions(to Answers) []*question {
	var all []*question
	add := func(text string, next func(context.Context) ([]string, error), compare func(context.Context, *question, string) (*differing, error)) {
		all = append(all, &question{Shadowed: Shadowed{Question: text, First: []Difference{}}, doubts: make(map[string]doubt), next: next, compare: compare})
	}
	itself := func(context.Context) ([]string, error) { return []string{m.names.key}, nil }
	present := false
	switch m.opts.Layout {
	case LastSeenZset, HeartbeatZset:
		add("online within 5 minutes", itself, m.shadowCount(to))
		add("last seen of a user", m.someMembers, m.shadowSeen)
		present = true
	case OnlineZset:
		add("sessions of a user", m.someMembers, m.shadowSessions)
		add("a page of the list", m.someMembers, m.shadowPage)
	case LoginBitmaps:
		add("days of a user in a month", m.someKeys(m.names.family), m.shadowDays)
	case MinuteSets:
		add("online within 10 minutes", itself, m.shadowUnion(to))
		add("minutes of a user", m.someOfMinutes, m.shadowMinutes)
		present = true
	}
	if m.names.friends != nil && present {
		add("friends online of a user", m.someKeys(*m.names.friends), m.shadowFriends(to))
	}
	return all
}

// round asks about a few entries: those that were in doubt long enough go before others.
func (m *Importer) round(ctx context.Context, q *question) error {
	now := m.opts.Now()
	var entries []string
	for entry, d := range q.doubts {
		if len(entries) < mostAsked && !d.reported && now.Sub(d.since) >= m.opts.Settle {
			entries = append(entries, entry)
		}
	}
	if len(entries) == 0 {
		var err error
		if entries, err = q.next(ctx); err != nil {
			return err
		}
	}
	for _, entry := range entries {
		asked := m.opts.Now()
		d, err := q.compare(ctx, q, entry)
		if err != nil {
			return err
		}
		q.judge(entry, d, asked, m.opts.Now(), m.opts.Settle)
	}
	return nil
}

// judge notes what was found out about an entry, between when it was asked about and answered.
func (q *question) judge(entry string, d *differing, asked, answered time.Time, settle time.Duration) {
	before, doubted := q.doubts[entry]
	switch {
	case doubted && before.reported:
	case d == nil:
		delete(q.doubts, entry)
	case !doubted && len(q.doubts) == mostDoubts:
	case !doubted || before.same != d.same:
		q.doubts[entry] = doubt{since: answered, same: d.same}
	case asked.Sub(before.since) >= settle:
		before.reported = true
		q.doubts[entry] = before
		const shown = 20
		if q.Differences++; len(q.First) < shown {
			q.First = append(q.First, Difference{visible(entry), visible(d.old), visible(d.here), "differs"})
		}
	}
}

func latencyOf(times []time.Duration) Latency {
	if len(times) == 0 {
		return Latency{}
	}
	slices.Sort(times)
	return Latency{times[len(times)/2].Microseconds(), times[len(times)*99/100].Microseconds()}
}

// ask times a question to both sides.
func (q *question) ask(old, here func() error) error {
	began := time.Now()
	if err := old(); err != nil {
		return err
	}
	between := time.Now()
	if err := here(); err != nil {
		return err
	}
	if q.Asked++; len(q.old) < mostShadow {
		q.old, q.here = append(q.old, between.Sub(began)), append(q.here, time.Since(between))
	}
	return nil
}

// someMembers returns a member of the sorted set at random; none if there is none.
func (m *Importer) someMembers(ctx context.Context) ([]string, error) {
	answer, err := m.src.do(ctx, 1, m.src.client.B().Zrandmember().Key(m.names.key).Count(1).Build())
	if err != nil {
		return nil, err
	}
	names, err := answer.AsStrSlice()
	return names, m.src.readError(err)
}

// memberOf reads a member of the sorted set again; false if it has gone.
func (m *Importer) memberOf(ctx context.Context, name string) (member, bool, error) {
	scores, there, err := m.src.scores(ctx, m.names.key, []string{name})
	if err != nil || !there[0] {
		return member{}, false, err
	}
	return member{name, scores[0]}, true, nil
}

// someKeys returns what draws keys of a family. RANDOMKEY would have to be asked again and again
// in a Redis of many uses: a walk serves as well, which goes on with each round, by a bounded
// number of steps.
func (m *Importer) someKeys(family template) func(context.Context) ([]string, error) {
	const mostSteps = 20
	var at position
	return func(ctx context.Context) ([]string, error) {
		var found []string
		steps := 0
		err := m.src.walkKeys(ctx, family.glob(nil), at, func(keys []string, behind position) error {
			at = behind
			for _, key := range keys {
				if _, ok := family.match(key); ok {
					found = append(found, key)
				}
			}
			// The next server of a Cluster begins behind the end of this one.
			if steps++; (len(found) > 0 || steps >= mostSteps) && at.Cursor != 0 {
				return errEnough
			}
			return nil
		})
		if errors.Is(err, errEnough) {
			err = nil
		} else {
			at = position{}
		}
		rand.Shuffle(len(found), func(i, j int) { found[i], found[j] = found[j], found[i] })
		return found[:min(len(found), mostAsked)], err
	}
}
