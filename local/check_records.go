package local

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/cockroachdb/pebble/v2"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/enginekit"
)

// allIDs checks the ids of users, and reads them for the checks that follow.
func (c *checker) allIDs() {
	add := func(k []byte, r ref, id string) {
		switch {
		case rollcall.CheckUser(id) != nil:
			c.badID(k, r, "%q is no id of a user", id)
		case int(r.part()) != int(rollcall.HashUser(id)&uint64(c.parts-1)):
			c.badID(k, r, "user %q is in the wrong partition", id)
		default:
			c.sawNumber(r.part(), r.number())
			c.ids[r] = id
		}
	}
	c.table(tabBlock, func(k, v []byte) {
		if number24(k) >= 1<<(24-blockShift) {
			c.fault(k, "is no block of numbers")
			return
		}
		ids, err := decodeBlock(v)
		if err != nil {
			c.fault(k, "a block of ids cannot be read: %v", err)
			return
		}
		for i, id := range ids {
			if id != "" {
				add(k, newRef(k[1], number24(k)<<blockShift|uint32(i)), id)
			}
		}
	})

	// An id by itself is newer than the one in its block.
	c.table(tabID, func(k, v []byte) { add(k, newRef(k[1], number24(k)), string(v)) })

	// No two numbers may have the same id.
	for r, id := range c.ids {
		if other, twice := c.byID[id]; twice { // nobody can tell which is right
			c.badID(idKey(r.part(), r.number()), r, "user %q also has number %d", id, other.number())
			c.badID(idKey(other.part(), other.number()), other, "user %q also has number %d", id, r.number())
		}
		c.byID[id] = r
	}
	c.report.Users = len(c.ids)
}

func decodeBlock(v []byte) (ids []string, err error) {
	r := reader{b: v}
	for range blockLen {
		ids = append(ids, r.string())
	}
	return ids, r.done()
}

// badID names a number whose id cannot stand. A mender takes it out of its block
// and leaves the others.
func (c *checker) badID(k []byte, of ref, format string, args ...any) {
	c.report.fault("key %x: %s", k, fmt.Sprintf(format, args...))
	if c.mend == nil {
		return
	}
	c.mend.drop(idKey(of.part(), of.number()), fmt.Sprintf(format, args...))
	block := blockKey(of.part(), of.number()>>blockShift)
	c.mend.rebuild(func(b *pebble.Batch) error {
		v, ok, err := c.st.get(block)
		ids, bad := decodeBlock(v)
		if err != nil || bad != nil || !ok {
			return err
		}
		ids[of.number()&(blockLen-1)] = ""
		w := writer{}
		for _, id := range ids {
			w.string(id)
		}
		return b.Set(block, w.b, nil)
	})
}

func (c *checker) number(k []byte, what string) bool {
	_, ok := c.ids[newRef(k[1], number24(k))]
	if !ok {
		c.fault(k, "%s without an id", what)
	}
	return ok
}

// liveSessions checks the live sessions, and their touches.
func (c *checker) liveSessions() {
	tokens := make(map[tokenKey]bool)
	c.table(tabSession, func(k, v []byte) {
		id := rollcall.SessionID(k[2:])
		st, err := decodeSession(id, v)
		if err != nil {
			c.fault(k, "session %s cannot be read: %v", id, err)
			return
		}
		slot := newRef(k[1], st.slot)
		other, taken := c.slots[slot]
		home := uint8(rollcall.HashUser(st.User) & uint64(c.parts-1))
		switch {
		case st.End != nil:
			c.fault(k, "session %s has ended and stands among the live", id)
		case c.has(endedKey(k[1], id)):
			c.fault(k, "session %s is both live and ended", id)
		case taken || st.slot >= 1<<24:
			c.fault(k, "session %s has the slot of %s", id, other)
		case tokens[st.token]:
			c.fault(k, "session %s has the token of another", id)
		case home != k[1] || rollcall.CheckUser(st.User) != nil:
			c.fault(k, "session %s is of user %q, who is not in its partition", id, st.User)
		default:
			if r, ok := c.byID[st.User]; !ok || r.part() != k[1] {
				c.derived(k, c.numberFor(k[1], st.User), "session %s is of user %q, who has no number", id, st.User)
			}
			c.slots[slot], tokens[st.token] = id, true
			c.report.Sessions++
			c.time(st.LoginAt.UnixMilli())
			c.time(st.SeenAt.UnixMilli())
		}
	})
	c.touches()
}

// numberFor gives a user a number that nothing is known of.
func (c *checker) numberFor(part uint8, user string) func(b *pebble.Batch) error {
	return func(b *pebble.Batch) error {
		if _, ok := c.byID[user]; ok || c.mend.round < 2 { // what else there is about numbers has been seen by then
			return nil
		}
		r := newRef(part, c.high[part])
		c.sawNumber(part, r.number())
		c.ids[r], c.byID[user] = user, r
		return b.Set(idKey(part, r.number()), []byte(user), nil)
	}
}

func (c *checker) touches() {
	check := func(k, v []byte) {
		r := reader{b: v}
		latest := int64(0)
		for len(r.b) > 0 {
			slot := r.uint()
			if slot >= 1<<24 || k[0] == tabTouched && uint32(slot)>>touchShift != number24(k) {
				r.fail()
			}
			latest = max(latest, r.int())
		}
		if r.err != nil || len(v) == 0 {
			c.fault(k, "touches cannot be read: %v", cmp.Or(r.err, errDamaged))
			return
		}
		c.time(latest)
	}
	c.table(tabTouched, check)
	c.table(tabTouch, check)
}

// endedSessions checks the ended sessions, and what finds them.
func (c *checker) endedSessions() {
	c.table(tabEnded, func(k, v []byte) {
		id := rollcall.SessionID(k[2:])
		st, err := decodeSession(id, v)
		if err != nil || st.End == nil {
			c.fault(k, "ended session %s cannot be read: %v", id, cmp.Or(err, errors.New("it has not ended")))
			return
		}
		due := endedDueKey(st.End.At.UnixMilli(), k[1], id)
		if v, ok, err := c.st.get(due); err != nil || !ok || !bytes.Equal(v, st.token[:]) {
			c.derived(k, setting(due, bytes.Clone(st.token[:])), "ended session %s would be remembered for ever", id)
		}
		token := endedTokenKey(k[1], st.token)
		if v, ok, err := c.st.get(token); err != nil || !ok || !bytes.Equal(v, id[:]) {
			c.derived(k, setting(token, bytes.Clone(id[:])), "ended session %s cannot be found by its token", id)
		}
	})
	c.table(tabEndedTok, func(k, v []byte) {
		if len(v) != 16 || !c.leadsTo(k[1], rollcall.SessionID(v), func(st *sessionRecord) bool { return st.token == tokenKey(k[2:]) }) {
			c.derived(k, removing(k), "leads to no ended session")
		}
	})
	c.table(tabEndedDue, func(k, v []byte) {
		ms := int64(binary.BigEndian.Uint64(k[1:]))
		if len(v) != 16 || !c.leadsTo(k[9], rollcall.SessionID(k[10:]), func(st *sessionRecord) bool { return st.End.At.UnixMilli() == ms }) {
			c.derived(k, removing(k), "leads to no ended session")
		}
	})
}

// leadsTo reports whether there is an ended session that is as a record says.
func (c *checker) leadsTo(part uint8, id rollcall.SessionID, fits func(st *sessionRecord) bool) bool {
	v, ok, err := c.st.get(endedKey(part, id))
	if err != nil || !ok {
		return false
	}
	st, err := decodeSession(id, v)
	return err != nil || st.End == nil || fits(&st) // a damaged one is named by itself
}

// friendLinks checks that every edge between friends stands in both directions.
func (c *checker) friendLinks() {
	c.table(tabFriend, func(k, v []byte) {
		friend := ref(binary.BigEndian.Uint32(k[5:]))
		user := newRef(k[1], number24(k))
		c.sawNumber(friend.part(), friend.number())
		if !c.number(k, "a friend") {
			return
		}
		if _, ok := c.ids[friend]; !ok || len(v) != 8 {
			c.fault(k, "a friend without an id or a time of friendship")
			return
		}
		if !c.has(namedByKey(friend, user)) {
			c.derived(k, setting(namedByKey(friend, user), nil), "a friend who does not know who names them")
		}
	})
	c.table(tabNamedBy, func(k, v []byte) {
		user := ref(binary.BigEndian.Uint32(k[5:]))
		friend := newRef(k[1], number24(k))
		c.sawNumber(user.part(), user.number())
		edge := friendKey(user.part(), user.number(), friend)
		if len(v) != 0 {
			c.derived(k, setting(bytes.Clone(k), nil), "has a value, and needs none")
			return
		}
		if c.has(edge) {
			return
		}
		if c.mend != nil && c.mend.lost.has(edge) && c.ids[user] != "" && c.ids[friend] != "" {
			c.derived(k, setting(edge, binary.BigEndian.AppendUint64(nil, uint64(c.mend.now))), "named as friend, and the record is lost")
			c.mend.undated++
			return
		}
		c.derived(k, removing(k), "named as friend by one who does not")
	})
}

// admin checks bans, API keys and erasures that are not finished.
func (c *checker) admin() {
	c.table(tabBan, func(k, v []byte) {
		ban, err := decodeBan(rollcall.BanKey(k[2:]), v)
		if err != nil {
			c.fault(k, "a ban cannot be read: %v", err)
			return
		}
		if home := uint8(rollcall.HashUser(ban.User) & uint64(c.parts-1)); ban.User != "" && home != k[1] {
			c.derived(k, func(b *pebble.Batch) error {
				return errors.Join(b.Delete(banKey(k[1], ban.Key), nil), b.Set(banKey(home, ban.Key), encodeBan(ban), nil))
			}, "the ban of %q is in the wrong partition", ban.User)
		}
	})
	hashes := make(map[rollcall.KeyHash]bool)
	c.table(tabKey, func(k, v []byte) {
		one, err := decodeAPIKey(string(k[1:]), v)
		if err != nil || !one.Role.Allows(rollcall.RoleReader) || hashes[one.Hash] {
			c.fault(k, "an API key cannot be read: %v", cmp.Or(err, errDamaged))
			return
		}
		hashes[one.Hash] = true
	})
	c.webhooks()
	c.table(tabPass, func(k, v []byte) {
		if len(k) != 33 {
			return // said of all tables
		}
		if _, err := enginekit.DecodePass(rollcall.PassHash(k[1:]), v); err != nil {
			c.fault(k, "a pass to the console cannot be read: %v", err)
		}
	})
	c.audit()
	c.table(tabErasure, func(k, v []byte) {
		x, err := decodeErasure(k, v)
		if err != nil || rollcall.CheckUser(x.user) != nil || rollcall.HashUser(x.user)&uint64(c.parts-1) != uint64(k[1]) {
			c.fault(k, "an erasure that is not finished cannot be read")
		}
	})
}

// webhooks checks the webhooks and their states.
func (c *checker) webhooks() {
	known := make(map[string]bool)
	c.table(tabWebhook, func(k, v []byte) {
		w, err := enginekit.DecodeWebhook(v)
		if err != nil || w.ID != string(k[1:]) {
			c.fault(k, "a webhook cannot be read: %v", cmp.Or(err, errDamaged))
			return
		}
		known[w.ID] = true
	})
	c.table(tabHookState, func(k, v []byte) {
		if _, err := enginekit.DecodeWebhookState(v); err != nil || len(v) == 0 {
			c.fault(k, "the state of a webhook cannot be read: %v", cmp.Or(err, errDamaged))
			return
		}
		if !known[string(k[1:])] {
			c.derived(k, removing(k), "is the state of no webhook")
		}
	})
}

// audit checks that the entries of the audit trail and the salts of users can be read.
// Whether the entries are those that were written is for rollcall audit verify: no repair
// could mend the chain.
func (c *checker) audit() {
	c.table(tabAudit, func(k, v []byte) {
		if _, err := decodeAudit(k, v); err != nil {
			c.fault(k, "an entry of the audit trail cannot be read: %v", cmp.Or(errors.Unwrap(err), err))
		}
	})
	c.table(tabAuditSalt, func(k, v []byte) {
		if rollcall.CheckUser(string(k[1:])) != nil || len(v) != len(rollcall.AuditSalt{}) {
			c.fault(k, "the salt of a user cannot be read")
		}
	})
}

func (c *checker) visits() {
	names := make(map[string]bool)
	c.table(tabVisit, func(k, v []byte) {
		name, _, ok := visitOfKey(k)
		if !ok || len(name) > rollcall.MaxVisitNameLen || !utf8.ValidString(name) {
			c.fault(k, "is no name and hour of visits")
			return
		}
		if name != rollcall.VisitsOther { // it always has room
			names[name] = true
		}
		if len(names) > rollcall.MaxVisitNames {
			c.fault(k, "visits of %q, which is one name too many", name)
			delete(names, name)
		}
		if _, err := decodeSketch(v); err != nil {
			c.fault(k, "visits cannot be read: %v", err)
		}
	})
}

// samples checks the samples of minutes and hours.
func (c *checker) samples() {
	c.table(tabSample, func(k, v []byte) {
		s, err := enginekit.DecodeSample(v)
		if err != nil || s.Minute != binary.BigEndian.Uint32(k[2:]) || k[1] > hourSamples {
			c.fault(k, "a sample of a minute or an hour cannot be read")
		}
	})
}

// retries checks what is remembered of retried logins.
func (c *checker) retries() {
	c.table(tabRetry, func(k, v []byte) {
		at, err := decodeRetry(v)
		if err != nil {
			c.fault(k, "a retried login cannot be read: %v", err)
			return
		}
		if due := retryDueKey(at, [32]byte(k[1:])); !c.has(due) {
			c.derived(k, setting(due, nil), "a retried login would be remembered for ever")
		}
	})
	c.table(tabRetryDue, func(k, v []byte) {
		of := retryKey([32]byte(k[9:]))
		got, ok, err := c.st.get(of)
		at, bad := decodeRetry(got)
		if err != nil || !ok || (bad == nil && at < int64(binary.BigEndian.Uint64(k[1:]))) || len(v) != 0 {
			c.derived(k, removing(k), "leads to no retried login")
		}
	})
}

// decodeRetry reads when a retried login was made.
func decodeRetry(v []byte) (at int64, err error) {
	r := reader{b: v}
	at = r.int()
	r.raw(32)
	r.raw(32)
	r.id()
	for n := r.uint(); n > 0 && r.err == nil; n-- {
		r.id()
	}
	return at, r.done()
}
