package rollcall

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"strings"
)

// TokenHash is the form in which a session token is kept: the SHA-256 of its
// secret, and the 16 bits of the user's hash that lead to the partition.
type TokenHash struct {
	Home uint16
	Sum  [sha256.Size]byte
}

const (
	tokenPrefix    = "rct_"
	tokenSecretLen = 32 // 256 bits
	keyPrefix      = "rck_"
	minSecretLen   = 32
)

var tokenCoding = base64.RawURLEncoding

// tokenText gives a token its text form: rct_ and 46 characters.
func tokenText(home uint16, secret [tokenSecretLen]byte) string {
	raw := binary.BigEndian.AppendUint16(make([]byte, 0, 2+tokenSecretLen), home)
	return tokenPrefix + tokenCoding.EncodeToString(append(raw, secret[:]...))
}

// HashToken returns the form of a token's text that engines know; false if it
// cannot be a token.
func HashToken(text string) (TokenHash, bool) {
	body, ok := strings.CutPrefix(text, tokenPrefix)
	if !ok || len(body) != tokenCoding.EncodedLen(2+tokenSecretLen) {
		return TokenHash{}, false
	}
	raw, err := tokenCoding.Strict().DecodeString(body)
	if err != nil {
		return TokenHash{}, false
	}
	return TokenHash{Home: binary.BigEndian.Uint16(raw), Sum: sha256.Sum256(raw)}, true
}

func newSecret() (s [32]byte) {
	_, _ = rand.Read(s[:]) // never fails: crypto/rand ends the program instead
	return s
}

// newKeyText makes the text of an API key.
func newKeyText() string {
	secret := newSecret()
	return keyPrefix + tokenCoding.EncodeToString(secret[:])
}

// keyed derives a value from the secret for one purpose.
func (r *service) keyed(purpose string, parts ...[]byte) [sha256.Size]byte {
	mac, ok := r.macs.Get().(hash.Hash)
	if ok {
		mac.Reset()
	} else {
		mac = hmac.New(sha256.New, r.secret)
	}
	defer r.macs.Put(mac)
	mac.Write([]byte(purpose))
	for _, p := range parts {
		mac.Write([]byte{0})
		mac.Write(p)
	}
	return [sha256.Size]byte(mac.Sum(nil))
}

func (r *Roll) banKey(user string) BanKey {
	sum := r.keyed("ban", []byte(user))
	return BanKey(sum[:16])
}

// BeatKey returns the key that authenticates a session's UDP beats:
// HMAC-SHA-256(secret, "beat" ‖ 0 ‖ session id). It is kept nowhere.
func (r *Roll) BeatKey(id SessionID) [sha256.Size]byte {
	return r.keyed("beat", id[:])
}

// Pseudonym returns what stands for a user where the user is not to be named,
// such as in logs: 16 hex digits keyed with the secret. Who has neither secret
// nor guess learns nothing from it; who has both can tell whether it fits.
func (r *Roll) Pseudonym(user string) string {
	sum := r.keyed("pseudonym", []byte(user))
	return hex.EncodeToString(sum[:8])
}
