package takeover

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/rollcall/rollcall"
)

// The bitmaps of a user come in any order, a month each. To ask for the days of each month would
// be a dozen questions about a user and a year. So months that follow one another in a year, a run,
// are compared together when its last month comes, and the others are passed over.
//
// A month that begins meanwhile would be the last of a run, and might never come: SCAN need not
// return a key that is made while it goes on. So the month of now is a run of its own. It is that of
// the day before yesterday, wherever on earth the old system is.

// compareDays compares each month of each user and kind.
func (m *Importer) compareDays(ctx context.Context, c *Comparison) error {
	now := rollcall.MonthOf(rollcall.DayOf(m.opts.Now(), time.UTC) - 2)
	return m.src.walkKeys(ctx, m.names.family.glob(nil), position{}, func(keys []string, _ position) error {
		before := m.summary.Refused
		months := m.monthsOf(keys)
		c.Passed += m.summary.Refused - before
		lasts, err := m.lastsOfRuns(ctx, months, now)
		if err != nil {
			return err
		}
		for some := range slices.Chunk(lasts, runsAtOnce) {
			if err := m.compareRuns(ctx, c, some, now); err != nil {
				return err
			}
		}
		return nil
	})
}

// runsAtOnce bounds how many runs are read and asked for together: each may have twelve months.
const runsAtOnce = 500

// ownRun reports whether a month is a run of its own.
func ownRun(month, now rollcall.Month) bool { return month >= now }

// lastsOfRuns returns the months that are the last of their run.
func (m *Importer) lastsOfRuns(ctx context.Context, months []oldMonth, now rollcall.Month) ([]oldMonth, error) {
	next := make([]string, len(months))
	for i, month := range months {
		if after := month.month.Next(); after/100 == month.month/100 && !ownRun(after, now) {
			next[i] = m.keyOfMonth(month.key, after)
		} else {
			next[i] = month.key // not asked about: it is there, or has gone meanwhile
		}
	}
	texts, err := m.src.texts(ctx, next, mostOfMonth)
	if err != nil {
		return nil, err
	}
	lasts := months[:0]
	for i, month := range months {
		if next[i] == month.key || !texts[i].there {
			lasts = append(lasts, month)
		}
	}
	return lasts, nil
}

// keyOfMonth returns the key of the same user and kind for another month.
func (m *Importer) keyOfMonth(key string, month rollcall.Month) string {
	values, _ := m.names.family.match(key) // it has been met
	values["month"] = month.String()
	return m.names.family.key(values)
}

// compareRuns compares runs by their last months.
func (m *Importer) compareRuns(ctx context.Context, c *Comparison, lasts []oldMonth, now rollcall.Month) error {
	// The months of a run, the last one first, and those before it in its year, as it may reach.
	var all []oldMonth
	ends := make([]int, len(lasts)) // where the months of each end
	for i, last := range lasts {
		all = append(all, last)
		for month := last.month - 1; month%100 > 0 && !ownRun(last.month, now); month-- {
			all = append(all, oldMonth{key: m.keyOfMonth(last.key, month), month: month})
		}
		ends[i] = len(all)
	}
	names := make([]string, len(all))
	for i := range all {
		names[i] = all[i].key
	}
	texts, err := m.src.texts(ctx, names, mostOfMonth)
	if err != nil {
		return err
	}

	// A run ends before the first month that is not there.
	from, runs := 0, make([]int, len(lasts)) // how many months each has
	for i, end := range ends {
		for from+runs[i] < end && texts[from+runs[i]].there {
			runs[i]++
		}
		from = end
	}

	// One question about each.
	here := make([][]rollcall.Day, len(lasts))
	err = each(ctx, len(lasts), func(ctx context.Context, i int) error {
		if runs[i] == 0 {
			return nil // it has gone meanwhile
		}
		whole := lasts[i].month.Range()
		whole.From = (lasts[i].month - rollcall.Month(runs[i]-1)).Day(1)
		return again(ctx, func() (err error) {
			here[i], err = daysOf(ctx, m.to, lasts[i].user, lasts[i].kind, whole)
			return err
		})
	})
	if err != nil {
		return err
	}
	from = 0
	for i, end := range ends {
		for at := from; at < from+runs[i]; at++ {
			m.compareMonth(c, all[at], texts[at], here[i])
		}
		from = end
	}
	return nil
}

// compareMonth compares a month with what is there of it among days in order.
func (m *Importer) compareMonth(c *Comparison, month oldMonth, old oldText, days []rollcall.Day) {
	was, err := m.daysOf(month.month, old)
	if err != nil {
		c.Passed++
		return
	}
	r := month.month.Range()
	first, _ := slices.BinarySearch(days, r.From)
	behind, _ := slices.BinarySearch(days, r.To+1)
	c.Compared++
	if here := days[first:behind]; !slices.Equal(was, here) {
		c.differ(month.key, fmt.Sprint(was), fmt.Sprint(here), "other days")
	}
}

// again asks up to three times while there is no answer: one that came late among a million is no
// reason to begin a comparison anew.
func again(ctx context.Context, ask func() error) error {
	for left := 2; ; left-- {
		err := ask()
		if left == 0 || ctx.Err() != nil || rollcall.CodeOf(err) != rollcall.CodeUnavailable {
			return err
		}
	}
}
