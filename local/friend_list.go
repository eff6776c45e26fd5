package local

import (
	"bytes"
	"context"
	"encoding/binary"
	"math/bits"
	"slices"
	"time"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/enginekit"
)

// A list of friends is exact at one instant, so the partitions of all friends on it are
// locked together. A page of it is made in three steps, and only the last one is about
// more than numbers:
//
//  1. read: every friend who belongs to the answer becomes a place, one number that holds
//     the time by which the list is sorted, and where the friend stands in the list.
//  2. arrange: the places of the page are sorted, those before and behind it are not.
//     Friends of one time go by their ids, six bytes of them after the other.
//  3. items: the friends on the page get their ids, all in one text.

// Friends implements [rollcall.Friends].
func (e *Engine) Friends(_ context.Context, at time.Time, q rollcall.FriendQuery) (rollcall.Page[rollcall.FriendStatus], error) {
	q.Sort = rollcall.FriendsBySince
	return e.friendPage(at, &q, (*friendList).readAll)
}

// OnlineFriends implements [rollcall.Friends].
func (e *Engine) OnlineFriends(_ context.Context, at time.Time, q rollcall.FriendQuery) (rollcall.Page[rollcall.FriendStatus], error) {
	return e.friendPage(at, &q, (*friendList).readOnline)
}

func (e *Engine) friendPage(at time.Time, q *rollcall.FriendQuery, read func(*friendList)) (rollcall.Page[rollcall.FriendStatus], error) {
	now, err := e.enter(at)
	if err != nil {
		return rollcall.Page[rollcall.FriendStatus]{}, err
	}
	l := e.openFriendList(now, q)
	defer l.close()
	read(l)
	return l.page(q.Page), nil
}

// FriendsOfMany implements [rollcall.Friends].
func (e *Engine) FriendsOfMany(_ context.Context, at time.Time, users []string, window time.Duration, v rollcall.Viewer) ([][]rollcall.FriendStatus, error) {
	now, err := e.enter(at)
	if err != nil {
		return nil, err
	}
	out := make([][]rollcall.FriendStatus, len(users))
	for i, user := range users {
		q := rollcall.FriendQuery{User: user, Window: window, Sort: rollcall.FriendsBySince, Viewer: v}
		out[i] = e.allFriends(now, &q)
	}
	return out, nil
}

func (e *Engine) allFriends(now int64, q *rollcall.FriendQuery) []rollcall.FriendStatus {
	l := e.openFriendList(now, q)
	defer l.close()
	l.readAll()
	l.arrange(l.places, 0, len(l.places), 0)
	return l.items(l.places)
}

// friendList is one look at a user's list. It is kept for the next look.
type friendList struct {
	e      *Engine
	q      rollcall.FriendQuery
	now    int64
	cell   friendCell
	locked partitionSet

	places []uint64
	ids    []byte // working memory of items
	ends   []int
}

// A place is the time of a friend over their index in the list. Times of friendship are
// milliseconds before the year 10000, seconds of last sight have 32 bits, and both are below
// 1<<placeTimeBits. The latest second comes first, as its complement.
const (
	placeIndexBits = 14 // for MaxFriends
	placeTimeBits  = 64 - placeIndexBits
	placeIndexMask = 1<<placeIndexBits - 1
)

// placeTime returns what the places of one time have in common: as enginekit.FriendPlace
// begins, but shifted.
func placeTime(x uint64) uint64 { return x &^ placeIndexMask }

// openFriendList locks the partitions of a user's friends. The caller closes the list.
func (e *Engine) openFriendList(at int64, q *rollcall.FriendQuery) *friendList {
	l, _ := e.friendLists.Get().(*friendList)
	l.e, l.q, l.now = e, *q, at

	// Which partitions those are is in the list, which is in the user's partition. That is
	// let go of before it is locked again in turn. If lists changed meanwhile, nobody shall
	// wait for a second attempt: all partitions are locked.
	p := e.partitionOf(q.User)
	p.mu.RLock()
	l.find(p)
	for i := range l.cell.len() {
		l.locked.add(l.cell.friend(i).part())
	}
	changes := p.friends.changes
	p.mu.RUnlock()
	l.locked.add(p.index)
	e.rlock(&l.locked)
	if p.friends.changes != changes {
		e.runlock(&l.locked)
		l.locked.addAll()
		e.rlock(&l.locked)
	}
	l.find(p)
	for i, p := range e.parts {
		if l.locked.has(uint8(i)) {
			l.now = max(l.now, p.clock)
		}
	}
	return l
}

// find looks for the user's list.
func (l *friendList) find(p *partition) {
	l.cell = nil
	if n, ok := p.find(l.q.User); ok {
		l.cell = p.friends.cell(n)
	}
}

// close unlocks the partitions.
func (l *friendList) close() {
	l.e.runlock(&l.locked)
	if cap(l.ids) > 1<<16 {
		l.ids = nil
	}
	*l = friendList{e: l.e, places: l.places[:0], ids: l.ids[:0], ends: l.ends[:0]}
	l.e.friendLists.Put(l)
}

// at returns the partition and the number of a friend by their place.
func (l *friendList) at(place uint64) (*partition, uint32) {
	f := l.cell.friend(int(place & placeIndexMask))
	return l.e.parts[f.part()], f.number()
}

// readAll makes a place of every friend.
func (l *friendList) readAll() {
	l.places = resize(l.places, l.cell.len())
	for i := range l.places {
		l.places[i] = l.bySince(i)
	}
}

func (l *friendList) bySince(i int) uint64 {
	return uint64(l.cell.since(i))<<placeIndexBits | uint64(i)
}

// readOnline makes a place of every friend who is online to the viewer.
func (l *friendList) readOnline() {
	l.places = resize(l.places, l.cell.len())
	line := max(onlineSince(l.e.outages.effectiveNow(l.now), l.q.Window), l.e.retainedSince(l.now))

	// Nobody can foretell who is online, so there is no branch on it: the cache misses of
	// many friends overlap.
	online := 0
	for i := range l.places {
		f := l.cell.friend(i)
		last := l.e.parts[f.part()].presence.seen.Last(f.number())
		l.places[online] = ^uint64(last)<<placeIndexBits | uint64(i)
		online += 1 - int((uint64(last)-uint64(line))>>63)
	}

	// Those who are gone or hide are few.
	kept := l.places[:0]
	for _, x := range l.places[:online] {
		p, n := l.at(x)
		if p.presence.seen.Hidden(n) || l.q.Viewer == rollcall.ViewerPublic && p.users.invisible.Contains(n) {
			continue
		}
		if l.q.Sort != rollcall.FriendsByLastSeen {
			x = l.bySince(int(x & placeIndexMask))
		}
		kept = append(kept, x)
	}
	l.places = kept
}

// page makes the page.
func (l *friendList) page(r rollcall.PageRequest) rollcall.Page[rollcall.FriendStatus] {
	out := rollcall.Page[rollcall.FriendStatus]{Total: len(l.places)}
	list, from := l.places, max(0, r.Number-1)*r.Limit
	if r.Cursor != "" {
		list, from = l.after(r.Cursor), 0
	}
	from = min(len(list), from)
	to := min(len(list), from+r.Limit)
	if from == to {
		return out
	}
	l.arrange(list, from, to, 0)
	out.Items = l.items(list[from:to])
	if to < len(list) {
		out.Next = enginekit.FriendPlace(l.q.Sort, out.Items[to-from-1])
	}
	return out
}

// after keeps the places behind a cursor.
func (l *friendList) after(cursor string) []uint64 {
	t, user := enginekit.DecodeFriendPlace(cursor)
	t <<= placeIndexBits
	kept := l.places[:0]
	var id [rollcall.MaxUserLen]byte
	for _, x := range l.places {
		if placeTime(x) == t {
			p, n := l.at(x)
			if bytes.Compare(p.dir.AppendID(id[:0], n), []byte(user)) <= 0 {
				continue
			}
		}
		if placeTime(x) >= t {
			kept = append(kept, x)
		}
	}
	return kept
}

// arrange sorts places so that those from one index to another are what they are in the
// sorted list. Those of smaller indexes come before them in no order, those of larger ones
// behind. depth says how many pieces of the friends' ids are known to be equal.
func (l *friendList) arrange(places []uint64, from, to, depth int) {
	// Leave out what comes surely before the range, or behind it: whose time is another
	// than those in the range have.
	begin, end := 0, len(places)
	if to < end {
		last := nth(places, to-1)
		end = split(places, last|placeIndexMask) // no place is index MaxFriends and more
	}
	if from > 0 {
		begin = split(places[:end], placeTime(nth(places[:end], from)))
	}
	slices.Sort(places[begin:end])

	// Where friends of one time are in the range, their ids decide.
	for begin < to {
		run := begin + 1
		for run < end && placeTime(places[run]) == placeTime(places[begin]) {
			run++
		}
		if run > max(from, begin+1) && depth < idPieces {
			tied := places[begin:run]
			l.placeByID(tied, depth)
			l.arrange(tied, max(0, from-begin), min(to, run)-begin, depth+1)
		}
		begin = run
	}
}

// An id is idPieces pieces of idPiece bytes, which go into a place instead of the time.
const (
	idPiece  = placeTimeBits / 8
	idPieces = (rollcall.MaxUserLen + idPiece - 1) / idPiece
)

// placeByID gives friends a place by a piece of their ids.
func (l *friendList) placeByID(places []uint64, piece int) {
	var id [idPieces*idPiece + 2]byte // read eight bytes at a time
	for i, x := range places {
		p, n := l.at(x)
		clear(id[:])
		p.dir.AppendID(id[:0], n)
		next := binary.BigEndian.Uint64(id[piece*idPiece:]) >> (64 - 8*idPiece)
		places[i] = next<<placeIndexBits | x&placeIndexMask
	}
}

// items returns the friends of some places.
func (l *friendList) items(places []uint64) []rollcall.FriendStatus {
	out := make([]rollcall.FriendStatus, len(places))
	for i, x := range places {
		p, n := l.at(x)
		online, last := p.lastSeen(n, l.now, l.q.Window, l.q.Viewer)
		out[i].Online, out[i].LastSeen = online, enginekit.TimeOfSecond(last)
		out[i].Since = enginekit.TimeOf(l.cell.since(int(x & placeIndexMask)))
		l.ids = p.dir.AppendID(l.ids, n)
		l.ends = append(l.ends, len(l.ids))
	}
	ids, from := string(l.ids), 0
	for i, to := range l.ends {
		out[i].User, from = ids[from:to], to
	}
	return out
}

// split brings the numbers that are less than a limit to the front, and returns how many
// they are. No two numbers are 1<<63 apart or more. Nobody can foretell which ones are
// less, so there is no branch on it.
func split(list []uint64, limit uint64) int {
	less := 0
	for i, x := range list {
		list[i], list[less] = list[less], x
		less += int((x - limit) >> 63)
	}
	return less
}

// nth returns the number that has index k in the sorted list, all of them different. It
// brings what is less to the front.
func nth(list []uint64, k int) uint64 {
	const few = 24
	for rounds := 2 * bits.Len(uint(len(list))); len(list) > few && rounds > 0; rounds-- {
		a, b, c := list[0], list[len(list)/2], list[len(list)-1]
		middle := max(min(a, b), min(max(a, b), c))

		// One at least is less than the middle of three, and two are not.
		if less := split(list, middle); k < less {
			list = list[:less]
		} else {
			list, k = list[less:], k-less
		}
	}
	slices.Sort(list)
	return list[k]
}
