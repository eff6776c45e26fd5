package rollcall

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"hash"
)

// keyedHash is an HMAC-SHA-256 keyed with the secret, and room for its input and output.
type keyedHash struct {
	hash.Hash
	in, out []byte
}

// keyed derives a value from the secret for one purpose.
func (s *service) keyed(purpose string, parts ...[]byte) [sha256.Size]byte {
	h, ok := s.hashes.Get().(*keyedHash)
	if ok {
		h.Reset()
	} else {
		h = &keyedHash{Hash: hmac.New(sha256.New, s.secret)}
	}
	defer s.hashes.Put(h)
	h.in = append(h.in[:0], purpose...)
	for _, p := range parts {
		h.in = append(append(h.in, 0), p...)
	}
	h.Write(h.in)
	h.out = h.Sum(h.out[:0])
	return [sha256.Size]byte(h.out)
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

// KeyBeatKey returns the key that authenticates the UDP beats of the API key with
// an id: HMAC-SHA-256(secret, "beat" ‖ 0 ‖ key id). It is kept nowhere, and there is
// one whether the API key exists or not.
func (r *Roll) KeyBeatKey(id [8]byte) [sha256.Size]byte {
	return r.keyed("beat", id[:])
}

// Pseudonym returns what stands for a user where the user is not to be named,
// such as in logs: 16 hex digits keyed with the secret. Who has neither secret
// nor guess learns nothing from it; who has both can tell whether it fits.
func (r *Roll) Pseudonym(user string) string {
	sum := r.keyed("pseudonym", []byte(user))
	return hex.EncodeToString(sum[:8])
}

// SecretID stands for the secret without telling it: 16 hex digits. Bans of
// erased users, cursors, beat keys and retried logins hold under one secret
// only.
func (r *Roll) SecretID() string { return r.secretID() }

func (s *service) secretID() string { return SecretID(s.secret) }

// SecretID is [Roll.SecretID] of a secret that no Roll has been opened with.
func SecretID(secret []byte) string {
	id := (&service{secret: secret}).keyed("secret id")
	return hex.EncodeToString(id[:8])
}
