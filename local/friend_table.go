package local

import (
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/rollcall/rollcall/internal/arena"
	"github.com/rollcall/rollcall/internal/column"
)

// friendTable holds the friend list of every user of a partition as one cell. Who names a
// user as friend is in the store alone; partition.friendRefs counts them.
type friendTable struct {
	list    column.Column[arena.Handle]
	cells   arena.Arena
	edges   int
	changes uint64 // of any list
}

// edge is a friend and the time of friendship, in milliseconds.
type edge struct {
	friend ref
	since  int64
}

// friendCell is a list in memory: the refs of all friends, ascending, and then in the same
// order the times of friendship. So the friends of one partition follow each other, and who
// wants to know who is online reads 4 bytes a friend.
type friendCell []byte

const edgeLen = 4 + 8

func (c friendCell) len() int { return len(c) / edgeLen }

func (c friendCell) friend(i int) ref { return ref(binary.LittleEndian.Uint32(c[4*i:])) }

func (c friendCell) since(i int) int64 {
	return int64(binary.LittleEndian.Uint64(c[4*c.len()+8*i:]))
}

// cell returns a user's list, to be read only, and only until it is changed.
func (t *friendTable) cell(n uint32) friendCell { return t.cells.Get(t.list.Get(n)) }

func (t *friendTable) count(n uint32) int { return t.cell(n).len() }

// get returns a copy of a user's list, by ref.
func (t *friendTable) get(n uint32) []edge {
	c := t.cell(n)
	if len(c) == 0 {
		return nil
	}
	out := make([]edge, c.len())
	for i := range out {
		out[i] = edge{c.friend(i), c.since(i)}
	}
	return out
}

// set replaces a user's list. It sorts the edges by ref.
func (t *friendTable) set(n uint32, edges []edge) {
	t.changes++
	t.edges += len(edges) - t.count(n)
	t.cells.Free(t.list.Get(n))
	if len(edges) == 0 {
		t.list.Set(n, 0)
		return
	}
	slices.SortFunc(edges, func(a, b edge) int { return cmp.Compare(a.friend, b.friend) })
	cell := make([]byte, 0, len(edges)*edgeLen)
	for _, e := range edges {
		cell = binary.LittleEndian.AppendUint32(cell, uint32(e.friend))
	}
	for _, e := range edges {
		cell = binary.LittleEndian.AppendUint64(cell, uint64(e.since))
	}
	t.list.Set(n, t.cells.Put(cell))
}

func (t *friendTable) memory() int { return t.list.Bytes() + t.cells.Bytes() }
