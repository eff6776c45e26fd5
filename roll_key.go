package rollcall

import (
	"context"
	"encoding/hex"
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
	key.ID = hex.EncodeToString(key.Hash[:8])
	if k.TTL > 0 {
		key.ExpiresAt = key.CreatedAt.Add(k.TTL)
	}
	if k.Text != "" {
		if old, err := r.engine.Key(ctx, key.Hash); err == nil {
			return old, text, nil
		}
	}
	err := r.do("create_key", func() error { return r.engine.PutKey(ctx, key) })
	return key, text, err
}

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
	case !key.ExpiresAt.IsZero() && !r.clock.Now().Before(key.ExpiresAt):
		return APIKey{}, &Error{Code: CodeUnauthenticated, Detail: "this API key has expired"}
	}
	return key, nil
}

// Keys returns all API keys, oldest first.
func (r *Roll) Keys(ctx context.Context) ([]APIKey, error) { return r.engine.Keys(ctx) }

// RevokeKey removes an API key by its id; CodeNotFound.
func (r *Roll) RevokeKey(ctx context.Context, id string) error {
	return r.do("revoke_key", func() error { return r.engine.DeleteKey(ctx, id) })
}
