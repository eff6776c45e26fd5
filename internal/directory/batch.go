package directory

import "fmt"

// blockLen is how many ids go through the passes together: enough for their
// cache misses to overlap, few enough for their lines to stay in the first
// cache.
const blockLen = 128

// worthwhile is the number of ids from which a block is faster than one by one.
const worthwhile = 8

// block is the state of one round of passes.
type block struct {
	keys   [blockLen]key
	slots  [blockLen]uint32
	stored [blockLen]key

	// touched is written only: it makes the first pass bring the lines in.
	touched [blockLen]word
}

// FindAll sets out[i] to the number of ids[i], None if it has none. The three
// slices must be of one length, hashes[i] the hash of ids[i].
func (d *Directory) FindAll(hashes []uint64, ids []string, out []uint32) {
	for len(ids) > 0 {
		n := min(blockLen, len(ids))
		d.findBlock(hashes[:n], ids[:n], out[:n])
		hashes, ids, out = hashes[n:], ids[n:], out[n:]
	}
}

// InsertAll sets out[i] to the number of ids[i], inserted if need be, and calls
// fresh, unless nil, with every i that was the first of a new id, in order; n
// is its number. fresh must not change the directory. Ids may repeat in a batch.
// The three slices must be of one length, hashes[i] the hash of ids[i].
//
// The error wraps ErrFull and tells how many ids were done; from there on out
// is None.
func (d *Directory) InsertAll(hashes []uint64, ids []string, out []uint32, fresh func(i int, n uint32)) error {
	d.move(moveStep + movePerID*len(ids))
	for start := 0; start < len(ids); start += blockLen {
		end := min(start+blockLen, len(ids))
		d.findBlock(hashes[start:end], ids[start:end], out[start:end])
		for i := start; i < end; i++ {
			if out[i] != None {
				continue
			}
			n, added, err := d.insert(hashes[i], ids[i])
			if err != nil {
				for j := range out[i:] {
					out[i+j] = None
				}
				return fmt.Errorf("after %d of %d ids: %w", i, len(ids), err)
			}
			out[i] = n
			if added && fresh != nil {
				fresh(i, n)
			}
		}
	}
	return nil
}

// findBlock is find for up to blockLen ids. Each pass does one kind of memory
// access for all of them, and no access waits for the one of the id before. While
// the directory grows, ids are looked for one by one.
func (d *Directory) findBlock(hashes []uint64, ids []string, out []uint32) {
	hashes, out = hashes[:len(ids)], out[:len(ids)]
	if len(ids) < worthwhile || len(d.old.words) != 0 {
		for i, id := range ids {
			out[i] = d.find(hashes[i], keyOf(hashes[i], id), id)
		}
		return
	}
	var b block
	words := d.table.words
	for i, hash := range hashes {
		slot := position(hash, len(words))
		b.slots[i%blockLen] = uint32(slot)
		b.touched[i%blockLen] = words[slot]
	}
	for i, id := range ids {
		b.keys[i%blockLen] = keyOf(hashes[i], id)
	}
	for i, hash := range hashes {
		out[i] = d.table.candidate(b.slots[i%blockLen], tagOf(hash))
	}
	for i, n := range out {
		b.stored[i%blockLen] = d.keys.Get(n)
	}
	for i, n := range out {
		if k := b.keys[i%blockLen]; n != None && !d.match(b.stored[i%blockLen], k, ids[i]) {
			out[i] = d.find(hashes[i], k, ids[i])
		}
	}
}
