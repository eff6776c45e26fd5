package takeover

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rollcall/rollcall"
)

// Options say what is taken over, and how. Layout and Now are required.
type Options struct {
	Names
	Layout Layout
	// Unit is that of scores; default UnitAuto.
	Unit Unit
	// Lifetime is how long after its login an entry of an online list lives; default 24h.
	// Idle is the idle timeout of the sessions that they become; default Lifetime.
	Lifetime, Idle time.Duration
	// Retention is how old a last-seen time may be that is taken; default 90 days.
	Retention time.Duration
	// Kinds are texts that go before the ids of users of a kind, so that the ids of
	// different people stay apart.
	Kinds map[string]string
	// FirstBit is the bit of a bitmap that stands for the first of the month: 0, or 1.
	FirstBit int
	// State is the file that holds how far the import has come, so that one that was cut
	// short goes on; "" for none.
	State string
	// Every is how long Follow waits between two looks; default 5s.
	Every time.Duration
	// Settle is how long a difference must last before Shadow reports it. Whoever follows the old
	// system may be behind it by so long; default as long as two thorough looks are apart, 2m.
	Settle time.Duration
	// Now tells the time.
	Now func() time.Time
	// Progress is told how many entries of how many have been read; a total of -1 is
	// not known. nil for nobody.
	Progress func(done, total int64)
}

// Check returns what is wrong with the options.
func (o Options) Check() error {
	_, err := o.fill()
	return err
}

func (o *Options) fill() (names, error) {
	o.Lifetime = cmp.Or(o.Lifetime, defaultLifetime)
	o.Idle, o.Retention, o.Every = cmp.Or(o.Idle, o.Lifetime), cmp.Or(o.Retention, defaultStale), cmp.Or(o.Every, 5*time.Second)
	o.Settle = cmp.Or(o.Settle, max(fresh, 2*sweepEvery*o.Every))
	n, err := o.Names.read(o.Layout)
	if err != nil {
		return n, err
	}
	switch {
	case o.Lifetime < time.Second || o.Idle < time.Second || o.Retention < time.Second:
		return n, errors.New("--lifetime, --idle and --retention: must be at least 1s each")
	case o.FirstBit != 0 && o.FirstBit != 1:
		return n, fmt.Errorf("--first-bit: must be 0 or 1, is %d", o.FirstBit)
	case o.Every < 100*time.Millisecond || o.Every > fresh/2:
		return n, fmt.Errorf("--every: must be between 100ms and %v, is %v", fresh/2, o.Every)
	case len(o.Kinds) > 0 && o.Layout != LoginBitmaps:
		return n, errors.New("--map belongs to --layout login-bitmaps")
	case o.Now == nil:
		return n, errors.New("now: is required")
	}
	for _, kind := range slices.Sorted(maps.Keys(o.Kinds)) {
		if kind == "" || rollcall.CheckKind(kind) != nil {
			return n, fmt.Errorf("--map: %q is no kind", kind)
		}
	}
	_, err = ParseUnit(string(o.Unit))
	return n, err
}

// fresh is how long ago a sign of life may be that is entered as one of this moment. That is
// how it is entered for a user of whom something is known here already.
const fresh = time.Minute

// Summary counts what an import did.
type Summary struct {
	Read    int64 `json:"read"`    // entries read
	Entered int64 `json:"entered"` // entered with their own times; marks that were new
	Already int64 `json:"already"` // here before
	Moved   int64 `json:"moved"`   // signs of life and logins of users who were known, entered as of now
	Ended   int64 `json:"ended"`   // sessions that had left the old list, ended here
	Dead    int64 `json:"dead"`    // entries that were dead in the old system
	Behind  int64 `json:"behind"`  // users known here whose later time lies too far back to be entered
	Refused int64 `json:"refused"` // entries that break a rule, such as an id that is too long
	Friends int64 `json:"friends"` // lists of friends

	FirstRefused []string `json:"first_refused,omitempty"` // the first 20, and why
}

// Importer takes a hand-built system over.
type Importer struct {
	src     *Source
	to      Target
	past    snapshots // nil if the target takes no times of the past
	opts    Options
	names   names
	state   *state
	summary Summary
	total   int64
	high    float64 // what has a later score, as milliseconds, is for the next look
	looked  time.Time
}

// NewImporter prepares an import, and asks nobody yet. Over HTTP it takes login days and
// friends; for sessions and last-seen times it needs the engine itself.
func NewImporter(src *Source, to Target, o Options) (*Importer, error) {
	n, err := o.fill()
	if err != nil {
		return nil, err
	}
	m := &Importer{src: src, to: to, opts: o, names: n, total: -1}
	m.past, _ = to.(snapshots)
	return m, nil
}

// Run reads everything once. What is here already is passed over, so it may be repeated.
func (m *Importer) Run(ctx context.Context) (Summary, error) {
	if m.past == nil && m.opts.Layout != LoginBitmaps {
		return m.summary, fmt.Errorf("--layout %s: a server takes no times of the past over HTTP: import into its store while it is stopped, or into its Redis", m.opts.Layout)
	}
	var err error
	if m.state, err = openState(m.opts.State, m.opts.Layout, m.names.key, m.src.runID(ctx)); err != nil {
		return m.summary, err
	}
	// A part is left out only where it has been entered: the state of a rehearsal says nothing
	// about another store.
	if m.state.begun() && m.opts.Layout != LoginBitmaps {
		known, err := m.to.KnownUsers(ctx, rollcall.PageRequest{Limit: 1})
		if err != nil {
			return m.summary, err
		}
		if known.Total == 0 {
			m.state.forget()
		}
	}
	if m.high = m.state.High; m.high == 0 {
		m.high = float64(m.opts.Now().UnixMilli())
	}
	if m.state.Stage == stageMain {
		switch m.opts.Layout {
		case OnlineZset:
			err = m.readZset(ctx, m.enterOnline)
		case LastSeenZset, HeartbeatZset:
			err = m.readZset(ctx, m.enterSeen)
		case LoginBitmaps:
			err = m.readBitmaps(ctx, nil)
		case MinuteSets:
			err = m.readMinutes(ctx, 60)
		}
		if err == nil {
			err = m.state.next(stageFriends)
		}
	}
	if err == nil && m.names.friends != nil && m.state.Stage == stageFriends {
		err = m.readFriends(ctx)
	}
	if err == nil {
		err = m.state.done()
	}
	return m.summary, err
}

// Summary says what has been done so far.
func (m *Importer) Summary() Summary { return m.summary }

// refuse notes an entry that cannot be entered.
func (m *Importer) refuse(what string, why error) {
	const shown = 20
	m.summary.Refused++
	if len(m.summary.FirstRefused) < shown {
		m.summary.FirstRefused = append(m.summary.FirstRefused, fmt.Sprintf("%s: %v", quoted(visible(what)), why))
	}
}

// read notes that entries have been read.
func (m *Importer) read(n int) {
	m.summary.Read += int64(n)
	if m.opts.Progress != nil {
		m.opts.Progress(m.summary.Read, m.total)
	}
}

// instant returns what a score stands for, and takes one that is ahead for now. False if it
// is no time.
func (m *Importer) instant(score float64) (time.Time, bool) {
	at, ok := m.opts.Unit.instant(score)
	if now := m.opts.Now(); at.After(now) {
		return now.Truncate(time.Millisecond), ok
	}
	return at, ok
}

// readZset reads a sorted set to its end, from where the state says.
func (m *Importer) readZset(ctx context.Context, enter func(context.Context, []member) error) error {
	total, err := m.src.number(ctx, m.src.client.B().Zcard().Key(m.names.key).Build())
	if err != nil && !wrongType(err) { // the walk says which key that is
		return err
	}
	m.total = total
	var gathered []member
	m.looked = m.opts.Now()
	return m.src.walkZset(ctx, m.names.key, m.state.At.Cursor, func(some []member, cursor uint64) error {
		m.read(len(some))
		if gathered = append(gathered, some...); len(gathered) < window && cursor != 0 {
			return nil
		}
		if err := enter(ctx, gathered); err != nil {
			return err
		}
		gathered = gathered[:0]
		if err := m.meanwhile(ctx); err != nil {
			return err
		}
		return m.state.save(position{Cursor: cursor}, m.high)
	})
}

// window is how many entries are gathered before they are entered, by the hash of their users.
// An engine merges times that are older than its own with those of a partition, which costs in
// proportion to the partition. In this order a step enters many users of few partitions.
const window = 1 << 16

// rank is the place of a user among others that brings those of one partition together, however
// many partitions there are: these are told by the low bits of the hash.
func rank(user string) uint64 { return bits.Reverse64(rollcall.HashUser(user)) }

// byRank puts users into the order of their rank, each once.
func byRank(users []string) []string {
	ranks := make(map[string]uint64, len(users))
	for _, user := range users {
		ranks[user] = rank(user)
	}
	return slices.SortedFunc(maps.Keys(ranks), func(a, b string) int {
		return cmp.Or(cmp.Compare(ranks[a], ranks[b]), compareText(a, b))
	})
}

// sideBySide bounds how many commands to the new side are under way at once.
const sideBySide = 16

// each runs work for each of n things, some side by side, and returns an error of one of them.
// An engine that waits for a disk or a network makes them wait together.
func each(ctx context.Context, n int, work func(context.Context, int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(n, sideBySide) {
		wg.Go(func() {
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				if err := work(ctx, i); err != nil {
					cancel(err)
				}
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}

// enterAll enters snapshots of users of whom nothing should be known, and hands the users who
// are known to known.
func (m *Importer) enterAll(ctx context.Context, list []rollcall.UserSnapshot, known func(*rollcall.UserSnapshot) error) error {
	if len(list) == 0 {
		return nil
	}
	err := m.past.Import(ctx, list...)
	if err == nil {
		m.summary.Entered += int64(len(list))
		return nil
	}
	if code := rollcall.CodeOf(err); code != rollcall.CodeConflict && code != rollcall.CodeInvalidArgument {
		return err
	}
	// One of them is known, or breaks a rule. The others may have been entered, which is then no
	// harm: they are known.
	for i := range list {
		err := m.past.Import(ctx, list[i])
		switch rollcall.CodeOf(err) {
		case "":
			m.summary.Entered++
		case rollcall.CodeConflict:
			if err := known(&list[i]); err != nil {
				return err
			}
		case rollcall.CodeInvalidArgument:
			m.refuse(list[i].User, err)
		default:
			return err
		}
	}
	return nil
}
