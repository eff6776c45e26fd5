package directory

import (
	"fmt"
	"unsafe"
)

// Loader fills an empty directory with stored mappings. The table is made when all ids are
// there: once, and as large as it has to be. Until Done has returned, the directory must not be
// used.
type Loader struct {
	d    *Directory
	live int
}

// Load begins to fill a directory, which must be empty.
func (d *Directory) Load() *Loader { return &Loader{d: d} }

// Put gives id the number n, below MaxNumbers. Mappings may come in any order. The error is
// ErrTaken if n has an id already, and ErrFull if n is MaxNumbers or above.
func (l *Loader) Put(n uint32, id []byte) error {
	d := l.d
	if n >= MaxNumbers {
		return fmt.Errorf("number %d: %w", n, ErrFull)
	}
	if d.Has(n) {
		return fmt.Errorf("number %d: %w", n, ErrTaken)
	}

	// A number is its key. The hash of a text is part of its key. The bytes do not change
	// while these two look at them, and a copy of each id would be garbage.
	text := unsafe.String(unsafe.SliceData(id), len(id))
	stored, isNumber := numberKey(text)
	if !isNumber {
		stored = textKey(d.hashText(text)).withHandle(d.texts.Put(id))
	}
	for ; d.limit < n; d.limit++ {
		d.keys.Set(d.limit, freeKey(noFree))
	}
	d.keys.Set(n, stored)
	d.limit = max(d.limit, n+1)
	l.live++
	return nil
}

// loadLoad is how full the table of a loaded directory is, in percent. New ids have some room
// before it grows.
const loadLoad = 80

// Done makes the table. From here on every number below Limit without an id is free, and the
// directory may be used. If an id has two numbers, the error is ErrTaken, and n the higher one.
func (l *Loader) Done() (n uint32, err error) {
	d := l.d
	d.table = newTable(max(minTable, l.live*100/loadLoad))
	var hashes [blockLen]uint64
	var numbers [blockLen]uint32
	for n < d.limit {
		k := 0
		for ; k < blockLen && n < d.limit; n++ {
			if !d.keys.Get(n).isFree() {
				hashes[k], numbers[k] = d.hash(n), n
				k++
			}
		}
		if n, err := d.linkBlock(hashes[:k], numbers[:k]); err != nil {
			return n, err
		}
	}

	// The chain of free numbers, the lowest first.
	if l.live < int(d.limit) {
		for n := d.limit; n > 0; n-- {
			if d.keys.Get(n - 1).isFree() {
				d.keys.Set(n-1, freeKey(d.free))
				d.free = n - 1
			}
		}
	}
	return 0, nil
}

// linkBlock enters up to blockLen numbers into the table, which has room. It reads the places of
// all of them first, so that their cache misses overlap.
func (d *Directory) linkBlock(hashes []uint64, numbers []uint32) (n uint32, err error) {
	var touched [blockLen]word // written only
	words := d.table.words
	for i, hash := range hashes {
		touched[i%blockLen] = words[position(hash, len(words))]
	}
	_ = touched
	for i, hash := range hashes {
		n, tag := numbers[i], tagOf(hash)
		slot := d.table.home(hash)
		for words[slot] != 0 {
			if words[slot].tagged(tag) && d.sameID(words[slot].number(), n) {
				return n, fmt.Errorf("number %d: %w", n, ErrTaken)
			}
			slot = d.table.after(slot)
		}
		words[slot] = newWord(hash, n)
	}
	d.table.live += len(hashes)
	return 0, nil
}

// sameID reports whether two numbers have one id.
func (d *Directory) sameID(x, y uint32) bool {
	a, b := d.keys.Get(x), d.keys.Get(y)
	return a.like(b) && (!a.isText() || string(d.texts.Get(a.handle())) == string(d.texts.Get(b.handle())))
}
