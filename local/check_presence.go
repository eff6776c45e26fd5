package local

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"unicode/utf8"

	"github.com/rollcall/rollcall"
)

// presence checks when users were seen, and their settings.
func (c *checker) presence() {
	c.table(tabGone, func(k, v []byte) {
		if c.number(k, "the note of a user who is gone") && len(v) != 0 && len(v) != 8 {
			c.derived(k, setting(bytes.Clone(k), nil), "the note of a user who is gone has %d bytes", len(v))
		}
	})
	c.table(tabUser, func(k, v []byte) {
		u, err := decodeUser(v)
		switch {
		case err != nil || rollcall.CheckKind(u.kind) != nil || !utf8.ValidString(u.name):
			c.fault(k, "a user's record cannot be read: %v", cmp.Or(err, errDamaged))
		default:
			c.number(k, "the record of a user")
		}
	})
	c.table(tabHeard, func(k, v []byte) {
		if len(v) != 4 {
			c.fault(k, "a last-seen time has %d bytes, not 4", len(v))
		} else if c.number(k, "a last-seen time of a user") {
			c.second(binary.BigEndian.Uint32(v))
		}
	})
	c.table(tabForgot, func(k, v []byte) {
		if len(v) != 4 {
			c.derived(k, setting(bytes.Clone(k), bytes.Repeat([]byte{0xff}, 4)), "a last-seen time that was forgotten has %d bytes, not 4", len(v))
		}
	})
	c.table(tabSilent, func(k, v []byte) {
		if len(v) != 4 {
			c.derived(k, removing(k), "how far silence was announced has %d bytes, not 4", len(v))
		}
	})
	c.table(tabQuiet, func(k, v []byte) {
		if _, err := c.numbersIn(k[1], v); err != nil || len(v) == 0 {
			c.derived(k, removing(k), "who was announced offline cannot be read: %v", cmp.Or(err, errDamaged))
		}
	})
	c.table(tabBeat, func(k, v []byte) {
		if _, err := c.numbersIn(k[1], v); err != nil || len(v) == 0 {
			c.fault(k, "beats cannot be read: %v", cmp.Or(err, errDamaged))
			return
		}
		c.second(binary.BigEndian.Uint32(k[2:]))
	})
	c.table(tabSeen, func(k, v []byte) {
		if len(v) != 4*seenLen || number24(k) >= 1<<(24-seenShift) {
			c.fault(k, "last-seen times cannot be read")
			return
		}
		for i := range uint32(seenLen) {
			if sec := binary.BigEndian.Uint32(v[4*i:]); sec != 0 {
				c.sawNumber(k[1], number24(k)<<seenShift|i)
				c.second(sec)
			}
		}
	})
}

func (c *checker) second(sec uint32) { c.time(int64(sec) * 1000) }

// numbersIn reads numbers that are stored as differences.
func (c *checker) numbersIn(part uint8, v []byte) (numbers []uint32, err error) {
	r, n := reader{b: v}, uint64(0)
	for len(r.b) > 0 {
		if n += r.uint(); n >= 1<<24 {
			r.fail()
		}
		if r.err != nil {
			return nil, r.err
		}
		c.sawNumber(part, uint32(n))
		numbers = append(numbers, uint32(n))
	}
	return numbers, nil
}
