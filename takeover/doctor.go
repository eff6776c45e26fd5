package takeover

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/redis/rueidis"
)

// DoctorOptions say what Doctor looks for. The zero value looks for all layouts under the
// names that their articles use, and for sorted sets whose scores are times.
type DoctorOptions struct {
	Names
	// Layout is the one to look at, under Names.Key; "" to find out.
	Layout Layout
	// Lifetime is how long after its login an entry of an online list lives; default 24h.
	Lifetime time.Duration
	// Stale is how old a last-seen time is that should have been cleared; default 90 days.
	Stale time.Duration
	// Sample is how many entries of a large key, or keys of a large family, are looked at;
	// default 2,000. What is said of more is an estimate.
	Sample int
	// Time bounds the walk over the names of keys; default 60s. A walk that is cut short
	// is said to be.
	Time time.Duration
	// Now is the time by which is judged.
	Now time.Time
	// Progress is told how many keys have been looked at; nil for nobody.
	Progress func(keys int64)
}

const (
	defaultLifetime = 24 * time.Hour
	defaultStale    = 90 * 24 * time.Hour
	defaultSample   = 2_000
	maxSample       = 100_000
	defaultWalk     = time.Minute
	// aheadBy is how far a client's clock may be wrong before that is a fault.
	aheadBy = time.Minute
	// mostShapes bounds how many kinds of names are told apart, and shapeSample how many
	// keys of each are asked for their type.
	mostShapes  = 4096
	shapeSample = 4
	// mostZsets bounds how many sorted sets of times are reported.
	mostZsets = 32
)

// Check returns what is wrong with the options.
func (o DoctorOptions) Check() error { return o.fill() }

func (o *DoctorOptions) fill() error {
	o.Lifetime, o.Stale = cmp.Or(o.Lifetime, defaultLifetime), cmp.Or(o.Stale, defaultStale)
	o.Sample, o.Time = cmp.Or(o.Sample, defaultSample), cmp.Or(o.Time, defaultWalk)
	switch {
	case o.Sample < 10 || o.Sample > maxSample:
		return fmt.Errorf("--sample: must be between 10 and %d, is %d", maxSample, o.Sample)
	case o.Lifetime < time.Second:
		return fmt.Errorf("--lifetime: must be at least 1s, is %v", o.Lifetime)
	case o.Stale < time.Second:
		return fmt.Errorf("--stale: must be at least 1s, is %v", o.Stale)
	case o.Time < time.Second:
		return fmt.Errorf("--time: must be at least 1s, is %v", o.Time)
	case o.Now.IsZero():
		return errors.New("now: is required")
	case o.Layout == "" && o.Key != "":
		return errors.New("--key: say with --layout what it is")
	}
	if o.Layout != "" {
		_, err := o.Names.read(o.Layout)
		return err
	}
	_, err := Names{Records: o.Records, Sets: o.Sets, Friends: o.Friends}.read(OnlineZset)
	return err
}

// doctor is a look under way.
type doctor struct {
	*Source
	opts     DoctorOptions
	report   *Report
	families map[string]*family // by what they are: bitmaps, minutes, friends, records, sets
	shapes   map[string]int
	zsets    []string
}

// family is the keys of one template that a walk has found.
type family struct {
	template template
	count    int64
	sample   []string // at random, for families larger than it
	kinds    map[string]int64
}

// Doctor looks at a hand-built system, and changes nothing. It walks over the names
// of all keys once, unless a layout is named whose keys are known, and looks at a sample of
// what is large.
func Doctor(ctx context.Context, s *Source, o DoctorOptions) (*Report, error) {
	if err := o.fill(); err != nil {
		return nil, err
	}
	d := &doctor{Source: s, opts: o, report: &Report{At: o.Now, Findings: []Finding{}}, families: make(map[string]*family), shapes: make(map[string]int)}
	if err := d.prepare(); err != nil {
		return nil, err
	}

	// Find what there is.
	size, err := s.number(ctx, s.client.B().Dbsize().Build())
	if err != nil {
		return nil, err
	}
	d.report.Keyspace = size
	if err := d.walk(ctx); err != nil {
		return nil, err
	}

	// Look at each.
	for _, look := range []func(context.Context) error{d.lookAtZsets, d.lookAtBitmaps, d.lookAtMinutes, d.lookAtFriends} {
		if err := look(ctx); err != nil {
			return nil, err
		}
	}
	for i := range d.report.Findings {
		d.report.Faults += len(d.report.Findings[i].Faults)
	}
	return d.report, nil
}

// prepare makes the families that the walk tells apart.
func (d *doctor) prepare() error {
	add := func(name, text string, places ...string) error {
		t, err := parseTemplate(text, places...)
		d.families[name] = &family{template: t, kinds: make(map[string]int64)}
		return err
	}
	of := func(layout Layout) string {
		if d.opts.Layout == layout {
			return cmp.Or(d.opts.Key, defaultKeys[layout])
		}
		return defaultKeys[layout]
	}
	return errors.Join(
		add("bitmaps", of(LoginBitmaps), "month", "kind", "user"),
		add("minutes", of(MinuteSets), "minute"),
		add("friends", cmp.Or(d.opts.Friends, "user:{user}:friends"), "user"),
		add("records", cmp.Or(d.opts.Records, "login:{user}"), "user"),
		add("sets", cmp.Or(d.opts.Sets, of(OnlineZset)+":{user}"), "user"),
	)
}

// order is that in which a name is compared with the families.
var order = []string{"bitmaps", "minutes", "friends", "records", "sets"}

// walk finds the families and the sorted sets.
func (d *doctor) walk(ctx context.Context) error {
	if d.opts.Layout == OnlineZset || d.opts.Layout == LastSeenZset || d.opts.Layout == HeartbeatZset {
		d.zsets = []string{cmp.Or(d.opts.Key, defaultKeys[d.opts.Layout])}
	}
	limited, cancel := context.WithTimeoutCause(ctx, d.opts.Time, errEnough)
	defer cancel()
	err := d.walkKeys(limited, "*", position{}, func(keys []string, _ position) error {
		d.report.Walked += int64(len(keys))
		if d.opts.Progress != nil {
			d.opts.Progress(d.report.Walked)
		}
		return d.sort(limited, keys)
	})
	if err != nil && over(limited, err) && ctx.Err() == nil {
		d.report.CutShort = true
		return nil
	}
	return err
}

// sort puts keys into their families, and asks for the type of names of a shape that is new.
func (d *doctor) sort(ctx context.Context, keys []string) error {
	var unknown []string
	for _, key := range keys {
		if d.place(key) {
			continue
		}
		shape := shapeOf(key)
		if n := d.shapes[shape]; n < shapeSample && (n > 0 || len(d.shapes) < mostShapes) && d.opts.Layout == "" {
			d.shapes[shape]++
			unknown = append(unknown, key)
		}
	}
	cmds := make([]rueidis.Completed, len(unknown))
	for i, key := range unknown {
		cmds[i] = d.client.B().Type().Key(key).Build()
	}
	types, err := d.all(ctx, cmds...)
	if err != nil {
		return err
	}
	for i, key := range unknown {
		if text, _ := types[i].ToString(); text == "zset" && len(d.zsets) < mostZsets && !slices.Contains(d.zsets, key) {
			d.zsets = append(d.zsets, key)
		}
	}
	return nil
}

// place puts a key into its family, if it has one.
func (d *doctor) place(key string) bool {
	for _, name := range order {
		f := d.families[name]
		values, ok := f.template.match(key)
		if !ok {
			continue
		}
		f.count++
		if name == "bitmaps" && len(f.kinds) < 64 {
			f.kinds[values["kind"]]++
		}
		// SCAN comes upon keys in the order of a hash, so the first of them are a sample at random.
		if len(f.sample) < d.opts.Sample {
			f.sample = append(f.sample, key)
		}
		return true
	}
	return false
}

var digits = regexp.MustCompile(`[0-9a-fA-F-]*[0-9][0-9a-fA-F-]*`)

// shapeOf is a name without what tells one of its family from the next.
func shapeOf(key string) string { return digits.ReplaceAllString(key, "#") }

// share is how many of a whole a sample says there are: exact if the sample is the
// whole, else the ends of the 95 % interval of Wilson's score.
func share(hits, sample int, whole int64) Count {
	if int64(sample) >= whole || sample == 0 {
		return Count{N: int64(hits), Of: whole, Low: int64(hits), High: int64(hits)}
	}
	const z = 1.96
	n, p := float64(sample), float64(hits)/float64(sample)
	middle := (p + z*z/(2*n)) / (1 + z*z/n)
	half := z / (1 + z*z/n) * math.Sqrt(p*(1-p)/n+z*z/(4*n*n))
	all := float64(whole)
	return Count{
		N: int64(math.Round(p * all)), Of: whole, Estimated: true,
		Low: int64(max(0, (middle-half)*all)), High: int64(min(1, middle+half) * all),
	}
}

// memory estimates what keys take, from a sample of them.
func (d *doctor) memory(ctx context.Context, keys []string, whole int64) (Bytes, error) {
	const most = 200
	keys = keys[:min(len(keys), most)]
	var sum, squares float64
	for some := range slices.Chunk(keys, 50) {
		cmds := make([]rueidis.Completed, len(some))
		for i, key := range some {
			cmds[i] = d.client.B().MemoryUsage().Key(key).Samples(50).Build()
		}
		answers, err := d.all(ctx, cmds...)
		if err != nil {
			return Bytes{}, err
		}
		for i := range answers {
			n, _ := answers[i].AsInt64() // 0 for a key that is gone
			sum, squares = sum+float64(n), squares+float64(n)*float64(n)
		}
	}
	if len(keys) == 0 {
		return Bytes{}, nil
	}
	n := float64(len(keys))
	mean := sum / n
	out := Bytes{N: int64(mean * float64(whole)), Estimated: int64(len(keys)) < whole}
	if out.Estimated && n > 1 {
		deviation := math.Sqrt(max(0, squares/n-mean*mean) / n)
		out.PlusMinus = int64(1.96 * deviation * float64(whole))
	}
	return out, nil
}

// quoted returns a text as an argument of a shell.
func quoted(text string) string {
	if text != "" && strings.Trim(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.:/") == "" {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
