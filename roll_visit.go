package rollcall

import (
	"context"
	"time"
)

// DefaultVisitsKeep is how long the visitors of an hour are kept unless said
// otherwise.
const DefaultVisitsKeep = 400 * 24 * time.Hour

// Visit notes up to MaxVisitors visitors of a name in the hour it is. Past
// MaxVisitNames names they are noted under VisitsOther. A name
// has up to 64 bytes, a visitor 1 to 128; "" is a name like any other. Visitors
// are not users: see [Visits].
func (r *Roll) Visit(ctx context.Context, name string, visitors ...string) error {
	return r.do(ctx, "visit", func() error {
		if err := validateText("name", name, MaxVisitNameLen); err != nil {
			return err
		}
		if len(visitors) > MaxVisitors {
			return Invalid("visitors", "names %d visitors, the limit is %d", len(visitors), MaxVisitors)
		}
		for i, v := range visitors {
			if plainID(v) {
				continue
			}
			if err := validateUser("visitors", v); err != nil {
				return atIndex(err, "visitors", i)
			}
		}
		noted, err := r.engine.Visit(ctx, r.clock.Now(), name, visitors)
		if err == nil && noted != name {
			r.otherVisits.Add(1)
		}
		return err
	})
}

// Visitors estimates how many different visitors a name had in a range of whole
// hours, and in each of its hours (up to 31 days of them) or days (up to 400).
// It may reach into the future, where nobody has been.
func (r *Roll) Visitors(ctx context.Context, q VisitQuery) (VisitFigures, error) {
	return observe(ctx, r, "visitors", func() (VisitFigures, error) {
		if err := r.checkVisitQuery(&q); err != nil {
			return VisitFigures{}, err
		}
		return r.engine.Visitors(ctx, q)
	})
}

func (r *Roll) checkVisitQuery(q *VisitQuery) error {
	if err := validateText("name", q.Name, MaxVisitNameLen); err != nil {
		return err
	}
	setDefault(&q.By, VisitsByDay)
	if q.By != VisitsByDay && q.By != VisitsByHour {
		return Invalid("by", "must be hour or day, is %q", q.By)
	}
	zone := r.opts.Timezone
	for _, end := range []struct {
		field string
		at    *time.Time
	}{{"from", &q.From}, {"to", &q.To}} {
		t := end.at.In(zone)
		if t.Unix() < 0 || t.Year() > 9999 {
			return Invalid(end.field, "must lie between the years 1970 and 9999")
		}
		if start, _ := HourOf(t, zone); !start.Equal(t) {
			return Invalid(end.field, "must be the beginning of an hour in the time zone %s, is %s", zone, t.Format(time.RFC3339Nano))
		}
		*end.at = t
	}
	most := MaxVisitDays
	if q.By == VisitsByHour {
		most = MaxVisitDaysByHour
	}
	switch {
	case !q.From.Before(q.To):
		return Invalid("to", "must be later than from")
	case q.To.After(q.From.AddDate(0, 0, most)):
		return Invalid("to", "must be at most %d days after from, by %s", most, q.By)
	}
	return nil
}

// VisitNames lists the names that have visitors, in order.
func (r *Roll) VisitNames(ctx context.Context) ([]VisitName, error) {
	return observe(ctx, r, "visit_names", func() ([]VisitName, error) { return r.engine.VisitNames(ctx) })
}

// DeleteVisitName forgets a name and all that was counted under it;
// CodeNotFound.
func (r *Roll) DeleteVisitName(ctx context.Context, name string) error {
	return r.do(ctx, "delete_visit_name", func() error {
		if err := validateText("name", name, MaxVisitNameLen); err != nil {
			return err
		}
		return r.engine.DeleteVisitName(ctx, name)
	})
}
