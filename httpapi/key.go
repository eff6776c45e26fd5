package httpapi

import (
	"context"
	"encoding/hex"
	"log/slog"
	"net/http"

	"github.com/rollcall/rollcall"
)

// KeyRecord is an API key, without its text.
type KeyRecord struct {
	ID        string        `json:"id"`
	Name      string        `json:"name"`
	Role      rollcall.Role `json:"role"`
	CreatedAt instant       `json:"created_at"`
	ExpiresAt instant       `json:"expires_at,omitempty"`
}

func keyOf(k rollcall.APIKey) KeyRecord {
	return KeyRecord{ID: k.ID, Name: k.Name, Role: k.Role, CreatedAt: instantOf(k.CreatedAt), ExpiresAt: instantOf(k.ExpiresAt)}
}

type createKeyInput struct {
	Body struct {
		Name string        `json:"name,omitempty" doc:"what it is for, ≤ 128 bytes"`
		Role rollcall.Role `json:"role" enum:"reader,writer,admin"`
		TTL  span          `json:"ttl,omitempty" doc:"how long it works, up to 10 years; for ever unless said"`
	} `nameHint:"KeyRequest"`
}

// newKey is a key with its text, which is shown once.
type newKey struct {
	KeyRecord
	Key     string `json:"key" doc:"secret; shown once"`
	BeatKey string `json:"beat_key,omitempty" doc:"secret; keys the UDP beats of a gateway; not for readers"`
}

type keyInput struct {
	ID string `path:"id"`
}

func (s *Server) registerKeys() {
	register(s, op("GET /v1/keys", "list-keys", "Administration", "All API keys, oldest first"), s.listKeys)
	create := op("POST /v1/keys", "create-key", "Administration", "Make an API key")
	create.DefaultStatus = http.StatusCreated
	register(s, create, s.createKey)
	registerQuiet(s, op("DELETE /v1/keys/{id}", "revoke-key", "Administration", "Revoke an API key"), s.revokeKey)
}

func (s *Server) listKeys(ctx context.Context, _ *struct{}) (items[KeyRecord], error) {
	found, err := s.roll.Keys(ctx)
	return items[KeyRecord]{each(found, keyOf)}, err
}

func (s *Server) createKey(ctx context.Context, in *createKeyInput) (newKey, error) {
	if s.opts.Auth == AuthOff {
		return newKey{}, forbidden("no keys are made while auth is off: they would go on working once it is on")
	}
	ttl, err := in.Body.TTL.parse("ttl")
	if err != nil {
		return newKey{}, err
	}
	if in.Body.TTL != "" && ttl == 0 {
		return newKey{}, rollcall.Invalid("ttl", "must be at least 1s")
	}
	made, text, err := s.roll.CreateKey(ctx, rollcall.NewKey{Name: in.Body.Name, Role: in.Body.Role, TTL: ttl})
	if err != nil {
		return newKey{}, err
	}
	s.security.act(ctx, "key_made", slog.String("key", made.ID), slog.String("role", string(made.Role)), slog.String("ttl", ttl.String()))
	out := newKey{KeyRecord: keyOf(made), Key: text}
	if made.Role.Allows(rollcall.RoleWriter) {
		beatKey := s.roll.KeyBeatKey([8]byte(made.Hash[:8]))
		out.BeatKey = hex.EncodeToString(beatKey[:])
	}
	return out, nil
}

func (s *Server) revokeKey(ctx context.Context, in *keyInput) error {
	err := s.roll.RevokeKey(ctx, in.ID)
	if err == nil {
		s.streams.credentials.changed()
		s.security.act(ctx, "key_revoked", slog.String("key", in.ID))
	}
	return err
}
