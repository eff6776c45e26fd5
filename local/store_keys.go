package local

import (
	"encoding/binary"

	"github.com/rollcall/rollcall"
)

// The tables of the store. A key is the table's byte, then, for most, the
// partition's, then big-endian fields, so that a table, a partition of it and
// every prefix are ranges.
const (
	tabMeta        = 'm' // name → value
	tabKind        = 'c' // kind index → kind
	tabKey         = 'i' // API key id → API key
	tabBlock       = 'n' // partition, number>>8 → ids of 256 numbers
	tabID          = 'N' // partition, number → id, newer than its block
	tabUser        = 'u' // partition, number → user record
	tabBan         = 'K' // partition, ban key → ban
	tabBeat        = 'b' // partition, second → numbers last seen in it
	tabSeen        = 'B' // partition, number>>12 → last seen of 4,096 numbers
	tabForgot      = 'o' // partition, number → last seen that was forgotten
	tabGone        = 'g' // partition, number → when to announce the user offline, "" if done. A user is gone iff the key is there
	tabHeard       = 'H' // partition, number → last seen, not in a beat record yet
	tabSilent      = 'L' // partition → users last seen before this second have been announced offline
	tabQuiet       = 'l' // partition, second, sequence → numbers last seen in it who have been, too
	tabSession     = 's' // partition, id → session
	tabTouch       = 'q' // partition, sequence → slots and when they were touched
	tabTouched     = 'Q' // partition, slot>>10 → the same for 1,024 slots
	tabEnded       = 'd' // partition, id → ended session
	tabEndedTok    = 'T' // partition, token hash → id of the ended session
	tabEndedDue    = 'x' // ms of the end, partition, id → token hash
	tabFriend      = 'f' // partition, number, friend → since
	tabNamedBy     = 'r' // partition, number of the friend, user → ""
	tabDay         = 'a' // partition, kind index, day, number>>16 → set
	tabFirst       = 'F' // partition, kind index, day, number>>16 → set of those never there before
	tabDirty       = 'h' // partition, kind index, month, number>>16 → set of those whose map is dirty
	tabHasArchived = 'A' // partition, number>>16 → set of those with archived marks
	tabOffloaded   = 'D' // kind index, day → ""
	tabLost        = 'W' // kind index, day → "", some marks of the day were lost
	tabFigures     = 'S' // kind index or allKinds, day → figures of a past day
	tabEvent       = 'e' // sequence → session event
	tabPresEvent   = 'p' // sequence of the first → presence events
	tabSessionLine = 'j' // bucket of users, sequence → which users the session event is of
	tabPresLine    = 'J' // bucket of users, sequence of the first → which users the presence events are of
	tabErasure     = 'E' // partition, last event that may name the user, all ones until the user is removed → unfinished erasure
	tabRetry       = 'y' // retry key → what was answered
	tabRetryDue    = 'Y' // ms, retry key → ""
	tabVisit       = 'v' // length of the name, name, s when the hour began → sketch
	tabWebhook     = 'w' // webhook id → webhook
	tabHookState   = 'k' // webhook id → how far it has been served
	tabSample      = 'z' // 0 for minutes or 1 for hours, minute since 1970 → sample
	tabPass        = 'P' // hash of its text → pass to the console
	tabAudit       = 't' // sequence → entry of the audit trail
	tabAuditSalt   = 'Z' // user id → salt of the user's pseudonym in it
)

type key []byte

func newKey(table byte, capacity int) key { return append(make(key, 0, capacity), table) }

func (k key) u8(v uint8) key   { return append(k, v) }
func (k key) u16(v uint16) key { return binary.BigEndian.AppendUint16(k, v) }
func (k key) u24(v uint32) key { return append(k, byte(v>>16), byte(v>>8), byte(v)) }
func (k key) u32(v uint32) key { return binary.BigEndian.AppendUint32(k, v) }
func (k key) u64(v uint64) key { return binary.BigEndian.AppendUint64(k, v) }
func (k key) raw(b []byte) key { return append(k, b...) }

func metaKey(name string) key            { return newKey(tabMeta, 16).raw([]byte(name)) }
func blockKey(p uint8, block uint32) key { return newKey(tabBlock, 5).u8(p).u24(block) }
func idKey(p uint8, n uint32) key        { return newKey(tabID, 5).u8(p).u24(n) }
func userKey(p uint8, n uint32) key      { return newKey(tabUser, 5).u8(p).u24(n) }
func goneKey(p uint8, n uint32) key      { return newKey(tabGone, 5).u8(p).u24(n) }
func heardKey(p uint8, n uint32) key     { return newKey(tabHeard, 5).u8(p).u24(n) }
func silentKey(p uint8) key              { return newKey(tabSilent, 2).u8(p) }
func forgetKey(p uint8, n uint32) key    { return newKey(tabForgot, 5).u8(p).u24(n) }
func beatKey(p uint8, sec uint32) key    { return newKey(tabBeat, 6).u8(p).u32(sec) }
func seenKey(p uint8, block uint32) key  { return newKey(tabSeen, 5).u8(p).u24(block) }
func touchKey(p uint8, seq uint64) key   { return newKey(tabTouch, 10).u8(p).u64(seq) }
func quietKey(p uint8, sec, seq uint32) key {
	return newKey(tabQuiet, 10).u8(p).u32(sec).u32(seq)
}

func touchedKey(p uint8, block uint32) key { return newKey(tabTouched, 5).u8(p).u24(block) }
func eventKey(seq uint64) key              { return newKey(tabEvent, 9).u64(seq) }
func presEventKey(seq uint64) key          { return newKey(tabPresEvent, 9).u64(seq) }

func banKey(p uint8, b rollcall.BanKey) key         { return newKey(tabBan, 18).u8(p).raw(b[:]) }
func sessionKey(p uint8, id rollcall.SessionID) key { return newKey(tabSession, 18).u8(p).raw(id[:]) }
func endedKey(p uint8, id rollcall.SessionID) key   { return newKey(tabEnded, 18).u8(p).raw(id[:]) }
func endedTokenKey(p uint8, tok tokenKey) key       { return newKey(tabEndedTok, 18).u8(p).raw(tok[:]) }

func endedDueKey(ms int64, p uint8, id rollcall.SessionID) key {
	return newKey(tabEndedDue, 26).u64(uint64(ms)).u8(p).raw(id[:])
}

func friendKey(p uint8, n uint32, friend ref) key {
	return newKey(tabFriend, 9).u8(p).u24(n).u32(uint32(friend))
}

func namedByKey(friend, user ref) key {
	return newKey(tabNamedBy, 9).u8(friend.part()).u24(friend.number()).u32(uint32(user))
}

func dayKey(p, kind uint8, day int32, container uint8) key {
	return newKey(tabDay, 8).u8(p).u8(kind).u32(uint32(day)).u8(container)
}

func firstKey(p, kind uint8, day int32, container uint8) key {
	return newKey(tabFirst, 8).u8(p).u8(kind).u32(uint32(day)).u8(container)
}

func dirtyKey(p uint8, m monthID, container uint8) key {
	return newKey(tabDirty, 8).u8(p).u8(m.kind).u32(uint32(m.month)).u8(container)
}

func hasArchivedKey(p, container uint8) key { return newKey(tabHasArchived, 3).u8(p).u8(container) }

func offloadedKey(id dayID) key { return newKey(tabOffloaded, 6).u8(id.kind).u32(uint32(id.day)) }
func lostKey(id dayID) key      { return newKey(tabLost, 6).u8(id.kind).u32(uint32(id.day)) }
func figuresKey(id dayID) key   { return newKey(tabFigures, 6).u8(id.kind).u32(uint32(id.day)) }

func retryKey(k [32]byte) key { return newKey(tabRetry, 33).raw(k[:]) }

func retryDueKey(ms int64, k [32]byte) key { return newKey(tabRetryDue, 41).u64(uint64(ms)).raw(k[:]) }

// after returns the smallest key greater than every key that begins with k.
func (k key) after() key {
	end := append(key(nil), k...)
	for i := len(end) - 1; i >= 0; i-- {
		if end[i]++; end[i] != 0 {
			return end[:i+1]
		}
	}
	return nil
}

// ref names a user anywhere in the engine: partition and number.
type ref uint32

func newRef(p uint8, n uint32) ref { return ref(p)<<24 | ref(n) }

func (r ref) part() uint8    { return uint8(r >> 24) }
func (r ref) number() uint32 { return uint32(r) & (1<<24 - 1) }

// tokenKey is the part of a token's SHA-256 that indexes and proves it: 128
// bits of a hash of 256 random bits cannot be guessed or collided with.
type tokenKey [16]byte

func tokenKeyOf(t rollcall.TokenHash) tokenKey { return tokenKey(t.Sum[:16]) }
