package rollcall

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"maps"
	"slices"
	"strconv"
	"time"
)

// AuditAction names what an administrator did.
type AuditAction string

// The actions of the audit trail.
const (
	AuditKeyCreated     AuditAction = "key.created"
	AuditKeyRevoked     AuditAction = "key.revoked"
	AuditBanSet         AuditAction = "ban.set"
	AuditBanLifted      AuditAction = "ban.lifted"
	AuditKicked         AuditAction = "sessions.kicked" // by filter, or all
	AuditUserErased     AuditAction = "user.erased"
	AuditCleared        AuditAction = "presence.cleared"
	AuditMarksImported  AuditAction = "marks.imported"
	AuditMarksRemoved   AuditAction = "marks.removed" // of any age
	AuditStoreImported  AuditAction = "store.imported"
	AuditWebhookCreated AuditAction = "webhook.created"
	AuditWebhookChanged AuditAction = "webhook.changed"
	AuditWebhookRemoved AuditAction = "webhook.removed"
	AuditKindRemoved    AuditAction = "kind.removed"
	AuditArchiveRun     AuditAction = "archive.run" // started by hand
	AuditBackup         AuditAction = "backup.made"
	AuditConfigStarted  AuditAction = "config.started"
	AuditConfigReloaded AuditAction = "config.reloaded"
	AuditSignedIn       AuditAction = "console.signed_in"
	AuditSignedOut      AuditAction = "console.signed_out"
	// AuditOutcome follows the entry that Detail names under "of": what it asked for
	// failed, or was counted.
	AuditOutcome AuditAction = "outcome"
)

// Limits of an audit entry.
const (
	MaxAuditDetails = 64  // fields of Detail
	MaxAuditText    = 256 // bytes of Target, and of a field's name or value
)

// AuditEntry is one line of the audit trail. It never names a user: see [Roll.Audit].
type AuditEntry struct {
	Seq    uint64 // from 1, without gaps
	At     time.Time
	Actor  string // who did it: "key:" and the id of an API key, "server", "command line", "local", …
	Action AuditAction
	Target string            // what it was done to: "user:" and a pseudonym, "key:" and its id, …; "" for none
	Detail map[string]string // what else there is to say; never a secret, never free text
	Hash   AuditHash         // SHA-256 over the entry before's Hash and the Canonical form of this one
}

// AuditHash links an entry of the audit trail to all before it.
type AuditHash [sha256.Size]byte

// String returns the hash as hex.
func (h AuditHash) String() string { return hex.EncodeToString(h[:]) }

// MarshalText writes the hash as hex.
func (h AuditHash) MarshalText() ([]byte, error) { return []byte(h.String()), nil }

// UnmarshalText reads what MarshalText wrote.
func (h *AuditHash) UnmarshalText(text []byte) error {
	if len(text) != 2*len(h) {
		return Invalid("hash", "must have %d hex digits, has %d bytes", 2*len(h), len(text))
	}
	if _, err := hex.Decode(h[:], text); err != nil {
		return Invalid("hash", "must be hex digits")
	}
	return nil
}

// AuditSalt is the part of a user's pseudonym that is kept with the user, and destroyed
// with them.
type AuditSalt [16]byte

// Canonical returns the bytes that the hash of an entry covers, apart from the hash before
// it: the texts of seq (decimal), at (RFC 3339 in UTC with milliseconds), actor, action
// and target, then name and value of each detail in the order of the names' bytes. Each text
// stands behind its length in 4 bytes, big-endian.
func (e *AuditEntry) Canonical() []byte {
	texts := []string{
		strconv.FormatUint(e.Seq, 10), e.At.UTC().Format("2006-01-02T15:04:05.000Z"), e.Actor, string(e.Action), e.Target,
	}
	for _, name := range slices.Sorted(maps.Keys(e.Detail)) {
		texts = append(texts, name, e.Detail[name])
	}
	var out []byte
	for _, text := range texts {
		out = binary.BigEndian.AppendUint32(out, uint32(len(text)))
		out = append(out, text...)
	}
	return out
}

// HashAfter returns the hash that the entry has if it follows one with the hash before,
// which is zero for the first entry.
func (e *AuditEntry) HashAfter(before AuditHash) AuditHash {
	return sha256.Sum256(append(before[:], e.Canonical()...))
}

// Clone returns a copy that shares nothing.
func (e *AuditEntry) Clone() AuditEntry {
	out := *e
	out.Detail = maps.Clone(e.Detail)
	return out
}

// AuditQuery chooses entries of the audit trail.
type AuditQuery struct {
	User   string // only entries about this user; "" for all
	Limit  int    // 1 to MaxLimit
	Cursor string // Next of the page before; "" for the newest entries
}

// AuditPage is a part of the audit trail, newest first. With AuditQuery.User it may hold
// few entries or none though more follow, as the trail is searched in steps.
type AuditPage struct {
	Items []AuditEntry
	Next  string // cursor to what follows; "" on the last page
}

type actorKey struct{}

// WithActor says who acts in what is done with the context: "key:" and the id of an API
// key, the name of a job, up to 128 bytes. [Roll] keeps an audit trail of what is done with
// such a context, and of nothing else.
func WithActor(ctx context.Context, actor string) context.Context {
	return context.WithValue(ctx, actorKey{}, actor)
}

// ActorOf returns who acts in a context; "" if nobody said so.
func ActorOf(ctx context.Context) string {
	actor, _ := ctx.Value(actorKey{}).(string)
	return actor
}
