package takeover

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rollcall/rollcall"
)

// oldMonth is a bitmap.
type oldMonth struct {
	key        string
	user, kind string
	month      rollcall.Month
}

// readBitmaps reads the bitmaps, all or those of one month.
func (m *Importer) readBitmaps(ctx context.Context, month map[string]string) error {
	from := m.state.At
	if month != nil {
		from = position{}
	}
	return m.src.walkKeys(ctx, m.names.family.glob(month), from, func(keys []string, at position) error {
		m.read(len(keys))
		if err := m.enterBitmaps(ctx, keys); err != nil || month != nil {
			return err
		}
		return m.state.save(at, m.high)
	})
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
		out = append(out, oldMonth{key, user, kind, rollcall.MonthOf(rollcall.DateOf(first.Year(), first.Month(), 1))})
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

// enterBitmaps enters the days of bitmaps.
func (m *Importer) enterBitmaps(ctx context.Context, keys []string) error {
	months := m.monthsOf(keys)
	names := make([]string, len(months))
	for i := range months {
		names[i] = months[i].key
	}
	if len(names) == 0 {
		return nil
	}
	texts, err := m.src.texts(ctx, names, mostOfMonth)
	if err != nil {
		return err
	}
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
