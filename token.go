package rollcall

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
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

// newToken makes a token out of a secret: its text, rct_ and 46 characters, and the form in
// which it is kept.
func newToken(home uint16, secret [tokenSecretLen]byte) (string, TokenHash) {
	var raw [2 + tokenSecretLen]byte
	binary.BigEndian.PutUint16(raw[:], home)
	copy(raw[2:], secret[:])
	text := tokenCoding.AppendEncode(append(make([]byte, 0, 64), tokenPrefix...), raw[:])
	return string(text), TokenHash{Home: home, Sum: sha256.Sum256(raw[:])}
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
