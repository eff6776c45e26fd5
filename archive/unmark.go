package archive

import (
	"context"

	"github.com/rollcall/rollcall"
)

// Marked says of each mark whether it stands here, of a day that is offloaded. Up
// to [MaxChanges] marks, each of a kind.
func (db *DB) Marked(ctx context.Context, marks []rollcall.Mark) ([]bool, error) {
	parts, err := unmarking(marks)
	if err != nil || len(parts) == 0 {
		return nil, err
	}
	found := make(map[Row]uint32, len(marks))
	err = db.read(ctx, func(s session) error {
		for _, part := range parts {
			offloaded, err := offloadedIn(s, part.kind(), part.month())
			if err != nil {
				return err
			}
			if offloaded == 0 {
				continue
			}
			days, err := stored(s, part)
			if err != nil {
				return err
			}
			for user, has := range days {
				found[Row{User: user, Kind: part.kind(), Month: part.month()}] = has & offloaded
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return givenIndex(marks, found), nil
}

// givenIndex says of each mark whether it is among the days of rows.
func givenIndex(marks []rollcall.Mark, rows map[Row]uint32) []bool {
	out := make([]bool, len(marks))
	for i, m := range marks {
		out[i] = rows[Row{User: m.User, Kind: m.Kind, Month: rollcall.MonthOf(m.Day)}]&rollcall.Bit(m.Day) != 0
	}
	return out
}

// Unmark takes marks back of days that are offloaded and says of each whether it
// was there. Of other days the hot store decides, and nothing is changed. It needs
// no lease, and waits while a batch is being copied. Up to [MaxChanges] marks, each
// of a kind.
func (db *DB) Unmark(ctx context.Context, marks []rollcall.Mark) ([]bool, error) {
	parts, err := unmarking(marks)
	if err != nil || len(parts) == 0 {
		return nil, err
	}
	var taken map[Row]uint32
	err = db.inTurn(ctx, func(s session) error {
		taken = make(map[Row]uint32, len(marks))
		for _, part := range parts {
			if err := unmark(s, part, taken); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return givenIndex(marks, taken), nil
}

// unmarking returns changes whose Hot days are those to be taken back.
func unmarking(marks []rollcall.Mark) ([]chunk, error) {
	if len(marks) > MaxChanges {
		return nil, rollcall.Invalid("marks", "are %d, the limit is %d", len(marks), MaxChanges)
	}
	rows := make(map[Row]uint32)
	for _, m := range marks {
		rows[Row{User: m.User, Kind: m.Kind, Month: rollcall.MonthOf(m.Day)}] |= rollcall.Bit(m.Day)
	}
	changes := make([]Change, 0, len(rows))
	for row, days := range rows {
		changes = append(changes, Change{Row: row, Hot: days})
	}
	return chunks(changes)
}

// unmark takes the days back that are Hot in a chunk, and notes which there were.
func unmark(s session, part chunk, taken map[Row]uint32) error {
	offloaded, err := offloadedIn(s, part.kind(), part.month())
	if err != nil || offloaded == 0 {
		return err
	}
	old, err := stored(s, part)
	if err != nil {
		return err
	}
	for _, c := range part {
		c.Hot &= offloaded
		taken[Row{User: c.User, Kind: c.Kind, Month: c.Month}] = old[c.User] & c.Hot
	}
	return merge(s, part)
}
