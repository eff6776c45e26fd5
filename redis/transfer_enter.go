package redis

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/enginekit"
)

// What transfer_enter.lua is to do with a part of a snapshot.
const (
	enterAll   = "0"
	enterCheck = "1"
	enterFirst = "2"
	enterNext  = "3"
	enterLast  = "4"
)

// The lists of a snapshot, in the order in which transfer_enter.lua takes them.
const (
	friendsList = iota
	markList
	sessionList
	endedList
	banList
	lists
)

// entryCost is about how many microseconds Redis takes for one entry of each list; a script
// may take scriptCost.
var entryCost = [lists]int{friendsList: 3, markList: 25, sessionList: 40, endedList: 12, banList: 6}

const (
	headCost   = 20
	scriptCost = 3000
)

// partImport is what is imported into one partition: a snapshot, or a part of it.
type partImport struct {
	part    int
	user    string
	head    [5]string // kind, name, invisible, frozen, last seen
	banKey  string
	entries [lists][][]string // each is what stands for it among the arguments
}

// fill takes all of a user's snapshot.
func (x *partImport) fill(d *rollcall.UserSnapshot) {
	seen := ""
	if !d.LastSeen.IsZero() {
		sec := d.LastSeen.Unix()
		if d.Gone {
			sec = -sec
		}
		seen = strconv.FormatInt(sec, 10)
	}
	x.head = [...]string{d.Kind, d.Name, flag(d.Invisible), strconv.FormatInt(enginekit.Milliseconds(d.Frozen)/1000, 10), seen}
	x.banKey = string(d.BanKey[:])
	for _, f := range d.Friends {
		x.add(friendsList, f.User, strconv.FormatInt(enginekit.Milliseconds(f.Since), 10))
	}
	for _, kind := range slices.Sorted(maps.Keys(d.Days)) {
		for _, day := range d.Days[kind] {
			x.add(markList, kind, fmt.Sprint(int32(day)))
		}
	}
	for i := range d.Sessions {
		s := &d.Sessions[i]
		r := record{Session: s.Session, token: string(s.Token[:]), idle: s.Idle.Milliseconds(), life: s.Lifetime.Milliseconds()}
		if s.ExpiresAt.After(s.SeenAt.Add(s.Idle)) {
			r.postponed = s.ExpiresAt.UnixMilli()
		}
		x.add(sessionList, idText(s.ID), r.pack(), strconv.FormatInt(s.SeenAt.UnixMilli(), 10))
	}
	for i := range d.Ended {
		x.addEnded(&d.Ended[i])
	}
	for _, b := range d.Bans {
		x.addBan(b)
	}
}

func (x *partImport) add(list int, args ...string) {
	x.entries[list] = append(x.entries[list], args)
}

func (x *partImport) addEnded(s *rollcall.SessionSnapshot) {
	x.add(endedList, idText(s.ID), packEnd(s), strconv.FormatInt(s.End.At.UnixMilli(), 10), string(s.Token[:]))
}

func (x *partImport) addBan(b rollcall.BanSnapshot) { x.add(banList, string(b.Key[:]), packBan(b.Ban)) }

func (x *partImport) cost() int {
	n := headCost
	for list, entries := range x.entries {
		n += len(entries) * entryCost[list]
	}
	return n
}

// cut divides it into parts of one script each.
func (x *partImport) cut() []*partImport {
	var out []*partImport
	part, cost := *x, scriptCost // the first entry begins the first part
	for list, entries := range x.entries {
		for _, entry := range entries {
			if cost += entryCost[list]; cost > scriptCost {
				part.entries, cost = [lists][][]string{}, headCost+entryCost[list]
				next := part
				out = append(out, &next)
			}
			out[len(out)-1].add(list, entry...)
		}
	}
	return out
}

// arguments returns the arguments of transfer_enter.lua.
func (x *partImport) arguments(phase string) []string {
	out := append([]string{phase, x.user}, x.head[:]...)
	out = append(out, x.banKey)
	for _, entries := range x.entries {
		out = append(out, strconv.Itoa(len(entries)))
		for _, entry := range entries {
			out = append(out, entry...)
		}
	}
	return out
}

// importScript gathers small snapshots for one run of transfer_enter.lua.
type importScript struct {
	args []string
	cost int
}

func (s *importScript) add(args []string, cost int) {
	s.args, s.cost = append(s.args, args...), s.cost+cost
}

func (s *importScript) take() []string {
	args := s.args
	*s = importScript{}
	return args
}

// packEnd packs what is kept of a session that ended.
func packEnd(s *rollcall.SessionSnapshot) string {
	var p packer
	p.u64(uint64(s.End.At.UnixMilli()))
	p.u64(uint64(enginekit.Milliseconds(s.SeenAt)))
	p.u64(uint64(enginekit.Milliseconds(s.ExpiresAt)))
	p.short(string(s.End.Cause))
	p.long(s.End.Reason)
	p.short(s.End.Actor)
	r := record{Session: s.Session, token: string(s.Token[:])}
	if !s.EndsAt.IsZero() {
		r.life = s.EndsAt.Sub(s.LoginAt).Milliseconds()
	}
	p.b = append(p.b, r.pack()...)
	return p.text()
}
