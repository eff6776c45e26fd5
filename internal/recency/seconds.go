package recency

import (
	"sync"
	"sync/atomic"
	"unsafe"
)

const (
	blockLen = 4096                         // seconds in a block
	leafLen  = 1024                         // blocks in a leaf
	leaves   = 1 << 32 / blockLen / leafLen // leaves to cover all of time
)

// block counts by second.
type block [blockLen]atomic.Int32

// span stands for the seconds of a block, whether they have one or not.
type span struct {
	sum      atomic.Int64
	block    atomic.Pointer[block]
	writers  atomic.Int32 // at work on the block
	dropping atomic.Bool  // Trim is looking whether it may go
}

// leaf holds the sums of neighbouring blocks together, so that a long sum
// reads little memory.
type leaf [leafLen]span

// Seconds counts numbers by the second they were last heard. One is shared by
// many tables. The zero Seconds counts nothing and is ready to use. It is safe
// for concurrent use, and takes a lock only to make or drop a block.
//
// A second counts at most 1<<31 - 1 numbers.
type Seconds struct {
	leaves [leaves]atomic.Pointer[leaf]
	mu     sync.Mutex // held to change which leaves and blocks there are
}

// Add adds delta to the count of a second. Second 0, never, is not counted.
// For more than one second a [Tally] is faster.
func (s *Seconds) Add(sec uint32, delta int64) {
	if sec != 0 && delta != 0 {
		s.apply([]change{{sec, int32(delta)}})
	}
}

// apply adds all changes. Those of one block that stand together cost one
// visit to it, and one to its sum, if that moves at all.
func (s *Seconds) apply(changes []change) {
	for len(changes) > 0 {
		i := changes[0].sec / blockLen
		p := s.span(i)
		b := s.enter(p)
		sum, k := int64(0), 0
		for ; k < len(changes) && changes[k].sec/blockLen == i; k++ {
			b[changes[k].sec%blockLen].Add(changes[k].delta)
			sum += int64(changes[k].delta)
		}
		if sum != 0 {
			p.sum.Add(sum)
		}
		p.writers.Add(-1)
		changes = changes[k:]
	}
}

// Sum returns how many numbers were last heard from one second to another,
// both included. Next to changes in flight it may count some and not others.
// It adds up single seconds at the edges, and whole blocks between.
func (s *Seconds) Sum(from, to uint32) int64 {
	if from > to {
		return 0
	}
	first, last := from/blockLen, to/blockLen
	if first == last {
		return s.part(first, from%blockLen, to%blockLen)
	}
	total := s.part(first, from%blockLen, blockLen-1)
	for i := first + 1; i < last; {
		end := min(last, (i/leafLen+1)*leafLen)
		if l := s.leaves[i/leafLen].Load(); l != nil {
			for j := i; j < end; j++ {
				total += l[j%leafLen].sum.Load()
			}
		}
		i = end
	}
	return total + s.part(last, 0, to%blockLen)
}

// Trim gives up the memory of seconds before one, as far as they count
// nothing. Blocks are dropped whole, and stay if written to at this moment.
func (s *Seconds) Trim(before uint32) {
	for i := uint32(0); i < before/blockLen; {
		end := min(before/blockLen, (i/leafLen+1)*leafLen)
		if l := s.leaves[i/leafLen].Load(); l != nil {
			for ; i < end; i++ {
				s.drop(&l[i%leafLen])
			}
		}
		i = end
	}
}

// Bytes returns the memory held.
func (s *Seconds) Bytes() int {
	total := int(unsafe.Sizeof(*s))
	for i := range s.leaves {
		l := s.leaves[i].Load()
		if l == nil {
			continue
		}
		total += int(unsafe.Sizeof(*l))
		for j := range l {
			if l[j].block.Load() != nil {
				total += int(unsafe.Sizeof(block{}))
			}
		}
	}
	return total
}

// part sums the seconds lo to hi, both included, of block i.
func (s *Seconds) part(i, lo, hi uint32) int64 {
	l := s.leaves[i/leafLen].Load()
	if l == nil {
		return 0
	}
	p := &l[i%leafLen]
	if lo == 0 && hi == blockLen-1 {
		return p.sum.Load()
	}
	b := p.block.Load()
	if b == nil {
		return 0
	}
	var total int64
	for sec := lo; sec <= hi; sec++ {
		total += int64(b[sec].Load())
	}
	return total
}

// span returns the span of block i, making its leaf if need be.
func (s *Seconds) span(i uint32) *span {
	at := &s.leaves[i/leafLen]
	l := at.Load()
	if l == nil {
		s.mu.Lock()
		if l = at.Load(); l == nil {
			l = new(leaf)
			at.Store(l)
		}
		s.mu.Unlock()
	}
	return &l[i%leafLen]
}

// enter joins the writers of a span, and returns its block, making it if need
// be. The block stays until they have left: Trim says what it is about before
// it looks for writers, and a writer joins before it looks for Trim, so that
// one of the two sees the other and waits, or gives up.
func (s *Seconds) enter(p *span) *block {
	p.writers.Add(1)
	if !p.dropping.Load() {
		if b := p.block.Load(); b != nil {
			return b
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	b := p.block.Load()
	if b == nil {
		b = new(block)
		p.block.Store(b)
	}
	return b
}

// drop drops the block of a span if all its counts are zero.
func (s *Seconds) drop(p *span) {
	if p.block.Load() == nil || p.sum.Load() != 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	p.dropping.Store(true)
	defer p.dropping.Store(false)
	b := p.block.Load()
	if b == nil || p.writers.Load() != 0 {
		return
	}
	for i := range b {
		if b[i].Load() != 0 {
			return
		}
	}
	p.block.Store(nil)
}
