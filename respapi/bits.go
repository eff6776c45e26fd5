package respapi

import (
	"math/bits"
	"strconv"
	"sync"
	"time"

	"github.com/rollcall/rollcall"
)

// maxBitOp is how many bitmaps BITOP takes: the months of a hundred years.
const maxBitOp = 1200

// A month is a map of 32 bits: those of the days, and one more if the first day is bit 1. Redis
// numbers bits from the highest of the first byte.

// monthKey is what a key that is bound to attendance stands for.
type monthKey struct {
	user, kind string
	month      rollcall.Month
	first      int // bit of the first day
}

func (c *conn) monthKey(b *binding, n names) (monthKey, error) {
	k := monthKey{user: c.beats.keep(n.user), kind: c.beats.keep(n.kind)}
	if b.fromOne {
		k.first = 1
	}
	text := n.month
	if len(text) == 7 && text[4] == '-' {
		text = append(append(make([]byte, 0, 6), text[:4]...), text[5:]...)
	}
	v, err := strconv.Atoi(string(text))
	if k.month = rollcall.Month(v); err != nil || len(text) != 6 || v < 0 || v > int(rollcall.LastMonth) || !k.month.Valid() { //nolint:gosec // bounded beside
		return k, rollcall.Invalid("month", "%q is no month: 2017-10", clip(n.month))
	}
	return k, nil
}

// day returns the day of a bit.
func (k monthKey) day(bit []byte) (rollcall.Day, error) {
	v, err := strconv.Atoi(string(bit))
	if d := v - k.first + 1; err == nil && d >= 1 && d <= k.month.Len() {
		return k.month.Day(d), nil
	}
	return 0, rollcall.Invalid("offset", "must be between %d and %d in this month, is %q", k.first, k.month.Len()-1+k.first, clip(bit))
}

// read returns the bits of the month, the lowest one being bit 0.
func (c *conn) monthBits(k monthKey) (uint64, error) {
	a, err := c.roll.Attended(c.ctx, k.user, k.kind, k.month.Range())
	var set uint64
	for _, d := range a.Days {
		set |= uint64(rollcall.Bit(d)) << k.first
	}
	return set, err
}

// bitmap is the text that Redis would keep for bits, without bytes of zero at its end.
func bitmap(set uint64) []byte {
	var out []byte
	for ; set != 0; set >>= 8 {
		out = append(out, bits.Reverse8(byte(set)))
	}
	return out
}

// cmdSetBit is SETBIT key bit 0|1: a mark, or one taken back. It answers what stood before.
func cmdSetBit(c *conn, args [][]byte) {
	b, n := c.bound(args[1], "string")
	if b == nil {
		return
	}
	k, err := c.monthKey(b, n)
	var day rollcall.Day
	if err == nil {
		day, err = k.day(args[2])
	}
	if err != nil {
		c.failWith(err)
		return
	}
	c.marks = append(c.marks[:0], rollcall.Mark{User: k.user, Kind: k.kind, Day: day})
	var before int
	switch string(args[3]) {
	case "1":
		_, before, err = c.l.roll.Mark(c.ctx, c.marks...)
	case "0":
		before, err = c.l.roll.Unmark(c.ctx, false, c.marks...)
	default:
		err = rollcall.Invalid("bit", "must be 0 or 1, is %q", clip(args[3]))
	}
	if err != nil {
		c.failWith(err)
		return
	}
	c.int(before)
}

func cmdGetBit(c *conn, args [][]byte) {
	set, ok := c.bitsOf(args[1])
	if !ok {
		return
	}
	bit, err := strconv.ParseUint(string(args[2]), 10, 32)
	if err != nil {
		c.failWith(rollcall.Invalid("offset", "is not a bit's number: %q", clip(args[2])))
		return
	}
	c.bool(bit < 64 && set>>bit&1 == 1)
}

func cmdGet(c *conn, args [][]byte) {
	set, ok := c.bitsOf(args[1])
	switch {
	case !ok:
	case set == 0:
		c.null()
	default:
		c.bulkBytes(bitmap(set))
	}
}

// bitsOf returns the bits of a month, or of a result of BITOP; false if it answered that
// there are none.
func (c *conn) bitsOf(key []byte) (uint64, bool) {
	if b, _ := c.l.opts.Dialect.find(key); b == nil {
		if set, ok := c.l.scratch.get(c.scratchKey(key), c.now); ok {
			return set, true
		}
	}
	b, n := c.bound(key, "string")
	if b == nil {
		return 0, false
	}
	k, err := c.monthKey(b, n)
	var set uint64
	if err == nil {
		set, err = c.monthBits(k)
	}
	if err != nil {
		c.failWith(err)
		return 0, false
	}
	return set, true
}

// cmdBitCount is BITCOUNT key [from to [BYTE|BIT]].
func cmdBitCount(c *conn, args [][]byte) {
	if len(args) == 3 {
		c.failWith(rollcall.Invalid("BITCOUNT", "takes both ends of a range, or none"))
		return
	}
	set, ok := c.bitsOf(args[1])
	if !ok {
		return
	}
	if len(args) == 2 {
		c.int(bits.OnesCount64(set))
		return
	}
	unit := 8
	if len(args) == 5 {
		switch {
		case is(args[4], "BIT"):
			unit = 1
		case !is(args[4], "BYTE"):
			c.failWith(rollcall.Invalid("BITCOUNT", "counts in BYTE or BIT"))
			return
		}
	}
	first, n, err := ranks(args[2], args[3], len(bitmap(set))*8/unit)
	if err != nil {
		c.failWith(err)
		return
	}
	count := 0
	for bit := first * unit; bit < (first+n)*unit && bit < 64; bit++ {
		count += int(set >> bit & 1)
	}
	c.int(count)
}

// cmdBitOp is BITOP AND|OR|XOR destination key [key …]. The result is kept for scratchTime, for
// those who use the same API key on this server.
func cmdBitOp(c *conn, args [][]byte) {
	if b, _ := c.l.opts.Dialect.find(args[2]); b != nil {
		c.failWith(rollcall.Invalid("BITOP", "would write over days: give it a destination that is bound to nothing"))
		return
	}
	combine := func(a, b uint64) uint64 { return a | b }
	switch {
	case is(args[1], "OR"):
	case is(args[1], "AND"):
		combine = func(a, b uint64) uint64 { return a & b }
	case is(args[1], "XOR"):
		combine = func(a, b uint64) uint64 { return a ^ b }
	default:
		c.failWith(rollcall.Invalid("BITOP", "'%s' is not served here: there are OR, AND and XOR", clip(args[1])))
		return
	}
	var out uint64
	size := 0
	for i, key := range args[3:] {
		set, ok := c.bitsOf(key)
		if !ok {
			return
		}
		if size = max(size, len(bitmap(set))); i == 0 {
			out = set
		} else {
			out = combine(out, set)
		}
	}
	c.l.scratch.put(c.scratchKey(args[2]), out, c.now)
	c.int(size)
}

const (
	// scratchTime is how long the result of BITOP is kept at least, and maxScratch how many
	// there are in one generation.
	scratchTime = time.Minute
	maxScratch  = 4096
	// maxScratchKey bounds the name of a result, in bytes.
	maxScratchKey = 512
)

// scratch keeps results of BITOP for the command that comes next, perhaps on another
// connection of a pool. There are two generations: each lives for one to two times
// scratchTime, or shorter if there are very many.
type scratch struct {
	mu         sync.Mutex
	young, old map[string]uint64
	since      time.Time
}

func newScratch() *scratch { return &scratch{young: make(map[string]uint64)} }

func (c *conn) scratchKey(key []byte) string { return c.who.key.ID + "\x00" + string(key) }

func (s *scratch) put(key string, set uint64, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.age(now)
	if len(key) > maxScratchKey {
		return // reads as a name that is bound to nothing
	}
	if len(s.young) >= maxScratch {
		s.old, s.young, s.since = s.young, make(map[string]uint64), now
	}
	s.young[key] = set
}

func (s *scratch) get(key string, now time.Time) (set uint64, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.age(now)
	if set, ok = s.young[key]; !ok {
		set, ok = s.old[key]
	}
	return set, ok
}

func (s *scratch) remove(key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, young := s.young[key]
	_, old := s.old[key]
	delete(s.young, key)
	delete(s.old, key)
	return young || old
}

func (s *scratch) age(now time.Time) {
	if age := now.Sub(s.since); age >= scratchTime || age < 0 {
		s.old = s.young
		if age >= 2*scratchTime || age < 0 {
			s.old = nil
		}
		s.young, s.since = make(map[string]uint64), now
	}
}
