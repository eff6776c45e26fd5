package rollcall

// SessionField is a field whose values live sessions are counted by.
type SessionField string

// The fields.
const (
	ByApp    SessionField = "app"
	ByDevice SessionField = "device"
	ByKind   SessionField = "kind"
)

// MaxCountedValues is how many different values of a field an engine looks at in each
// partition.
const MaxCountedValues = 500

// SessionCountQuery asks how many live sessions have which value of a field.
type SessionCountQuery struct {
	By     SessionField
	Limit  int // values in the answer: DefaultLimit if 0, at most MaxLimit
	Viewer Viewer
}

// SessionCounts are the live sessions by the values of a field.
type SessionCounts struct {
	Items []ValueCount // most sessions first, ties by value
	Other int          // sessions of the values that are not among the items
	Total int          // all live sessions
	// Partial says that there are more values than the engine looks at: what Items say is
	// exact, but a value with as many sessions may be missing.
	Partial bool
}

// ValueCount is how many live sessions have a value; "" is that of sessions without one.
type ValueCount struct {
	Value    string
	Sessions int
}

func (q *SessionCountQuery) fill() error {
	if q.By != ByApp && q.By != ByDevice && q.By != ByKind {
		return Invalid("by", "must be app, device or kind, is %.40q", string(q.By))
	}
	setDefault(&q.Limit, DefaultLimit)
	if q.Limit < 0 || q.Limit > MaxLimit {
		return Invalid("limit", "must be between 1 and %d, is %d", MaxLimit, q.Limit)
	}
	return nil
}
