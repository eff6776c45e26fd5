package takeover

import (
	"context"
	"fmt"
	"slices"

	"github.com/rollcall/rollcall"
)

// shadowDays asks on which days of a month a user was there.
func (m *Importer) shadowDays(ctx context.Context, q *question, key string) (*differing, error) {
	months := m.monthsOf([]string{key})
	if len(months) == 0 {
		return nil, nil //nolint:nilnil // it is rightly not here
	}
	month := months[0]
	var days []rollcall.Day
	var here rollcall.Attended
	there := false
	err := q.ask(func() error {
		texts, err := m.src.texts(ctx, []string{key}, mostOfMonth)
		if err != nil || !texts[0].there {
			return err
		}
		days, err = m.daysOf(month.month, texts[0])
		there = err == nil
		return nil
	}, func() (err error) {
		here, err = m.to.Attended(ctx, month.user, month.kind, month.month.Range())
		return err
	})
	if err != nil || !there || slices.Equal(days, here.Days) {
		return nil, err
	}
	old := fmt.Sprint(days)
	return &differing{old: old, here: fmt.Sprint(here.Days), same: old}, nil
}
