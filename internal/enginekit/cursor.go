package enginekit

import (
	"encoding/binary"
	"sort"

	"github.com/rollcall/rollcall"
)

// The cursors of both engines. [rollcall.Roll] authenticates them, so an engine is
// given what an engine made. Text of another form is decoded as the beginning.

// SessionSeen is a session's place in the order of last signs of life: when the last
// one came, in milliseconds, and the session.
type SessionSeen struct {
	At int64
	ID rollcall.SessionID
}

// Before reports whether a comes before b: the most recently seen first, ties by id,
// the later first.
func (a SessionSeen) Before(b SessionSeen) bool {
	if a.At != b.At {
		return a.At > b.At
	}
	return string(a.ID[:]) > string(b.ID[:])
}

// SeenCursor is where a walk of sessions by last sign of life stands: the instant it
// began, in milliseconds, past which it looks at nothing, and the last session it
// returned.
type SeenCursor struct {
	Began int64
	After SessionSeen
}

// Encode returns the cursor as text.
func (c SeenCursor) Encode() string {
	b := binary.BigEndian.AppendUint64(nil, uint64(c.Began))
	b = binary.BigEndian.AppendUint64(b, uint64(c.After.At))
	return string(append(b, c.After.ID[:]...))
}

// DecodeSeenCursor reads what Encode returned.
func DecodeSeenCursor(s string) SeenCursor {
	b := []byte(s)
	if len(b) != 8+8+len(rollcall.SessionID{}) {
		return SeenCursor{}
	}
	return SeenCursor{
		Began: int64(binary.BigEndian.Uint64(b)),
		After: SessionSeen{At: int64(binary.BigEndian.Uint64(b[8:])), ID: rollcall.SessionID(b[16:])},
	}
}

// FriendPlace is a friend's place in a list of friends: by the sort's time, then by
// user as text. It is the cursor behind the friend too.
func FriendPlace(sort rollcall.FriendSort, f rollcall.FriendStatus) string {
	return string(binary.BigEndian.AppendUint64(nil, friendTime(sort, &f))) + f.User
}

// DecodeFriendPlace reads what FriendPlace returned: what the place begins with, and the
// user.
func DecodeFriendPlace(s string) (time uint64, user string) {
	if len(s) < 8 {
		return 0, ""
	}
	return binary.BigEndian.Uint64([]byte(s)), s[8:]
}

// friendTime is what a friend's place begins with.
func friendTime(sort rollcall.FriendSort, f *rollcall.FriendStatus) uint64 {
	if sort == rollcall.FriendsByLastSeen {
		return ^uint64(f.LastSeen.Unix()) // the latest first
	}
	return uint64(f.Since.UnixMilli())
}

// BanPlace is a ban's place in the list of bans: by user, then by key. It is the
// cursor behind the ban too.
func BanPlace(b rollcall.Ban) string { return b.User + "\x00" + string(b.Key[:]) }

// PageOf cuts a page out of a whole list whose places ascend. The place of the last
// item is the cursor.
func PageOf[T any](all []T, r rollcall.PageRequest, place func(T) string) rollcall.Page[T] {
	page := rollcall.Page[T]{Total: len(all)}
	from := min(len(all), max(0, r.Number-1)*r.Limit)
	if r.Cursor != "" {
		from = sort.Search(len(all), func(i int) bool { return place(all[i]) > r.Cursor })
	}
	to := min(len(all), from+r.Limit)
	page.Items = append(page.Items, all[from:to]...)
	if r.Limit > 0 && to < len(all) {
		page.Next = place(all[to-1])
	}
	return page
}
