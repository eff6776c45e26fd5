package takeover

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"time"

	"github.com/rollcall/rollcall"
)

// oldMonth is a bitmap.
type oldMonth struct {
	key        string
	user, kind string
	month      rollcall.Month
	bits       uint32 // its days, once they are read
	rank       uint64 // of the user, once it is needed
}

// readBitmaps reads the bitmaps, all or those of one month. They are entered by the rank of their
// users: a set of a day and a partition is then merged once with many marks.
func (m *Importer) readBitmaps(ctx context.Context, month map[string]string) error {
	from := m.state.At
	if month != nil {
		from = position{}
	}
	var gathered []oldMonth
	enter := func(at position) error {
		err := m.enterMonths(ctx, gathered)
		gathered = gathered[:0]
		if err != nil || month != nil {
			return err
		}
		return m.state.save(at, m.high)
	}
	last := from
	err := m.src.walkKeys(ctx, m.names.family.glob(month), from, func(keys []string, at position) error {
		m.read(len(keys))
		some, err := m.readMonths(ctx, keys)
		if err != nil {
			return err
		}
		last, gathered = at, append(gathered, some...)
		if len(gathered) < 2*window {
			return nil
		}
		return enter(at)
	})
	if err != nil {
		return err
	}
	return enter(last)
}

// monthsOf reads what the names of keys say. What has no name of a month is passed over.
func (m *Importer) monthsOf(keys []string) []oldMonth {
	var out []oldMonth
	for _, key := range keys {
		values, ok := m.names.family.match(key)
		if !ok {
			continue
		}
		first, err := time.Parse("2006-01", values["month"])
		if err != nil || first.Year() < 1970 {
			m.refuse(key, errors.New("it names no month since 1970"))
			continue
		}
		kind := values["kind"]
		user := m.opts.Kinds[kind] + values["user"]
		if err := errors.Join(rollcall.CheckKind(kind), checkUser(user)); err != nil {
			m.refuse(key, err)
			continue
		}
		out = append(out, oldMonth{key: key, user: user, kind: kind, month: rollcall.MonthOf(rollcall.DateOf(first.Year(), first.Month(), 1))})
	}
	return out
}

// mostOfMonth is how many bytes a bitmap of a month has at most: what comes behind its days is
// read as far as here, to say what is wrong.
const mostOfMonth = 64

// daysOf returns the days of a bitmap.
func (m *Importer) daysOf(month rollcall.Month, old oldText) ([]rollcall.Day, error) {
	bitmap := old.text
	switch {
	case old.other:
		return nil, errors.New("it is no bitmap")
	case len(bitmap) > mostOfMonth:
		return nil, fmt.Errorf("it has more than %d bytes, which is no month", mostOfMonth)
	}
	var days []rollcall.Day
	for i := range 8 * len(bitmap) {
		if bitmap[i/8]&(0x80>>(i%8)) == 0 {
			continue
		}
		n := i - m.opts.FirstBit + 1
		if n < 1 || n > month.Len() {
			return nil, fmt.Errorf("bit %d is no day of %s (is --first-bit right?)", i, month)
		}
		days = append(days, month.Day(n))
	}
	return days, nil
}

// readMonths reads the bitmaps of keys, with their days.
func (m *Importer) readMonths(ctx context.Context, keys []string) ([]oldMonth, error) {
	months := m.monthsOf(keys)
	names := make([]string, len(months))
	for i := range months {
		names[i] = months[i].key
	}
	texts, err := m.src.texts(ctx, names, mostOfMonth)
	if err != nil {
		return nil, err
	}
	out := months[:0]
	for i, month := range months {
		if !texts[i].there {
			continue // it has expired since
		}
		days, err := m.daysOf(month.month, texts[i])
		if err != nil {
			m.refuse(month.key, err)
			continue
		}
		for _, day := range days {
			month.bits |= 1 << (day - month.month.Day(1))
		}
		out = append(out, month)
	}
	return out, nil
}

// enterMonths enters the days of bitmaps, sorted by the rank of their users.
func (m *Importer) enterMonths(ctx context.Context, months []oldMonth) error {
	for i := range months {
		months[i].rank = rank(months[i].user)
	}
	slices.SortFunc(months, func(a, b oldMonth) int { return cmp.Compare(a.rank, b.rank) })
	var marks []rollcall.Mark
	flush := func() error {
		if len(marks) == 0 {
			return nil
		}
		marked, already, err := m.to.ImportMarks(ctx, marks...)
		m.summary.Entered += int64(marked)
		m.summary.Already += int64(already)
		marks = marks[:0]
		return err
	}
	for _, month := range months {
		for rest := month.bits; rest != 0; rest &= rest - 1 {
			day := month.month.Day(1) + rollcall.Day(bits.TrailingZeros32(rest))
			marks = append(marks, rollcall.Mark{User: month.user, Kind: month.kind, Day: day})
		}
		if len(marks) > rollcall.MaxMarks-31 {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	return flush()
}
