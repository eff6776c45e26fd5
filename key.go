package rollcall

import (
	"crypto/sha256"
	"time"
)

// Role is what an API key may do; each includes the one before it.
type Role string

// The roles.
const (
	RoleReader Role = "reader"
	RoleWriter Role = "writer"
	RoleAdmin  Role = "admin"
)

// Allows reports whether a key of role r may do what needs the role need.
func (r Role) Allows(need Role) bool { return r.rank() >= need.rank() && need.rank() > 0 }

func (r Role) rank() int {
	switch r {
	case RoleReader:
		return 1
	case RoleWriter:
		return 2
	case RoleAdmin:
		return 3
	default:
		return 0
	}
}

// KeyHash is the SHA-256 of an API key's text, the only form it is kept in.
type KeyHash [sha256.Size]byte

// HashKey hashes an API key's text.
func HashKey(text string) KeyHash { return sha256.Sum256([]byte(text)) }

// APIKey is a credential of a program.
type APIKey struct {
	ID        string // public, 16 characters
	Hash      KeyHash
	Name      string
	Role      Role
	CreatedAt time.Time
	ExpiresAt time.Time // zero means never
	// Configured says that the key comes from the configuration of a server,
	// see [Roll.ConfigureAdminKey].
	Configured bool
	// RevokedAt is set on a configured key that was revoked: it is kept, so that
	// the next start of a server that still configures it does not bring it back.
	RevokedAt time.Time
}

// revoked reports whether the key was revoked and is only remembered.
func (k *APIKey) revoked() bool { return !k.RevokedAt.IsZero() }

// expired reports whether the key works no more at now because of its age.
func (k *APIKey) expired(now time.Time) bool {
	return !k.ExpiresAt.IsZero() && !now.Before(k.ExpiresAt)
}

// MaxAPIKeys bounds how many keys one store holds.
const MaxAPIKeys = 10_000
