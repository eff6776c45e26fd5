package local

import (
	"cmp"
	"errors"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/column"
)

// Numbers of users.
//
// The directory gives every user of a partition a dense number. The store has the id
// under the number, in one of two forms: by itself (tabID), written with a command
// that needs it, or in a block of 256 (tabBlock), written by a flush for users who
// came by beats. A number is free again once nothing is known of its user.

// ensureNumber returns the number of a user and gives them one if they have none.
// The id goes into the batch if the store does not have it. If the command fails,
// freeNewNumbers takes the number back.
func (tx *tx) ensureNumber(user string) (uint32, error) { return tx.ensureNumberIn(tx.p, user) }

// ensureNumberIn is ensureNumber for a user of another partition, which is locked.
func (tx *tx) ensureNumberIn(p *partition, user string) (uint32, error) {
	n, added, err := p.dir.Insert(rollcall.HashUser(user), user)
	if err != nil {
		return 0, errFull(err)
	}
	if added {
		p.unstored = append(p.unstored, n)
		tx.newNumbers = append(tx.newNumbers, p.ref(n))
	}
	if !p.onDisk.has(n) {
		return n, tx.batch.Set(idKey(p.index, n), []byte(user), nil)
	}
	return n, nil
}

// freeNewNumbers takes back the numbers that the transaction gave to users. It is
// called if the transaction is not applied, with the partitions still locked.
func (tx *tx) freeNewNumbers() {
	tx.p.eng.freeNewNumbers(tx.newNumbers)
	tx.newNumbers = nil
}

// freeNewNumbers takes numbers back, in the order in which they were given. Their
// partitions have been locked since, so nobody has seen the numbers.
func (e *Engine) freeNewNumbers(made []ref) {
	for _, given := range slices.Backward(made) {
		p, n := e.parts[given.part()], given.number()
		p.dir.Remove(n)
		if last := len(p.unstored) - 1; last >= 0 && p.unstored[last] == n {
			p.unstored = p.unstored[:last]
		}
	}
}

// idStored notes that the store has the id of a number.
func (p *partition) idStored(n uint32) { p.onDisk.add(n) }

func errFull(err error) error {
	return &rollcall.Error{Code: rollcall.CodeStorageFull, Detail: "too many users in one partition", Err: err}
}

// ref returns the name of a number of this partition in the whole engine.
func (p *partition) ref(n uint32) ref { return newRef(p.index, n) }

// inUse reports whether anything is known of a number.
func (p *partition) inUse(n uint32) bool {
	return p.presence.seen.Last(n) != 0 || p.sessions.ofUser.has(n) || p.users.has(n) ||
		p.friends.count(n) != 0 || p.friendRefs.Get(n) != 0 || p.days.inUse(n) || p.announcements.pending(n)
}

// freeNumber frees a number for another user. The caller has to write the number's
// block too: another user's flush may have put the id there.
func (p *partition) freeNumber(b *pebble.Batch, n uint32) error {
	p.dir.Remove(n)
	p.onDisk.remove(n)
	p.forgetAnnouncements(n)
	return b.Delete(idKey(p.index, n), nil)
}

// mayRelease notes a number of which nothing may be known any more. The next flush
// looks. A number with a last-seen time or a session is not noted.
func (p *partition) mayRelease(n uint32) {
	if p.presence.seen.Last(n) == 0 && !p.sessions.ofUser.has(n) {
		p.releasable = append(p.releasable, n)
	}
}

// releaseStep bounds the numbers that one flush frees.
const releaseStep = 4096

// releaseNumbers frees the noted numbers of which nothing is known any more, at most
// releaseStep. Nobody waits for its batch.
func (p *partition) releaseNumbers() error {
	if len(p.releasable) == 0 {
		return nil
	}
	some := slices.Clone(p.releasable[:min(len(p.releasable), releaseStep)])
	slices.Sort(some)

	// Look again: a noted number may have come into use since.
	b := p.eng.store.newBatch()
	var blocks []uint32
	var err error
	for _, n := range slices.Compact(some) {
		if err == nil && p.dir.Has(n) && !p.inUse(n) {
			err = p.freeNumber(b, n)
			blocks = append(blocks, n>>blockShift)
		}
	}

	// The numbers are sorted, so each block is written once.
	for _, block := range slices.Compact(blocks) {
		err = cmp.Or(err, p.writeBlock(b, block))
	}
	if err == nil && !b.Empty() {
		err = p.eng.store.queue(b)
	}
	if p.releasable = p.releasable[len(some):]; len(p.releasable) == 0 {
		p.releasable = nil
	}
	return errors.Join(err, b.Close())
}

// Numbers are stored in blocks of 256, so that many new users cost few keys.
const (
	blockShift = 8
	blockLen   = 1 << blockShift
)

// writeBlock stores the ids of a block of numbers.
func (p *partition) writeBlock(b *pebble.Batch, block uint32) error {
	w := writer{make([]byte, 0, blockLen*8)}
	var id [rollcall.MaxUserLen]byte
	for n := block << blockShift; n < (block+1)<<blockShift; n++ {
		if p.dir.Has(n) {
			w.bytes(p.dir.AppendID(id[:0], n))
		} else {
			w.uint(0)
		}
	}
	return b.Set(blockKey(p.index, block), w.b, nil)
}

// flushIDs puts the ids of users who came by beats into the batch, block by block.
func (p *partition) flushIDs(b *pebble.Batch) error {
	last := uint32(1<<32 - 1)
	for _, n := range p.unstored {
		if !p.dir.Has(n) || p.onDisk.has(n) {
			continue
		}
		if block := n >> blockShift; block != last {
			last = block
			if err := p.writeBlock(b, block); err != nil {
				return err
			}
		}
	}
	return nil
}

// flushedIDs is called once the batch of flushIDs has been applied.
func (p *partition) flushedIDs() {
	for _, n := range p.unstored {
		if p.dir.Has(n) {
			p.onDisk.add(n)
		}
	}
	p.unstored = p.unstored[:0]
	if cap(p.unstored) > 1<<16 {
		p.unstored = nil
	}
}

// numbers returns the numbers of the users of a share. Without add, a user who has
// none gets directory.None. With add, such a user gets a number, which is appended to
// made. The ids that the store does not have go into the batch; fresh are their
// numbers, ascending.
func (p *partition) numbers(b *pebble.Batch, s markBatch, add bool, made *[]ref) (numbers, fresh []uint32, err error) {
	numbers = make([]uint32, len(s.users))
	if !add {
		p.dir.FindAll(s.hashes, s.users, numbers)
		return numbers, nil, nil
	}
	err = p.dir.InsertAll(s.hashes, s.users, numbers, func(_ int, n uint32) {
		p.unstored = append(p.unstored, n)
		*made = append(*made, p.ref(n))
	})
	if err != nil {
		return nil, nil, errFull(err)
	}
	for _, n := range numbers {
		if !p.onDisk.has(n) {
			fresh = append(fresh, n)
		}
	}
	slices.Sort(fresh)
	fresh = slices.Compact(fresh)
	return numbers, fresh, p.putIDs(b, fresh)
}

// worthBlock is the number of new ids from which writing the whole block is cheaper
// than writing each id.
const worthBlock = blockLen / 8

// putIDs puts the ids of numbers, ascending, into the batch.
func (p *partition) putIDs(b *pebble.Batch, numbers []uint32) error {
	var id [rollcall.MaxUserLen]byte
	for len(numbers) > 0 {
		n := 1
		for n < len(numbers) && numbers[n]>>blockShift == numbers[0]>>blockShift {
			n++
		}
		if n >= worthBlock {
			if err := p.writeBlock(b, numbers[0]>>blockShift); err != nil {
				return err
			}
		} else {
			for _, one := range numbers[:n] {
				if err := b.Set(idKey(p.index, one), p.dir.AppendID(id[:0], one), nil); err != nil {
					return err
				}
			}
		}
		numbers = numbers[n:]
	}
	return nil
}

// bitset is a set of numbers, one bit each.
type bitset struct{ words column.Column[uint64] }

func (b *bitset) has(n uint32) bool { return b.words.Get(n>>6)>>(n&63)&1 != 0 }

func (b *bitset) add(n uint32) { *b.words.At(n >> 6) |= 1 << (n & 63) }

func (b *bitset) remove(n uint32) {
	if b.has(n) {
		*b.words.At(n >> 6) &^= 1 << (n & 63)
	}
}
