package rollcall

import (
	"context"
	"time"
)

// Audit is the trail of what administrators did. Entries are only added: nothing changes
// or removes one, and none is of the [Transfer] to another engine.
type Audit interface {
	// AppendAudit adds an entry behind the newest one and returns it. The engine fills in
	// Seq, which rises by one from 1, At, which is now to the millisecond, and Hash, which is
	// HashAfter the entry before. Entries added at once, also by several servers, make one
	// chain.
	AppendAudit(ctx context.Context, now time.Time, e AuditEntry) (AuditEntry, error)
	// AuditEntries returns up to limit entries, 1 to MaxLimit, newest first: those with a Seq
	// below before, or the newest ones for 0. It costs O(limit).
	AuditEntries(ctx context.Context, before uint64, limit int) ([]AuditEntry, error)
	// AuditSalt returns the salt of a user, the same one until Erase destroys it. If there is
	// none it makes 16 random bytes, or, without create, returns false. Having a salt is nothing that
	// is known of a user: it is in no count, list or export.
	AuditSalt(ctx context.Context, user string, create bool) (AuditSalt, bool, error)
}
