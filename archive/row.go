package archive

import (
	"cmp"
	"slices"

	"github.com/rollcall/rollcall"
)

// Row is the days on which a user of a kind was there in a month. Bit 0 of Days
// is the first of the month.
type Row struct {
	User  string
	Kind  string
	Month Month
	Days  uint32
}

// Month is a civil month.
type Month = rollcall.Month

// Change is what the hot store knows about a row. Hot has the days that the hot
// store still holds: for those Days is the truth, even where it says no. Of all
// other days Days only adds, and nothing is lost.
type Change struct {
	Row
	Hot uint32
}

// MaxChanges is how many changes one call takes.
const MaxChanges = 10_000

// chunkRows is how many rows one statement names: enough to make the way to the
// database unimportant, and few enough for every database's planner.
const chunkRows = 500

// after returns the days of a row that had old before the change.
func (c *Change) after(old uint32) uint32 { return old&^c.Hot | c.Days }

// compareRows orders rows as the primary key does.
func compareRows(a, b *Row) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Month, b.Month), cmp.Compare(a.User, b.User))
}

func checkRow(r *Row) error {
	if err := rollcall.CheckUser(r.User); err != nil {
		return err
	}
	if err := checkKind(r.Kind); err != nil {
		return err
	}
	if !r.Month.Valid() {
		return rollcall.Invalid("month", "%d is not a month of the form YYYYMM since 197001", r.Month)
	}
	if r.Days&^r.Month.Mask() != 0 {
		return rollcall.Invalid("days", "holds days that %s does not have", r.Month)
	}
	return nil
}

// checkKind is for places where a kind is stored and must be named.
func checkKind(kind string) error {
	if kind == "" {
		return rollcall.Invalid("kind", "is required")
	}
	return rollcall.CheckKind(kind)
}

// chunk is changes of one kind and month, in order of users.
type chunk []*Change

func (c chunk) kind() string { return c[0].Kind }
func (c chunk) month() Month { return c[0].Month }

// chunks checks changes and cuts them into what one statement takes.
func chunks(changes []Change) ([]chunk, error) {
	if len(changes) > MaxChanges {
		return nil, rollcall.Invalid("changes", "are %d, the limit is %d", len(changes), MaxChanges)
	}
	sorted := make(chunk, len(changes))
	for i := range changes {
		c := &changes[i]
		if err := checkRow(&c.Row); err != nil {
			return nil, err
		}
		if c.Hot&^c.Month.Mask() != 0 {
			return nil, rollcall.Invalid("hot", "holds days that %s does not have", c.Month)
		}
		sorted[i] = c
	}
	slices.SortFunc(sorted, func(a, b *Change) int { return compareRows(&a.Row, &b.Row) })
	var cut []chunk
	for from, i := 0, 1; i <= len(sorted); i++ {
		if i < len(sorted) && compareRows(&sorted[i-1].Row, &sorted[i].Row) == 0 {
			return nil, rollcall.Invalid("changes", "name a user, kind and month twice (kind %q, month %s)",
				sorted[i].Kind, sorted[i].Month)
		}
		whole := sorted[from:i]
		if i == len(sorted) || len(whole) == chunkRows ||
			sorted[i].Kind != whole.kind() || sorted[i].Month != whole.month() {
			cut = append(cut, whole)
			from = i
		}
	}
	return cut, nil
}
