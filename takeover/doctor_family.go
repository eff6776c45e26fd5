package takeover

import (
	"context"
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/redis/rueidis"
)

// lookAtBitmaps reports login days.
func (d *doctor) lookAtBitmaps(ctx context.Context) error {
	family := d.families["bitmaps"]
	if family.count == 0 {
		return nil
	}
	f := Finding{Layout: LoginBitmaps, Key: family.template.text, Entries: family.count, Sampled: len(family.sample), Facts: []string{}, Faults: []Fault{}}
	var err error
	if f.Memory, err = d.memory(ctx, family.sample, family.count); err != nil {
		return err
	}
	ttls, err := d.ttls(ctx, family.sample)
	if err != nil {
		return err
	}
	values, there, err := d.bitmaps(ctx, family.sample)
	if err != nil {
		return err
	}

	// Days are counted where the bitmap is one; each later write to Rollcall is one bit a day.
	expiring, soon, odd, marks, lost := 0, 0, 0, 0, 0
	for i := range family.sample {
		n := 0
		for _, b := range []byte(values[i]) {
			n += bits.OnesCount8(b)
		}
		marks += n
		if there[i] && (len(values[i]) > 4 || n > 31) || !there[i] {
			odd++
		}
		if ttls[i] >= 0 {
			expiring++
			lost += n
			if ttls[i] < 8*24*time.Hour {
				soon++
			}
		}
	}
	f.fault("expires", share(expiring, len(family.sample), f.Entries), "bitmaps have an expiry: their days are lost when it runs out, copied or not")
	f.fault("expires_soon", share(soon, len(family.sample), f.Entries), "run out within 8 days, before the next weekly copy is sure to have seen them")
	f.fault("days_lost", estimate(lost, len(family.sample), f.Entries, marks), "login days expire with them")
	f.fault("odd", share(odd, len(family.sample), f.Entries), "are no bitmaps of one month (longer than 4 bytes, or of another type)")
	if f.Entries >= 1000 {
		f.fault("keys_scan", exactly(d.report.Keyspace, d.report.Keyspace), "keys are walked by one KEYS for each question about all users, and Redis answers nobody meanwhile")
	}
	f.Rollcall = f.Entries*bytesOfUser/12 + int64(marks)*f.Entries/int64(max(1, len(family.sample)))/4
	var kinds []string
	for _, kind := range slices.Sorted(maps.Keys(family.kinds)) {
		kinds = append(kinds, fmt.Sprintf("%s %s", visible(kind), humanize.Comma(family.kinds[kind])))
	}
	f.fact("bitmaps by kind: %s", strings.Join(kinds, ", "))
	if len(family.kinds) > 1 {
		f.fact("the same id may be different people in different kinds: see --map")
	}
	f.Commands = []string{"rollcall import redis --from URL --layout login-bitmaps --key " + quoted(f.Key)}
	d.report.Findings = append(d.report.Findings, f)
	return nil
}

// estimate scales what a sample holds of something to the whole.
func estimate(part, sample int, whole int64, of int) Count {
	scale := float64(whole) / float64(max(1, sample))
	c := Count{N: int64(float64(part) * scale), Of: int64(float64(of) * scale), Estimated: int64(sample) < whole}
	c.Low, c.High = c.N, c.N
	if c.Estimated && of > 0 {
		s := share(part, of, c.Of)
		c.Low, c.High = s.Low, s.High
	}
	return c
}

// bitmaps reads bitmaps; of a key that is none, there is false. One that is longer than any
// month is read in part.
func (d *doctor) bitmaps(ctx context.Context, keys []string) (values []string, there []bool, err error) {
	for some := range slices.Chunk(keys, portion) {
		cmds := make([]rueidis.Completed, len(some))
		for i, key := range some {
			cmds[i] = d.client.B().Type().Key(key).Build()
		}
		types, err := d.all(ctx, cmds...)
		if err != nil {
			return nil, nil, err
		}
		for i, key := range some {
			cmds[i] = d.client.B().Type().Key(key).Build()
			if kind, _ := types[i].ToString(); kind == "string" {
				cmds[i] = d.client.B().Getrange().Key(key).Start(0).End(4).Build()
			}
		}
		answers, err := d.all(ctx, cmds...)
		if err != nil {
			return nil, nil, err
		}
		for i := range answers {
			text, _ := answers[i].ToString()
			kind, _ := types[i].ToString()
			if kind != "string" {
				text = ""
			}
			values, there = append(values, text), append(there, kind == "string")
		}
	}
	return values, there, nil
}

// ttls asks how long keys have; negative for those without an expiry.
func (d *doctor) ttls(ctx context.Context, keys []string) ([]time.Duration, error) {
	out := make([]time.Duration, 0, len(keys))
	for some := range slices.Chunk(keys, portion) {
		cmds := make([]rueidis.Completed, len(some))
		for i, key := range some {
			cmds[i] = d.client.B().Ttl().Key(key).Build()
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
			out = append(out, time.Duration(n)*time.Second)
		}
	}
	return out, nil
}

// union is how many minutes the sets that make a list of who is online reach back.
const union = 10

// lookAtMinutes reports sets of the minutes of an hour.
func (d *doctor) lookAtMinutes(ctx context.Context) error {
	family := d.families["minutes"]
	if family.count == 0 {
		return d.lookAtOneSet(ctx)
	}
	f := Finding{Layout: MinuteSets, Key: family.template.text, Entries: family.count, Sampled: len(family.sample), Facts: []string{}, Faults: []Fault{}}
	slices.Sort(family.sample)
	ttls, err := d.ttls(ctx, family.sample)
	if err != nil {
		return err
	}
	if f.Memory, err = d.memory(ctx, family.sample, family.count); err != nil {
		return err
	}
	members, endless, old, odd := int64(0), 0, 0, 0
	for i, key := range family.sample {
		n, err := d.number(ctx, d.client.B().Scard().Key(key).Build())
		if wrongType(err) {
			odd++
			continue
		}
		if err != nil {
			return err
		}
		members += n
		values, _ := family.template.match(key)
		if age := minuteAge(d.opts.Now, values["minute"]); ttls[i] == -time.Second {
			endless++
		} else if age >= union && ttls[i] > 0 {
			old++
		}
	}
	f.fault("no_expiry", exactly(int64(endless), f.Entries), "minute sets have no expiry: an hour later their users are online again, and they never shrink")
	f.fault("old_minutes", exactly(int64(old), f.Entries), "minute sets are older than the %d minutes that are asked for, and still there", union)
	f.fault("odd", exactly(int64(odd), f.Entries), "have the name of a minute set and are none")
	f.fact("%s members in all; a user is in a set for each minute", humanize.Comma(members))
	f.Rollcall = members / union * bytesOfUser
	f.Commands = []string{"rollcall import redis --from URL --layout minute-sets --key " + quoted(f.Key)}
	d.report.Findings = append(d.report.Findings, f)
	return nil
}

// lookAtOneSet looks for one set that stands for ten minutes, in the place of ten.
func (d *doctor) lookAtOneSet(ctx context.Context) error {
	key := strings.TrimRight(d.families["minutes"].template.key(nil), ":")
	kind, err := d.kind(ctx, key)
	if err != nil || kind != "set" {
		return err
	}
	n, err := d.number(ctx, d.client.B().Scard().Key(key).Build())
	if err != nil {
		return err
	}
	f := Finding{Layout: MinuteSets, Key: key, Entries: n, Sampled: 1, Rollcall: n * bytesOfUser, Facts: []string{}, Faults: []Fault{}}
	if f.Memory, err = d.memory(ctx, []string{key}, 1); err != nil {
		return err
	}
	f.fault("one_set", exactly(n, n), "users stand in one set that expires as a whole: who is online is wrong by up to nine minutes")
	f.Commands = []string{"send heartbeats to Rollcall from now on: such a set holds no times that could be moved"}
	d.report.Findings = append(d.report.Findings, f)
	return nil
}

// minuteAge is how many minutes ago a minute of the hour was last.
func minuteAge(now time.Time, minute string) int {
	var m int
	if _, err := fmt.Sscanf(minute, "%d", &m); err != nil {
		return 0
	}
	return (now.Minute() - m + 60) % 60
}

// lookAtFriends reports lists of friends.
func (d *doctor) lookAtFriends(ctx context.Context) error {
	family := d.families["friends"]
	if family.count == 0 {
		return nil
	}
	f := Finding{Key: family.template.text, Entries: family.count, Sampled: len(family.sample), Facts: []string{}, Faults: []Fault{}}
	var err error
	if f.Memory, err = d.memory(ctx, family.sample, family.count); err != nil {
		return err
	}
	cmds := make([]rueidis.Completed, len(family.sample))
	for i, key := range family.sample {
		cmds[i] = d.client.B().Type().Key(key).Build()
	}
	types := make([]rueidis.RedisMessage, 0, len(cmds))
	for some := range slices.Chunk(cmds, portion) {
		answers, err := d.all(ctx, some...)
		if err != nil {
			return err
		}
		types = append(types, answers...)
	}
	sets, zsets, edges := 0, 0, int64(0)
	for i, key := range family.sample {
		var c rueidis.Completed
		switch kind, _ := types[i].ToString(); kind {
		case "set":
			sets, c = sets+1, d.client.B().Scard().Key(key).Build()
		case "zset":
			zsets, c = zsets+1, d.client.B().Zcard().Key(key).Build()
		default:
			continue
		}
		n, err := d.number(ctx, c)
		if err != nil {
			return err
		}
		edges += n
	}
	all := estimate(int(edges), len(family.sample), f.Entries, int(edges))
	f.fact("%s with the time of friendship, %s without, of those looked at; about %s friends in all", humanize.Comma(int64(zsets)), humanize.Comma(int64(sets)), humanize.Comma(all.N))
	f.fault("no_time", share(sets, len(family.sample), f.Entries), "lists do not say since when: friends cannot be ordered by it")
	f.Rollcall = all.N * bytesOfFriend
	f.Commands = []string{"add --friends " + quoted(f.Key) + " to the import of who was last seen"}
	d.report.Findings = append(d.report.Findings, f)
	return nil
}

// bytesOfFriend is a friend in a list, with the time and the count of who is named.
const bytesOfFriend = 16
