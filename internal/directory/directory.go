// Package directory gives ids dense numbers, so that everything else about an
// id can be an array or a bitmap indexed by its number.
package directory

import (
	"errors"
	"math"
	"unsafe"

	"github.com/rollcall/rollcall/internal/arena"
	"github.com/rollcall/rollcall/internal/column"
)

const (
	// None is no number: what a batch reports for an id that is absent.
	None = math.MaxUint32

	// MaxNumbers is how many numbers a directory can give, from 0 on.
	MaxNumbers = 1<<24 - 2
)

var (
	// ErrFull says that all MaxNumbers numbers are in use.
	ErrFull = errors.New("directory: full")

	// ErrTaken says that stored mappings name a number or an id twice.
	ErrTaken = errors.New("directory: number or id already in use")
)

// Directory maps ids, which are any strings, to numbers and back. Numbers are
// dense from 0; a removed id's number goes to a later id.
//
// An id that is the canonical decimal of a number below 1<<63 is kept as that
// number, at about 13.5 bytes, and so is one of up to 19 digits that has zeros before
// a number below 1<<56; any other costs its text, its length and the rounding of the
// arena on top.
//
// Every call that takes an id takes its hash too, which the caller usually has
// at hand. Hashes should be uniform in their upper 48 bits; the lowest 16 are
// not used, so that a caller may choose among directories by them.
//
// Readers (Find, FindAll, ID, AppendID, Has, Len, Limit, Bytes) may share a
// directory as long as nobody writes.
type Directory struct {
	table table
	old   moving // while the directory grows
	keys  column.Column[key]
	texts arena.Arena
	limit uint32 // one past the highest number ever used
	free  uint32 // first free number, chained by key; noFree if there is none

	digits []byte // working memory of hash

	hashText   func(string) uint64
	hashNumber func(uint64) uint64
}

// New returns an empty directory. The hash of an id passed in calls must be hashNumber(v) if
// ParseNumber gives v for it, and hashText(id) otherwise. The directory calls the two when it
// moves entries to a larger table. hashText must not keep its argument.
func New(hashText func(string) uint64, hashNumber func(uint64) uint64) *Directory {
	return &Directory{
		table:      newTable(minTable),
		free:       noFree,
		hashText:   hashText,
		hashNumber: hashNumber,
	}
}

// Find returns the number of id; ok is false if it has none.
func (d *Directory) Find(hash uint64, id string) (n uint32, ok bool) {
	n = d.find(hash, keyOf(hash, id), id)
	return n, n != None
}

// Insert returns the number of id, a new one with added set if it had none. The
// error is ErrFull if no number is left.
func (d *Directory) Insert(hash uint64, id string) (n uint32, added bool, err error) {
	d.move(moveStep)
	return d.insert(hash, id)
}

func (d *Directory) insert(hash uint64, id string) (n uint32, added bool, err error) {
	k := keyOf(hash, id)
	if n = d.find(hash, k, id); n != None {
		return n, false, nil
	}
	switch {
	case d.free != noFree:
		n = d.free
		d.free = d.keys.Get(n).next()
	case d.limit < MaxNumbers:
		n = d.limit
	default:
		return None, false, ErrFull
	}
	d.put(n, hash, k, id)
	return n, true, nil
}

// Remove takes the id with number n out and frees the number. Removing a number
// that is not in use does nothing.
func (d *Directory) Remove(n uint32) {
	if !d.Has(n) {
		return
	}
	d.unlink(n)
	if k := d.keys.Get(n); k.isText() {
		d.texts.Free(k.handle())
	}
	d.keys.Set(n, freeKey(d.free))
	d.free = n
}

// Has reports whether n is the number of an id.
func (d *Directory) Has(n uint32) bool { return n < d.limit && !d.keys.Get(n).isFree() }

// ID returns the id with number n, empty if there is none.
func (d *Directory) ID(n uint32) string {
	if !d.Has(n) {
		return ""
	}
	k := d.keys.Get(n)
	if k.isText() {
		return string(d.text(n))
	}
	var room [maxDigits]byte
	return string(k.appendNumber(room[:0]))
}

// AppendID appends the id with number n to dst, nothing if there is none.
func (d *Directory) AppendID(dst []byte, n uint32) []byte {
	if !d.Has(n) {
		return dst
	}
	if k := d.keys.Get(n); !k.isText() {
		return k.appendNumber(dst)
	}
	return append(dst, d.text(n)...)
}

// Len returns how many ids the directory holds.
func (d *Directory) Len() int { return d.table.live + d.old.live }

// Limit returns one past the highest number ever used.
func (d *Directory) Limit() uint32 { return d.limit }

// Bytes returns the memory the directory holds, in bytes.
func (d *Directory) Bytes() int {
	return d.table.bytes() + d.old.bytes() + d.keys.Bytes() + d.texts.Bytes()
}

// text returns the bytes of the text id with number n.
func (d *Directory) text(n uint32) []byte { return d.texts.Get(d.keys.Get(n).handle()) }

// put enters an id known to be absent under a number known to be free, or the
// next one never used.
func (d *Directory) put(n uint32, hash uint64, k key, id string) {
	if d.Len() >= d.table.most {
		d.grow()
	}
	if k.isText() {
		k = k.withHandle(d.texts.Put([]byte(id)))
	}
	d.keys.Set(n, k)
	d.limit = max(d.limit, n+1)
	d.table.add(hash, n)
}

// hash returns the hash of the id with number n. It is for those who may change the
// directory.
func (d *Directory) hash(n uint32) uint64 {
	var text []byte
	switch k := d.keys.Get(n); {
	case k.isText():
		text = d.text(n)
	case k.isPadded():
		d.digits = k.appendNumber(d.digits[:0])
		text = d.digits
	default:
		return d.hashNumber(uint64(k))
	}
	// The bytes do not change while hashText runs, and a copy for each move of
	// an entry would be garbage.
	return d.hashText(unsafe.String(unsafe.SliceData(text), len(text)))
}
