package local

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/enginekit"
)

// auditTrail is the end of the audit trail. Entries and salts stay in the store.
type auditTrail struct {
	mu   sync.Mutex
	seq  uint64 // of the newest entry
	hash rollcall.AuditHash
}

func auditKey(seq uint64) key      { return newKey(tabAudit, 9).u64(seq) }
func auditSaltKey(user string) key { return newKey(tabAuditSalt, 1+len(user)).raw([]byte(user)) }

// decodeAudit reads an entry with its key.
func decodeAudit(k, v []byte) (rollcall.AuditEntry, error) {
	entry, err := enginekit.DecodeAudit(v)
	if err == nil && (len(k) != 9 || entry.Seq != binary.BigEndian.Uint64(k[1:])) {
		err = errDamaged
	}
	if err != nil {
		return entry, damaged("entry of the audit trail", k, err)
	}
	return entry, nil
}

// loadAudit finds the newest entry.
func (e *Engine) loadAudit() error {
	db, release, err := e.store.use()
	if err != nil {
		return err
	}
	defer release()
	table := newKey(tabAudit, 1)
	it, err := db.NewIter(&pebble.IterOptions{LowerBound: table, UpperBound: table.after()})
	if err != nil {
		return storeError(err)
	}
	if it.Last() {
		var entry rollcall.AuditEntry
		if entry, err = decodeAudit(it.Key(), it.Value()); err == nil {
			e.audit.seq, e.audit.hash = entry.Seq, entry.Hash
		}
	}
	return errors.Join(err, storeError(it.Error()), storeError(it.Close()))
}

// AppendAudit implements [rollcall.Audit].
func (e *Engine) AppendAudit(_ context.Context, at time.Time, entry rollcall.AuditEntry) (rollcall.AuditEntry, error) {
	now, err := e.enterWrite(at)
	if err != nil {
		return entry, err
	}
	entry.At = enginekit.TimeOf(now)
	b := e.store.newBatch()
	defer e.store.reuse(b)

	// The lock orders the entries; the disk is waited for outside of it.
	t := &e.audit
	t.mu.Lock()
	enginekit.ChainAudit(&entry, t.seq, t.hash)
	v, err := enginekit.EncodeAudit(entry)
	if err == nil {
		err = b.Set(auditKey(entry.Seq), v, nil)
	}
	if err != nil {
		t.mu.Unlock()
		return entry, err
	}
	ticket, err := e.store.apply(b)
	if err == nil {
		t.seq, t.hash = entry.Seq, entry.Hash
	}
	t.mu.Unlock()
	if err != nil {
		return entry, err
	}
	return entry, e.store.wait(ticket)
}

// AuditEntries implements [rollcall.Audit].
func (e *Engine) AuditEntries(ctx context.Context, before uint64, limit int) ([]rollcall.AuditEntry, error) {
	if err := e.readable(); err != nil {
		return nil, err
	}
	e.audit.mu.Lock()
	newest := e.audit.seq
	e.audit.mu.Unlock()
	if before == 0 || before > newest+1 {
		before = newest + 1
	}
	from := uint64(1)
	if before > uint64(limit) {
		from = before - uint64(limit)
	}
	var out []rollcall.AuditEntry
	err := e.store.scanRange(ctx, auditKey(from), auditKey(before), func(k, v []byte) error {
		entry, err := decodeAudit(k, v)
		out = append(out, entry)
		return err
	})
	slices.Reverse(out)
	return out, err
}

// AuditSalt implements [rollcall.Audit]. The partition's lock orders it with the user's
// erasure.
func (e *Engine) AuditSalt(_ context.Context, user string, create bool) (salt rollcall.AuditSalt, found bool, err error) {
	if err := e.readable(); err != nil {
		return salt, false, err
	}
	p := e.partitionOf(user)
	p.mu.Lock()
	k := auditSaltKey(user)
	v, found, err := e.store.get(k)
	if err == nil && found && len(v) != len(salt) {
		err = damaged("salt of a user", k, errDamaged)
	}
	if err != nil || found || !create {
		p.mu.Unlock()
		copy(salt[:], v)
		return salt, found && err == nil, err
	}

	// The entry that the salt is for is synced after it, so the salt is not waited for.
	_, _ = rand.Read(salt[:]) // never fails
	if err = e.store.writable(); err == nil {
		err = e.store.put(k, salt[:])
	}
	p.mu.Unlock()
	return salt, err == nil, err
}
