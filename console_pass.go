package rollcall

import (
	"crypto/sha256"
	"encoding/hex"
	"time"
)

// PassKind says what a pass to the console is.
type PassKind string

// The kinds of passes.
const (
	PassLink    PassKind = "link"    // signs in once
	PassSession PassKind = "session" // of a browser that has signed in
)

// SignedInBy says how a session of the console began.
type SignedInBy string

// The ways to sign in.
const (
	SignedInByLink  SignedInBy = "link"  // a one-time link
	SignedInByKey   SignedInBy = "key"   // an API key
	SignedInByProxy SignedInBy = "proxy" // a trusted proxy that names its user
)

// PassHash is the SHA-256 of a pass's text, the only form it is kept in.
type PassHash [sha256.Size]byte

// HashPass hashes a pass's text.
func HashPass(text string) PassHash { return sha256.Sum256([]byte(text)) }

// ConsolePass lets somebody into the console: a link, once, or a session, for as
// long as it lasts.
type ConsolePass struct {
	Hash      PassHash
	Kind      PassKind
	By        SignedInBy // of sessions
	Role      Role
	Key       KeyHash // of the API key that it depends on; zero for none
	Name      string  // whom the proxy named; "" with an API key
	CreatedAt time.Time
	ExpiresAt time.Time // moves while a session is used
	EndsAt    time.Time // ExpiresAt never moves past it
}

// HeldWith reports whether two passes are of one kind and one holder.
func (p *ConsolePass) HeldWith(other *ConsolePass) bool {
	return p.Kind == other.Kind && p.Key == other.Key && p.Name == other.Name
}

// The bounds on passes of one store.
const (
	MaxPasses          = 500
	MaxPassesPerHolder = 20 // of one kind
)

// The times of the console.
const (
	ConsoleLinkTTL  = 15 * time.Minute // how long a link may be used
	ConsoleIdle     = 30 * time.Minute // a session that is not used for as long ends
	ConsoleLifetime = 12 * time.Hour   // a session ends after as long
)

// ConsoleSession is a browser that is signed in to the console.
type ConsoleSession struct {
	ID        string // public, 16 characters
	By        SignedInBy
	Role      Role
	Key       APIKey // that it depends on; the zero value for none
	Name      string // of the key, or whom the proxy named
	CreatedAt time.Time
	ExpiresAt time.Time // if it is not used until then
	EndsAt    time.Time // at the latest
}

// ConsoleSignIn is what somebody signs in with: one of Link, Key and Proxy.
type ConsoleSignIn struct {
	Link  string // the text of a link
	Key   string // the text of an API key
	Proxy string // whom a trusted proxy names, up to 128 bytes
	Role  Role   // of whom the proxy names
	// Replaces is the session that the browser had, "" for none. It ends.
	Replaces string
}

// passID is the public id of the pass with a hash.
func passID(hash PassHash) string { return hex.EncodeToString(hash[:8]) }
