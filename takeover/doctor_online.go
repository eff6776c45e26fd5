package takeover

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/redis/rueidis"
)

// checkOnline looks at an online list: entries that are dead, pages that are short,
// and sets of sessions that say something else.
func (d *doctor) checkOnline(ctx context.Context, f *Finding, some []member) error {
	live := d.opts.Now.Add(-d.opts.Lifetime)
	records := d.families["records"]
	hasRecords := records.count > 0 || d.opts.Records != ""

	// Entries are dead by their score, or because their record is gone.
	expired, err := d.olderThan(ctx, f.Key, live)
	if err != nil {
		return err
	}
	f.fault("expired", exactly(expired, f.Entries), "in the list are dead: they logged in more than %s ago (--lifetime), and no job has removed them yet", days(d.opts.Lifetime))
	dead, gone, err := d.deadOf(ctx, some, hasRecords)
	if err != nil {
		return err
	}
	if hasRecords {
		f.fault("record_gone", share(gone, len(some), f.Entries), "in the list have no login record %s any more", quoted(records.template.text))
		if expired > 0 || gone > 0 {
			f.fault("dead", share(dead, len(some), f.Entries), "in the list are dead in all, expired or without a record")
		}
	} else {
		f.fact("no login records were found: name them with --records, such as 'login:{user}'")
	}
	if err := d.checkPages(ctx, f, hasRecords); err != nil {
		return err
	}
	sessions, err := d.checkSets(ctx, f, some)
	if err != nil {
		return err
	}
	f.Rollcall = (f.Entries-expired)*bytesOfSession + f.Entries*bytesOfUser
	command := fmt.Sprintf("rollcall import redis --from URL --layout %s --key %s --lifetime %s", f.Layout, quoted(visible(f.Key)), short(d.opts.Lifetime))
	if hasRecords {
		command += " --records " + quoted(records.template.text)
	}
	if sessions {
		command += " --sets " + quoted(d.families["sets"].template.text)
	}
	f.Commands = []string{command + d.friendsFlag()}
	return nil
}

// deadOf counts those of some entries that are dead, and those whose record is gone.
func (d *doctor) deadOf(ctx context.Context, some []member, hasRecords bool) (dead, gone int, err error) {
	there := make([]bool, len(some))
	if hasRecords {
		keys := make([]string, len(some))
		for i, m := range some {
			keys[i] = d.families["records"].template.ofUser(m.name)
		}
		if there, err = d.exist(ctx, keys); err != nil {
			return 0, 0, err
		}
	}
	live := d.opts.Now.Add(-d.opts.Lifetime)
	for i, m := range some {
		at, ok := UnitAuto.instant(m.score)
		old := !ok || at.Before(live)
		noRecord := hasRecords && !there[i]
		if noRecord {
			gone++
		}
		if old || noRecord {
			dead++
		}
	}
	return dead, gone, nil
}

// checkPages looks at the first pages as the list shows them.
func (d *doctor) checkPages(ctx context.Context, f *Finding, hasRecords bool) error {
	const pages = 5
	c := d.client.B().Zrevrange().Key(f.Key).Start(0).Stop(pages*pageSize - 1).Withscores().Build()
	m, err := d.do(ctx, pages*pageSize, c)
	if err != nil {
		return err
	}
	scores, err := m.AsZScores()
	if err != nil {
		return d.readError(err)
	}
	short, worst, missing := 0, 0, 0
	shown := 0
	for page := range slices.Chunk(scores, pageSize) {
		some := make([]member, len(page))
		for i, z := range page {
			some[i] = member{z.Member, z.Score}
		}
		dead, _, err := d.deadOf(ctx, some, hasRecords)
		if err != nil {
			return err
		}
		shown++
		if missing += dead; dead > 0 {
			short++
		}
		worst = max(worst, dead)
	}
	f.fault("short_pages", exactly(int64(short), int64(shown)), "first pages of %d are short or show the dead: %d entries in all, %d on the worst page", pageSize, missing, worst)
	return nil
}

// checkSets compares the list with the sets of each user's sessions, both ways. It
// reports whether the list is one of sessions.
func (d *doctor) checkSets(ctx context.Context, f *Finding, some []member) (bool, error) {
	sets := d.families["sets"]
	if sets.count == 0 {
		return false, nil
	}

	// Sessions of the list that are not in their user's set.
	var cmds []rueidis.Completed
	for _, m := range some {
		if user, session, ok := strings.Cut(m.name, ":"); ok {
			for _, inSet := range []string{session, m.name} { // see entryOf
				cmds = append(cmds, d.client.B().Sismember().Key(sets.template.ofUser(user)).Member(inSet).Build())
			}
		}
	}
	if len(cmds) == 0 {
		return false, nil
	}
	missing := 0
	for part := range slices.Chunk(cmds, portion) {
		answers, err := d.whatever(ctx, part...)
		if err != nil {
			return true, err
		}
		for i := 0; i < len(answers); i += 2 {
			session, _ := answers[i].AsInt64()
			whole, _ := answers[i+1].AsInt64()
			if session+whole == 0 {
				missing++
			}
		}
	}
	f.fault("not_in_set", share(missing, len(cmds)/2, f.Entries), "sessions in the list are not in their user's set: they cannot be kicked with their user")

	// Sessions of the sets that are not in the list.
	looked, orphans := 0, 0
	for _, key := range sets.sample {
		if looked >= d.opts.Sample {
			break
		}
		values, _ := sets.template.match(key)
		err := d.walkSet(ctx, key, func(sessions []string) error {
			names := make([]string, len(sessions))
			for i, session := range sessions {
				names[i] = entryOf(values["user"], session)
			}
			_, there, err := d.scores(ctx, f.Key, names)
			if err != nil {
				return err
			}
			for _, in := range there {
				if looked++; !in {
					orphans++
				}
			}
			return nil
		})
		if err != nil && !wrongType(err) {
			return true, err
		}
	}
	of := exactly(int64(orphans), int64(looked))
	f.fault("not_in_list", of, "sessions in users' sets are not in the list (%s sets looked at)", humanize.Comma(int64(len(sets.sample))))
	return true, nil
}
