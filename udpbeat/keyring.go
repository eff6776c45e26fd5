package udpbeat

import (
	"context"
	"encoding/hex"
	"sync"
	"time"

	"github.com/rollcall/rollcall"
)

// keyring knows which API keys may send beats.
type keyring struct {
	roll *rollcall.Roll

	mu    sync.Mutex
	at    time.Time // when roles were read; zero for never
	roles map[[8]byte]rollcall.APIKey
}

// keysKept is how long a revoked key goes on working here at most.
const keysKept = 2 * time.Second

func newKeyring(roll *rollcall.Roll) *keyring { return &keyring{roll: roll} }

// mayBeat reports whether an API key is in force and may write.
func (k *keyring) mayBeat(ctx context.Context, id [8]byte) (bool, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.roll.Now()
	if age := now.Sub(k.at); k.at.IsZero() || age >= keysKept || age < 0 {
		if err := k.read(ctx); err != nil {
			return false, err
		}
		k.at = now
	}
	key, ok := k.roles[id]
	return ok && key.Role.Allows(rollcall.RoleWriter) && (key.ExpiresAt.IsZero() || now.Before(key.ExpiresAt)), nil
}

func (k *keyring) read(ctx context.Context) error {
	all, err := k.roll.Keys(ctx)
	if err != nil {
		return err
	}
	k.roles = make(map[[8]byte]rollcall.APIKey, len(all))
	for _, key := range all {
		var id [8]byte
		if n, err := hex.Decode(id[:], []byte(key.ID)); err != nil || n != len(id) {
			continue
		}
		k.roles[id] = key
	}
	return nil
}
