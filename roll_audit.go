package rollcall

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"maps"
	"strconv"
	"strings"
)

// NewAuditEntry describes an act for the audit trail.
type NewAuditEntry struct {
	Action AuditAction
	User   string // whom it was done to; the trail gets a pseudonym
	Target string // what it was done to, if not a user
	Detail map[string]string

	noSalt bool // a user without a salt gets none: their id may not enter the store with it
}

// The audit trail.
//
// An act stands in the trail before it is done, durably: no act can be without an entry, and
// if the entry cannot be written the act is refused. If the act then fails, or counts something,
// an entry "outcome" follows. So an entry without one says that the act was done, or
// that the server died before it could say.

// Audit writes an entry of an act to the trail, in the name of the actor of the context
// ([WithActor]); without one it does nothing. A user is written as a pseudonym:
// HMAC-SHA-256(secret, "audit" ‖ 0 ‖ salt ‖ 0 ‖ user), of which 16 bytes are kept. The salt
// is destroyed when the user is erased: from then on nobody can tell whom an entry meant.
// Roll does this by itself for its own commands.
func (r *Roll) Audit(ctx context.Context, n NewAuditEntry) error {
	_, err := r.noteAct(ctx, n)
	return err
}

// noteAct writes the entry of an act that is about to be done, and returns its number; 0 if
// the context has no actor.
func (r *Roll) noteAct(ctx context.Context, n NewAuditEntry) (uint64, error) {
	actor := ActorOf(ctx)
	if actor == "" {
		return 0, nil
	}
	e := AuditEntry{Actor: clipText(actor, MaxActorLen), Action: n.Action, Target: clipText(n.Target, MaxAuditText)}
	for name, value := range n.Detail {
		if value == "" {
			continue
		}
		if e.Detail == nil {
			e.Detail = make(map[string]string)
		}
		e.Detail[clipText(name, MaxAuditText)] = clipText(value, MaxAuditText)
	}
	if len(e.Detail) > MaxAuditDetails {
		return 0, Invalid("detail", "holds %d fields, the limit is %d", len(e.Detail), MaxAuditDetails)
	}
	if n.User != "" {
		salt, found, err := r.engine.AuditSalt(ctx, n.User, !n.noSalt)
		if err != nil {
			return 0, err
		}
		if !found { // a pseudonym that fits nobody
			_, _ = rand.Read(salt[:]) // never fails
		}
		e.Target = r.auditTarget(salt, n.User)
	}
	made, err := r.engine.AppendAudit(ctx, r.clock.Now(), e)
	return made.Seq, err
}

// auditTarget is the pseudonym of a user in the trail.
func (r *Roll) auditTarget(salt AuditSalt, user string) string {
	sum := r.keyed("audit", salt[:], []byte(user))
	return "user:" + hex.EncodeToString(sum[:16])
}

// act writes the entry of an act, does it, and writes its outcome if it failed or counted.
// counted says what it counted, in the fields of the outcome; nil for nothing.
func act[T any](ctx context.Context, r *Roll, n NewAuditEntry, do func() (T, error), counted func(T) map[string]string) (T, error) {
	seq, err := r.noteAct(ctx, n)
	if err != nil {
		var none T
		return none, err
	}
	out, err := do()
	if seq == 0 || (err == nil && counted == nil) {
		return out, err
	}
	detail := map[string]string{"of": strconv.FormatUint(seq, 10)}
	if counted != nil {
		maps.Copy(detail, counted(out))
	}
	if err != nil {
		detail["error"] = string(CodeOf(err))
	}
	// The act has been done or has failed, and its caller is told that, whatever becomes of
	// this entry. It is written also if the caller has gone.
	_, _ = r.noteAct(context.WithoutCancel(ctx), NewAuditEntry{Action: AuditOutcome, Detail: detail})
	return out, err
}

// actErr is act for what returns an error alone.
func (r *Roll) actErr(ctx context.Context, n NewAuditEntry, do func() error) error {
	_, err := act(ctx, r, n, func() (struct{}, error) { return struct{}{}, do() }, nil)
	return err
}

// clipText keeps a text within a limit, and in UTF-8.
func clipText(text string, limit int) string {
	if len(text) > limit {
		text = text[:limit]
	}
	return strings.ToValidUTF8(text, "")
}

// auditSteps is how many reads of MaxLimit entries one page looks through for a user.
const auditSteps = 4

// AuditTrail returns entries of the audit trail, newest first. Of an erased user none is
// found: their pseudonyms stay, and nobody can tell that they were theirs.
func (r *Roll) AuditTrail(ctx context.Context, q AuditQuery) (AuditPage, error) {
	return observe(ctx, r, "audit_trail", func() (AuditPage, error) {
		if q.Limit < 1 || q.Limit > MaxLimit {
			return AuditPage{}, Invalid("limit", "must be between 1 and %d, is %d", MaxLimit, q.Limit)
		}
		query := "audit\x00" + q.User
		place, err := r.openCursor(q.Cursor, query)
		if err != nil {
			return AuditPage{}, err
		}
		before, err := strconv.ParseUint("0"+place, 10, 64)
		if err != nil {
			return AuditPage{}, Invalid("cursor", "is not a cursor of this list")
		}
		var items []AuditEntry
		if q.User == "" {
			if items, err = r.engine.AuditEntries(ctx, before, q.Limit); err == nil && len(items) == q.Limit {
				before = items[len(items)-1].Seq
			} else {
				before = 1
			}
		} else {
			items, before, err = r.auditOf(ctx, q.User, before, q.Limit)
		}
		if err != nil || before <= 1 {
			return AuditPage{Items: items}, err
		}
		return AuditPage{Items: items, Next: r.sealCursor(strconv.FormatUint(before, 10), query)}, nil
	})
}

// auditOf returns entries about a user, and before which entry to go on; 1 at the end.
func (r *Roll) auditOf(ctx context.Context, user string, before uint64, limit int) ([]AuditEntry, uint64, error) {
	if err := validateUser("user", user); err != nil {
		return nil, 0, err
	}
	salt, found, err := r.engine.AuditSalt(ctx, user, false)
	if err != nil || !found {
		return nil, 1, err
	}
	target := r.auditTarget(salt, user)
	var items []AuditEntry
	for range auditSteps {
		some, err := r.engine.AuditEntries(ctx, before, MaxLimit)
		if err != nil {
			return nil, 0, err
		}
		for i := range some {
			if some[i].Target != target {
				continue
			}
			if items = append(items, some[i]); len(items) == limit {
				return items, some[i].Seq, nil
			}
		}
		if len(some) < MaxLimit {
			return items, 1, nil
		}
		before = some[len(some)-1].Seq
	}
	return items, before, nil
}

// errAuditBroken is the error of a trail whose chain does not hold.
var errAuditBroken = errors.New("the chain of the audit trail is broken")

// AuditCheck checks the chain of an audit trail that is read from its newest entry back. The
// zero value is ready. It holds one entry at a time.
type AuditCheck struct {
	Newest AuditEntry // the first entry that was given: note its Seq and Hash elsewhere
	Count  uint64     // entries that were given
	Broken uint64     // the lowest Seq at which the chain does not hold; 0 for none

	later AuditEntry // the entry that was given last, whose hash covers the next one's
}

// Add takes the next older entry.
func (c *AuditCheck) Add(e AuditEntry) {
	if c.Count == 0 {
		c.Newest = e
	} else if c.later.Seq != e.Seq+1 || c.later.Hash != c.later.HashAfter(e.Hash) {
		c.Broken = c.later.Seq
	}
	c.Count++
	c.later = e
}

// End is called behind the oldest entry. It returns an error that names the first entry at
// which the chain does not hold, and nil if it holds.
func (c *AuditCheck) End() error {
	if c.Count > 0 && (c.later.Seq != 1 || c.later.Hash != c.later.HashAfter(AuditHash{})) {
		c.Broken = c.later.Seq
	}
	if c.Broken == 0 {
		return nil
	}
	return &Error{Code: CodeConflict, Detail: "the audit trail was changed: its chain does not hold at entry " + strconv.FormatUint(c.Broken, 10), Err: errAuditBroken}
}
