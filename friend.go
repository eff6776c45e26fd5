package rollcall

import "time"

// MaxFriends is how many friends a user may have.
const MaxFriends = 10_000

// MaxFriendLists is how many lists of friends may be read at once.
const MaxFriendLists = 100

// Friend is a directed edge to User, made at Since.
type Friend struct {
	User  string
	Since time.Time
}

// NewFriends counts how many of the friends named, each once, do not stand yet.
func NewFriends(names []string, standing []bool) int {
	fresh := make(map[string]bool, len(names))
	for i, name := range names {
		if !standing[i] {
			fresh[name] = true
		}
	}
	return len(fresh)
}

// FriendStatus is a friend and their presence.
type FriendStatus struct {
	User     string
	Since    time.Time
	Online   bool
	LastSeen time.Time // zero if no sign of life is kept
}

// FriendSort orders online friends.
type FriendSort string

// The orders of online friends; ties by user id as text, ascending.
const (
	FriendsByLastSeen FriendSort = "-last_seen" // most recently seen first
	FriendsBySince    FriendSort = "since"      // oldest friendship first
)

// FriendQuery asks for a user's online friends.
type FriendQuery struct {
	User   string
	Window time.Duration
	Sort   FriendSort // default FriendsByLastSeen
	Page   PageRequest
	Viewer Viewer
}
