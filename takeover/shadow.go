package takeover

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/rollcall/rollcall"
)

// Answers are what both sides are asked in the shadow; see [Importer.Shadow].
type Answers interface {
	Target
	OnlineCount(ctx context.Context, window time.Duration) (int, error)
	Online(ctx context.Context, window time.Duration, p rollcall.PageRequest) (rollcall.Page[rollcall.Seen], error)
}

// Shadowed is how both sides answered one kind of question.
type Shadowed struct {
	Question    string       `json:"question"`
	Asked       int          `json:"asked"`
	Differences int          `json:"differences"`
	First       []Difference `json:"first"` // the first 20
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
)

// shadow is a kind of question under way.
type shadow struct {
	Shadowed
	old, here []time.Duration
}

// Shadow asks both sides the same questions in turn until ctx ends, a round every wait,
// and reports where they differ and how long they took. While Follow runs elsewhere,
// times may differ by a minute.
func (m *Importer) Shadow(ctx context.Context, wait time.Duration) ([]Shadowed, error) {
	to, ok := m.to.(Answers)
	if !ok {
		return nil, fmt.Errorf("%T does not answer all questions", m.to)
	}
	var rounds []func(context.Context) error
	var all []*shadow
	add := func(question string, round func(context.Context, *shadow) error) {
		s := &shadow{Shadowed: Shadowed{Question: question, First: []Difference{}}}
		all = append(all, s)
		rounds = append(rounds, func(ctx context.Context) error { return round(ctx, s) })
	}
	switch m.opts.Layout {
	case LastSeenZset, HeartbeatZset:
		add("online within 5 minutes", func(ctx context.Context, s *shadow) error { return m.shadowCount(ctx, to, s) })
		add("last seen of a user", m.shadowSeen)
	case OnlineZset:
		add("sessions of a user", m.shadowSessions)
	case LoginBitmaps:
		add("days of a user in a month", m.shadowDays)
	case MinuteSets:
		return nil, fmt.Errorf("--layout %s: a set of a minute has no answers to compare but --compare's", m.opts.Layout)
	}
	tick := time.NewTicker(wait)
	defer tick.Stop()
	for {
		for _, round := range rounds {
			if err := round(ctx); err != nil && !over(ctx, err) {
				return nil, err
			}
		}
		select {
		case <-ctx.Done():
			out := make([]Shadowed, len(all))
			for i, s := range all {
				s.Old, s.Here = latencyOf(s.old), latencyOf(s.here)
				out[i] = s.Shadowed
			}
			return out, nil
		case <-tick.C:
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
func (s *shadow) ask(old, here func() error) error {
	began := time.Now()
	if err := old(); err != nil {
		return err
	}
	between := time.Now()
	if err := here(); err != nil {
		return err
	}
	if s.Asked++; len(s.old) < mostShadow {
		s.old, s.here = append(s.old, between.Sub(began)), append(s.here, time.Since(between))
	}
	return nil
}

func (s *shadow) differ(entry, old, here string) {
	const shown = 20
	if s.Differences++; len(s.First) < shown {
		s.First = append(s.First, Difference{visible(entry), old, here, "differs"})
	}
}

// shadowCount asks how many are online. The counts may differ by who came and went between
// the two questions: by one in a hundred.
func (m *Importer) shadowCount(ctx context.Context, to Answers, s *shadow) error {
	var old int64
	var here int
	now := m.opts.Now()
	err := s.ask(func() error {
		for _, unit := range []Unit{UnitSeconds, UnitMilliseconds} {
			from, most := unit.score(now.Add(-shadowWindow)), float64(firstMilliseconds-1)
			if unit == UnitMilliseconds {
				most = unit.score(now)
			}
			c := m.src.client.B().Zcount().Key(m.names.key).Min(strconv.FormatFloat(from, 'f', 0, 64)).Max(strconv.FormatFloat(most, 'f', 0, 64)).Build()
			n, err := m.src.number(ctx, c)
			if err != nil {
				return err
			}
			old += n
		}
		return nil
	}, func() (err error) {
		here, err = to.OnlineCount(ctx, shadowWindow)
		return err
	})
	if gap := max(old-int64(here), int64(here)-old); err == nil && gap > max(2, old/100) {
		s.differ(m.names.key, strconv.FormatInt(old, 10), strconv.Itoa(here))
	}
	return err
}

// oneOf returns a member at random; false if there is none.
func (m *Importer) oneOf(ctx context.Context) (member, bool, error) {
	answer, err := m.src.do(ctx, 1, m.src.client.B().Zrandmember().Key(m.names.key).Count(-1).Withscores().Build())
	if err != nil {
		return member{}, false, err
	}
	scores, err := answer.AsZScores()
	if err != nil || len(scores) == 0 {
		return member{}, false, m.src.readError(err)
	}
	return member{scores[0].Member, scores[0].Score}, true, nil
}

func (m *Importer) shadowSeen(ctx context.Context, s *shadow) error {
	z, found, err := m.oneOf(ctx)
	if err != nil || !found || checkUser(z.name) != nil {
		return err
	}
	var here []rollcall.Status
	err = s.ask(func() error {
		scores, _, err := m.src.scores(ctx, m.names.key, []string{z.name})
		if err == nil {
			z.score = scores[0]
		}
		return err
	}, func() (err error) {
		here, err = m.to.Status(ctx, z.name)
		return err
	})
	if err != nil {
		return err
	}
	at, ok := m.opts.Unit.instant(z.score)
	now := m.opts.Now()
	if !ok || at.After(now) || at.Before(now.Add(-m.opts.Retention)) {
		return nil // it is rightly not here
	}
	if gap := here[0].LastSeen.Sub(at).Abs(); gap > shadowSlack {
		s.differ(z.name, at.Format(time.RFC3339), here[0].LastSeen.Format(time.RFC3339))
	}
	return nil
}

func (m *Importer) shadowSessions(ctx context.Context, s *shadow) error {
	z, found, err := m.oneOf(ctx)
	if err != nil || !found {
		return err
	}
	var live map[string][]oldSession
	var user string
	var c Comparison
	err = s.ask(func() (err error) {
		live, err = m.sessionsOf(ctx, []member{z})
		return err
	}, func() error {
		for name, sessions := range live {
			user = name
			if err := m.compareSessions(ctx, &c, sessions); err != nil {
				return err
			}
		}
		return nil
	})
	for _, d := range c.First {
		s.differ(user, d.Old, d.Here)
	}
	return err
}

func (m *Importer) shadowDays(ctx context.Context, s *shadow) error {
	// RANDOMKEY would have to be asked again and again in a Redis of many uses: the first
	// portion of a walk serves as well, and its first bitmap moves on with each question.
	var months []oldMonth
	err := m.src.walkKeys(ctx, m.names.family.glob(nil), m.shadowAt, func(keys []string, at position) error {
		m.shadowAt = at
		if months = m.monthsOf(keys); len(months) > 0 {
			return errEnough
		}
		return nil
	})
	if err == errEnough { //nolint:errorlint // our own, as it is
		err = nil
	} else {
		m.shadowAt = position{}
	}
	if err != nil || len(months) == 0 {
		return err
	}
	for _, month := range months[:min(len(months), 10)] {
		var days []rollcall.Day
		var here rollcall.Attended
		there := true
		err := s.ask(func() error {
			texts, err := m.src.texts(ctx, []string{month.key}, mostOfMonth)
			if err == nil && texts[0].there {
				days, err = m.daysOf(month.month, texts[0])
				if err != nil {
					there, err = false, nil
				}
			}
			return err
		}, func() (err error) {
			here, err = m.to.Attended(ctx, month.user, month.kind, month.month.Range())
			return err
		})
		if err != nil {
			return err
		}
		if there && !slices.Equal(days, here.Days) {
			s.differ(month.key, fmt.Sprint(days), fmt.Sprint(here.Days))
		}
	}
	return nil
}
