package takeover

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/redis/rueidis"
)

// What a user and a session take in Rollcall, in bytes (docs/performance.md).
const (
	bytesOfUser    = 31
	bytesOfSession = 230 // half way between one with few fields and one with all
)

// pageSize is the page that a hand-built list is taken to show.
const pageSize = 20

// lookAtZsets reports the sorted sets that hold times.
func (d *doctor) lookAtZsets(ctx context.Context) error {
	slices.Sort(d.zsets)
	for _, key := range d.zsets {
		if kind, err := d.kind(ctx, key); err != nil || kind != "zset" {
			if err != nil {
				return err
			}
			continue
		}
		if err := d.lookAtZset(ctx, key); err != nil {
			return err
		}
	}
	return nil
}

// lookAtZset reports one sorted set, if its scores are times near now.
func (d *doctor) lookAtZset(ctx context.Context, key string) error {
	card, err := d.number(ctx, d.client.B().Zcard().Key(key).Build())
	if err != nil || card == 0 {
		return err
	}
	some, err := d.sampleZset(ctx, key, card)
	if err != nil {
		return err
	}
	times := 0
	for _, m := range some {
		if at, ok := UnitAuto.instant(m.score); ok && at.After(d.opts.Now.AddDate(-10, 0, 0)) && at.Before(d.opts.Now.AddDate(0, 0, 30)) {
			times++
		}
	}
	known := key == defaultKeys[OnlineZset] || key == defaultKeys[LastSeenZset] || key == defaultKeys[HeartbeatZset]
	if d.opts.Layout == "" && !known && times*10 < len(some)*9 {
		return nil // scores of something else
	}

	f := Finding{Layout: d.layoutOf(key, some), Key: key, Entries: card, Sampled: len(some), Facts: []string{}, Faults: []Fault{}}
	if f.Memory, err = d.memory(ctx, []string{key}, 1); err != nil {
		return err
	}
	f.Rollcall = card * bytesOfUser
	if err := d.checkTimes(ctx, &f, some); err != nil {
		return err
	}
	if f.Layout == OnlineZset {
		err = d.checkOnline(ctx, &f, some)
	} else {
		err = d.checkPresence(ctx, &f)
	}
	d.report.Findings = append(d.report.Findings, f)
	return err
}

// layoutOf decides what a sorted set of times is: by its name first, then by its scores.
func (d *doctor) layoutOf(key string, some []member) Layout {
	if d.opts.Layout != "" {
		return d.opts.Layout
	}
	name := strings.ToLower(key)
	milli := 0
	for _, m := range some {
		if m.score >= firstMilliseconds {
			milli++
		}
	}
	switch {
	case strings.Contains(name, "online") || strings.Contains(name, "login") || strings.Contains(name, "session"):
		return OnlineZset
	case strings.Contains(name, "heartbeat") || name == defaultKeys[HeartbeatZset]:
		return HeartbeatZset
	case strings.Contains(name, "seen") || strings.Contains(name, "active") || strings.Contains(name, "access") || milli*2 < len(some):
		return LastSeenZset
	default:
		return HeartbeatZset
	}
}

// sampleZset returns all members of a small sorted set, and members at random of a
// large one.
func (d *doctor) sampleZset(ctx context.Context, key string, card int64) ([]member, error) {
	var out []member
	if card <= int64(d.opts.Sample) {
		err := d.walkZset(ctx, key, 0, func(some []member, _ uint64) error {
			if out = append(out, some...); len(out) >= d.opts.Sample {
				return errEnough
			}
			return nil
		})
		if err == errEnough { //nolint:errorlint // our own, as it is
			err = nil
		}
		return out, err
	}
	for len(out) < d.opts.Sample {
		n := int64(min(portion, d.opts.Sample-len(out)))
		m, err := d.do(ctx, int(n), d.client.B().Zrandmember().Key(key).Count(-n).Withscores().Build())
		if err != nil {
			return nil, err
		}
		scores, err := m.AsZScores()
		if err != nil {
			return nil, d.readError(err)
		}
		if len(scores) == 0 {
			return out, nil
		}
		for _, z := range scores {
			out = append(out, member{z.Member, z.Score})
		}
	}
	return out, nil
}

// between counts members with scores in [from, to), exactly.
func (d *doctor) between(ctx context.Context, key string, from, to float64) (int64, error) {
	text := func(f float64) string {
		if math.IsInf(f, 0) {
			return strconv.FormatFloat(f, 'f', -1, 64)
		}
		return strconv.FormatFloat(f, 'f', 0, 64)
	}
	return d.number(ctx, d.client.B().Zcount().Key(key).Min(text(from)).Max("("+text(to)).Build())
}

// olderThan counts members whose time lies before an instant, in whatever unit.
func (d *doctor) olderThan(ctx context.Context, key string, at time.Time) (int64, error) {
	n, err := d.between(ctx, key, math.Inf(-1), float64(at.Unix()))
	if err != nil {
		return 0, err
	}
	ms, err := d.between(ctx, key, firstMilliseconds, float64(at.UnixMilli()))
	return n + ms, err
}

// checkTimes looks for scores that are no time of this system's.
func (d *doctor) checkTimes(ctx context.Context, f *Finding, some []member) error {
	now := d.opts.Now
	seconds, err := d.between(ctx, f.Key, 1e8, firstMilliseconds)
	if err != nil {
		return err
	}
	milli, err := d.between(ctx, f.Key, firstMilliseconds, 1e15)
	if err != nil {
		return err
	}
	f.fault("no_time", exactly(max(0, f.Entries-seconds-milli), f.Entries), "scores are no time at all")
	if seconds > 0 && milli > 0 {
		fewer, unit := seconds, "seconds"
		if milli < seconds {
			fewer, unit = milli, "milliseconds"
		}
		f.fault("mixed_units", exactly(fewer, f.Entries), "scores count %s, the others do not: they sort, expire and count wrongly", unit)
	}
	ahead, err := d.between(ctx, f.Key, float64(now.Add(aheadBy).Unix()), firstMilliseconds)
	if err != nil {
		return err
	}
	aheadMS, err := d.between(ctx, f.Key, float64(now.Add(aheadBy).UnixMilli()), 1e15)
	if err != nil {
		return err
	}
	f.fault("ahead", exactly(ahead+aheadMS, f.Entries), "lie more than a minute in the future, from clocks that are ahead: they stay online until time has caught up")
	unit := "seconds"
	if milli > seconds {
		unit = "milliseconds"
	}
	f.fact("scores count %s; looked at %s of the members", unit, humanize.Comma(int64(len(some))))
	return nil
}

// checkPresence looks at last-seen times.
func (d *doctor) checkPresence(ctx context.Context, f *Finding) error {
	now := d.opts.Now
	old, err := d.olderThan(ctx, f.Key, now.Add(-5*time.Minute))
	if err != nil {
		return err
	}
	f.fact("online within 5 minutes: %s", humanize.Comma(f.Entries-old))
	stale, err := d.olderThan(ctx, f.Key, now.Add(-d.opts.Stale))
	if err != nil {
		return err
	}
	f.fault("stale", exactly(stale, f.Entries), "were not seen for %s and were never cleared", days(d.opts.Stale))
	if cost := unionSeconds(f.Entries); d.families["friends"].count > 0 && cost >= 0.05 {
		f.fault("friends_block", exactly(f.Entries, f.Entries),
			"members are copied for each question who of the friends is online: that blocks Redis for about %.1f s (%.1f µs a member, as measured: 27 s at 5 million)", cost, unionMicros)
	}
	f.Commands = []string{fmt.Sprintf("rollcall import redis --from URL --layout %s --key %s%s", f.Layout, quoted(visible(f.Key)), d.friendsFlag())}
	return nil
}

// unionMicros is what O5's five steps take for each member seen: 27 s at 5 million.
const unionMicros = 5.4

func unionSeconds(members int64) float64 { return float64(members) * unionMicros / 1e6 }

func (d *doctor) friendsFlag() string {
	if d.families["friends"].count == 0 {
		return ""
	}
	return " --friends " + quoted(d.families["friends"].template.text)
}

// days says a long time in days.
func days(t time.Duration) string {
	if t >= 48*time.Hour && t%(24*time.Hour) == 0 {
		return fmt.Sprintf("%d days", t/(24*time.Hour))
	}
	return short(t)
}

// short says a time as a flag takes it, without what is zero: 24h0m0s is 24h.
func short(t time.Duration) string {
	text := t.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = text[:len(text)-2]
		}
	}
	return text
}

// exist asks which keys there are.
func (d *doctor) exist(ctx context.Context, keys []string) ([]bool, error) {
	out := make([]bool, 0, len(keys))
	for some := range slices.Chunk(keys, portion) {
		cmds := make([]rueidis.Completed, len(some))
		for i, key := range some {
			cmds[i] = d.client.B().Exists().Key(key).Build()
		}
		answers, err := d.all(ctx, cmds...)
		if err != nil {
			return nil, err
		}
		for i := range answers {
			n, err := answers[i].AsInt64()
			if err != nil {
				return nil, d.readError(err)
			}
			out = append(out, n == 1)
		}
	}
	return out, nil
}
