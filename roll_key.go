package rollcall

import (
	"context"
	"encoding/hex"
	"slices"
	"strings"
	"time"
)

// NewKey describes an API key to be made.
type NewKey struct {
	Name string // what it is for, up to 128 bytes
	Role Role
	TTL  time.Duration // 0 means it does not expire
	// Text is the key itself, "rck_" and at least 32 more characters, for
	// scripted set-ups; "" makes a random one of 256 bits.
	Text string
}

// CreateKey makes an API key and returns its text, which is kept only as a hash
// and shown here once. Making the same Text again changes nothing.
func (r *Roll) CreateKey(ctx context.Context, k NewKey) (APIKey, string, error) {
	if err := validateText("name", k.Name, MaxNameLen); err != nil {
		return APIKey{}, "", err
	}
	if k.Role.rank() == 0 {
		return APIKey{}, "", Invalid("role", "must be reader, writer or admin, is %q", k.Role)
	}
	if k.TTL < 0 || k.TTL > maxPolicyDuration {
		return APIKey{}, "", Invalid("ttl", "must be between 0 and 10 years, is %v", k.TTL)
	}
	text := k.Text
	if text == "" {
		text = newKeyText()
	}
	if err := validateKeyText(text); err != nil {
		return APIKey{}, "", err
	}
	key := APIKey{Hash: HashKey(text), Name: k.Name, Role: k.Role, CreatedAt: r.clock.Now()}
	key.ID = keyID(key.Hash)
	if k.TTL > 0 {
		key.ExpiresAt = key.CreatedAt.Add(k.TTL)
	}
	if k.Text != "" {
		if old, err := r.engine.Key(ctx, key.Hash); err == nil {
			if old.revoked() {
				return APIKey{}, "", &Error{Code: CodeConflict, Field: "text", Detail: "is a key that was revoked, which stays revoked: choose another one"}
			}
			return old, text, nil
		}
	}
	err := r.do(ctx, "create_key", func() error { return r.putKey(ctx, key) })
	return key, text, err
}

// putKey stores a key that is new, or has become an administrator's.
func (r *Roll) putKey(ctx context.Context, key APIKey) error {
	n := NewAuditEntry{Action: AuditKeyCreated, Target: "key:" + key.ID, Detail: map[string]string{"role": string(key.Role)}}
	if !key.ExpiresAt.IsZero() {
		n.Detail["expires"] = key.ExpiresAt.UTC().Format(time.RFC3339)
	}
	if key.Configured {
		n.Detail["from"] = "admin_key"
	}
	return r.actErr(ctx, n, func() error { return r.engine.PutKey(ctx, key) })
}

// revoking is the entry of a key that is about to be revoked.
func revoking(id string) NewAuditEntry {
	return NewAuditEntry{Action: AuditKeyRevoked, Target: "key:" + id}
}

// ConfigureAdminKey makes text, "rck_" and at least 32 more characters, the one
// admin key that the configuration gives. It removes the one that was configured
// before. A configured key that was revoked stays revoked: then nothing changes,
// and the key returned has RevokedAt set.
func (r *Roll) ConfigureAdminKey(ctx context.Context, text string) (APIKey, error) {
	if err := validateKeyText(text); err != nil {
		return APIKey{}, err
	}
	hash := HashKey(text)
	key, err := r.engine.Key(ctx, hash)
	switch {
	case CodeOf(err) == CodeNotFound:
		key = APIKey{ID: keyID(hash), Hash: hash, Name: "admin_key", Role: RoleAdmin, CreatedAt: r.clock.Now()}
	case err != nil:
		return APIKey{}, err
	case key.revoked():
		return key, nil
	}

	// The new key goes in before the old one goes out: a crash between the two
	// leaves both, and the next start removes the old one.
	if !key.Configured || key.Role != RoleAdmin {
		key.Configured, key.Role, key.ExpiresAt = true, RoleAdmin, time.Time{}
		if err := r.do(ctx, "create_key", func() error { return r.putKey(ctx, key) }); err != nil {
			return APIKey{}, err
		}
	}
	all, err := r.engine.Keys(ctx)
	if err != nil {
		return APIKey{}, err
	}
	for _, old := range all {
		if old.Configured && !old.revoked() && old.Hash != hash {
			if err := r.do(ctx, "revoke_key", func() error {
				return r.actErr(ctx, revoking(old.ID), func() error { return r.engine.DeleteKey(ctx, old.ID) })
			}); err != nil {
				return APIKey{}, err
			}
		}
	}
	return key, nil
}

// keyID is the public id of the key with a hash.
func keyID(hash KeyHash) string { return hex.EncodeToString(hash[:8]) }

func validateKeyText(text string) error {
	body, ok := strings.CutPrefix(text, keyPrefix)
	if !ok || len(body) < 32 || len(text) > 256 {
		return Invalid("admin_key", "must be rck_ followed by 32 to 252 more characters")
	}
	for i := range len(body) {
		if c := body[i]; c <= ' ' || c > '~' {
			return Invalid("admin_key", "may hold only printable ASCII without spaces")
		}
	}
	return nil
}

// Authenticate returns the key that text is; CodeUnauthenticated if there is
// none or it has expired.
func (r *Roll) Authenticate(ctx context.Context, text string) (APIKey, error) {
	key, err := r.engine.Key(ctx, HashKey(text))
	switch {
	case CodeOf(err) == CodeNotFound:
		return APIKey{}, &Error{Code: CodeUnauthenticated, Detail: "this API key is not known: make one with \"rollcall key create\""}
	case err != nil:
		return APIKey{}, err
	case key.revoked():
		return APIKey{}, &Error{Code: CodeUnauthenticated, Detail: "this API key was revoked"}
	case key.expired(r.clock.Now()):
		return APIKey{}, &Error{Code: CodeUnauthenticated, Detail: "this API key has expired"}
	}
	return key, nil
}

// Keys returns the API keys in force or expired, oldest first.
func (r *Roll) Keys(ctx context.Context) ([]APIKey, error) {
	keys, err := r.engine.Keys(ctx)
	return slices.DeleteFunc(keys, func(k APIKey) bool { return k.revoked() }), err
}

// RevokeKey revokes an API key by its id; CodeNotFound. One that the
// configuration gives is remembered as revoked, all others are removed.
func (r *Roll) RevokeKey(ctx context.Context, id string) error {
	return r.do(ctx, "revoke_key", func() error {
		keys, err := r.Keys(ctx)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(keys, func(k APIKey) bool { return k.ID == id })
		if i < 0 {
			return NotFound("API key")
		}
		return r.actErr(ctx, revoking(id), func() error {
			if !keys[i].Configured {
				return r.engine.DeleteKey(ctx, id)
			}
			keys[i].RevokedAt = r.clock.Now()
			return r.engine.PutKey(ctx, keys[i])
		})
	})
}

// ImportKey stores an API key that was made elsewhere; false if it was known.
func (r *Roll) ImportKey(ctx context.Context, key APIKey) (bool, error) {
	return observe(ctx, r, "import_key", func() (bool, error) {
		switch {
		case key.ID != keyID(key.Hash):
			return false, Invalid("id", "contradicts the hash")
		case key.Role.rank() == 0:
			return false, Invalid("role", "must be reader, writer or admin, is %q", key.Role)
		}
		if err := validateText("name", key.Name, MaxNameLen); err != nil {
			return false, err
		}
		switch _, err := r.engine.Key(ctx, key.Hash); {
		case err == nil:
			return false, nil
		case CodeOf(err) != CodeNotFound:
			return false, err
		}
		err := r.putKey(ctx, key)
		return err == nil, err
	})
}
