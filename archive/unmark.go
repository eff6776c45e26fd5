package archive

import (
	"context"
	"math/bits"

	"github.com/rollcall/rollcall"
)

// Unmark takes marks back of days that have departed and says how many there
// were. Of other days the hot store decides, and nothing is changed. It needs no
// lease, and waits while a batch is being copied. Up to [MaxChanges] marks, each
// of a kind.
func (db *DB) Unmark(ctx context.Context, marks []rollcall.Mark) (int, error) {
	parts, err := unmarking(marks)
	if err != nil || len(parts) == 0 {
		return 0, err
	}
	taken := 0
	err = db.inTurn(ctx, func(s session) error {
		taken = 0
		for _, part := range parts {
			n, err := unmark(s, part)
			if err != nil {
				return err
			}
			taken += n
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	return taken, nil
}

// unmarking returns changes whose Hot days are those to be taken back.
func unmarking(marks []rollcall.Mark) ([]chunk, error) {
	if len(marks) > MaxChanges {
		return nil, rollcall.Invalid("marks", "are %d, the limit is %d", len(marks), MaxChanges)
	}
	rows := make(map[Row]uint32)
	for _, m := range marks {
		rows[Row{User: m.User, Kind: m.Kind, Month: MonthOf(m.Day)}] |= Bit(m.Day)
	}
	changes := make([]Change, 0, len(rows))
	for row, days := range rows {
		changes = append(changes, Change{Row: row, Hot: days})
	}
	return chunks(changes)
}

func unmark(s session, part chunk) (int, error) {
	departed, err := departedIn(s, part.kind(), part.month())
	if err != nil || departed == 0 {
		return 0, err
	}
	old, err := stored(s, part)
	if err != nil {
		return 0, err
	}
	n := 0
	for _, c := range part {
		c.Hot &= departed
		n += bits.OnesCount32(old[c.User] & c.Hot)
	}
	return n, merge(s, part)
}
