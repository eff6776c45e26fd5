package redis

import (
	"context"
	"crypto/rand"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/enginekit"
)

// The audit trail is one stream, rc:audit, whose ids are the numbers of the entries. A script
// cannot compute SHA-256. So a server makes the hash, and the script appends the entry only
// if the one that it follows is still the newest. Otherwise it says which one is.

// auditTrail is the end of the trail as this server last knew it.
type auditTrail struct {
	turn chan struct{} // has an element while an entry is appended: one at a time
	seq  uint64
	hash rollcall.AuditHash
}

// auditAttempts bounds how often other servers may come in between.
const auditAttempts = 64

// AppendAudit implements [rollcall.Audit].
func (e *Engine) AppendAudit(ctx context.Context, now time.Time, entry rollcall.AuditEntry) (rollcall.AuditEntry, error) {
	if err := e.checkOpen(); err != nil {
		return entry, err
	}
	t := &e.audit
	select {
	case t.turn <- struct{}{}:
		defer func() { <-t.turn }()
	case <-ctx.Done():
		return entry, unavailable(ctx.Err())
	}
	entry.At = enginekit.TimeOf(now.UnixMilli())
	for range auditAttempts {
		enginekit.ChainAudit(&entry, t.seq, t.hash)
		done, err := e.tryAppendAudit(ctx, entry)
		if err != nil {
			return entry, err
		}
		if done {
			t.seq, t.hash = entry.Seq, entry.Hash
			return entry, nil
		}
	}
	return entry, &rollcall.Error{Code: rollcall.CodeUnavailable, Detail: "other servers add to the audit trail all the time: try again"}
}

// tryAppendAudit appends an entry if it follows the newest one; else it notes which that is.
func (e *Engine) tryAppendAudit(ctx context.Context, entry rollcall.AuditEntry) (done bool, err error) {
	t := &e.audit
	record, err := enginekit.EncodeAudit(entry)
	if err != nil {
		return false, err
	}
	before := ""
	if t.seq > 0 {
		before = string(t.hash[:])
	}
	msg, err := e.oneConfirmed(ctx, 0, keyCall(e.key("audit"), &e.scripts.auditAppend,
		strconv.FormatUint(entry.Seq, 10), before, string(record), string(entry.Hash[:]), fmt.Sprint(e.holder, e.requests.Add(1))))
	if err != nil {
		return false, err
	}
	newest, err := msg.AsStrSlice()
	if err != nil || len(newest) == 0 {
		return err == nil, err
	}
	if len(newest) != 2 || (len(newest[1]) != len(t.hash) && newest[1] != "") {
		return false, damaged("the audit trail")
	}
	if t.seq, err = strconv.ParseUint(newest[0], 10, 64); err != nil {
		return false, damaged("the audit trail")
	}
	t.hash = rollcall.AuditHash{}
	copy(t.hash[:], newest[1])
	return false, nil
}

// AuditEntries implements [rollcall.Audit].
func (e *Engine) AuditEntries(ctx context.Context, before uint64, limit int) ([]rollcall.AuditEntry, error) {
	from := "+"
	if before == 1 {
		return nil, nil
	} else if before > 1 {
		from = strconv.FormatUint(before-1, 10)
	}
	msg, err := e.one(ctx, 0, plainCall(func() rueidis.Completed {
		return e.client.B().Xrevrange().Key(e.key("audit")).End(from).Start("-").Count(int64(limit)).Build()
	}))
	if err != nil {
		return nil, err
	}
	entries, err := msg.AsXRange()
	if err != nil {
		return nil, damaged("the audit trail")
	}
	out := make([]rollcall.AuditEntry, len(entries))
	for i, found := range entries {
		entry, err := enginekit.DecodeAudit([]byte(found.FieldValues["e"]))
		if err != nil || found.ID != strconv.FormatUint(entry.Seq, 10)+"-0" {
			return nil, damaged("the audit trail")
		}
		out[i] = entry
	}
	return out, nil
}

// AuditSalt implements [rollcall.Audit].
func (e *Engine) AuditSalt(ctx context.Context, user string, create bool) (salt rollcall.AuditSalt, found bool, err error) {
	k := e.of(e.partOf(user), "salt:"+user)
	for range auditAttempts {
		msg, err := e.one(ctx, 0, plainCall(func() rueidis.Completed { return e.client.B().Get().Key(k).Build() }))
		if err != nil {
			return salt, false, err
		}
		if !msg.IsNil() {
			text, err := msg.ToString()
			if err != nil || len(text) != len(salt) {
				return salt, false, damaged("the salt of a user")
			}
			copy(salt[:], text)
			return salt, true, nil
		}
		if !create {
			return salt, false, nil
		}

		// Whoever comes second finds the first one's.
		var made rollcall.AuditSalt
		_, _ = rand.Read(made[:]) // never fails
		if _, err := e.oneConfirmed(ctx, 0, plainCall(func() rueidis.Completed {
			return e.client.B().Set().Key(k).Value(string(made[:])).Nx().Build()
		})); err != nil {
			return salt, false, err
		}
	}
	return salt, false, &rollcall.Error{Code: rollcall.CodeUnavailable, Detail: "the user is erased again and again: try again"}
}
