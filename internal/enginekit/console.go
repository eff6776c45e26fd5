package enginekit

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/rollcall/rollcall"
)

// passRecord is a pass to the console as both engines keep it; instants are
// milliseconds.
type passRecord struct {
	Kind    rollcall.PassKind   `json:"kind"`
	By      rollcall.SignedInBy `json:"by"`
	Role    rollcall.Role       `json:"role"`
	Key     string              `json:"key"` // "" for none
	Name    string              `json:"name"`
	Created int64               `json:"created"`
	Expires int64               `json:"expires"`
	Ends    int64               `json:"ends"`
}

// EncodePass returns a pass as both engines keep it, under its hash.
func EncodePass(p rollcall.ConsolePass) ([]byte, error) {
	record := passRecord{
		Kind: p.Kind, By: p.By, Role: p.Role, Name: p.Name,
		Created: p.CreatedAt.UnixMilli(), Expires: p.ExpiresAt.UnixMilli(), Ends: p.EndsAt.UnixMilli(),
	}
	if p.Key != (rollcall.KeyHash{}) {
		record.Key = hex.EncodeToString(p.Key[:])
	}
	return json.Marshal(record)
}

// DecodePass reads what EncodePass wrote.
func DecodePass(hash rollcall.PassHash, b []byte) (rollcall.ConsolePass, error) {
	var record passRecord
	if err := json.Unmarshal(b, &record); err != nil {
		return rollcall.ConsolePass{}, err
	}
	p := rollcall.ConsolePass{
		Hash: hash, Kind: record.Kind, By: record.By, Role: record.Role, Name: record.Name,
		CreatedAt: TimeOf(record.Created), ExpiresAt: TimeOf(record.Expires), EndsAt: TimeOf(record.Ends),
	}
	key, err := hex.DecodeString(record.Key)
	switch {
	case err != nil:
		return p, err
	case len(key) != 0 && len(key) != len(p.Key):
		return p, errors.New("the hash of its key has another length")
	case !p.Role.Allows(rollcall.RoleReader):
		return p, errors.New("it has no role")
	}
	copy(p.Key[:], key)
	return p, nil
}

// PassesToDrop returns which of all passes have to go when p is stored at now; see
// [rollcall.Console].
func PassesToDrop(all map[rollcall.PassHash]rollcall.ConsolePass, p *rollcall.ConsolePass, now time.Time) []rollcall.PassHash {
	var drop []rollcall.PassHash
	var own, others []rollcall.ConsolePass
	for hash, old := range all {
		switch {
		case hash == p.Hash:
		case !now.Before(old.ExpiresAt):
			drop = append(drop, hash)
		case old.HeldWith(p):
			own = append(own, old)
		default:
			others = append(others, old)
		}
	}
	own, drop = dropFirst(own, rollcall.MaxPassesPerHolder-1, drop)
	_, drop = dropFirst(append(others, own...), rollcall.MaxPasses-1, drop)
	return drop
}

// dropFirst keeps the passes that expire last, most of them, and adds the others to
// drop.
func dropFirst(passes []rollcall.ConsolePass, most int, drop []rollcall.PassHash) (kept []rollcall.ConsolePass, dropped []rollcall.PassHash) {
	if len(passes) <= most {
		return passes, drop
	}
	slices.SortFunc(passes, func(a, b rollcall.ConsolePass) int {
		return cmp.Or(a.ExpiresAt.Compare(b.ExpiresAt), bytes.Compare(a.Hash[:], b.Hash[:]))
	})
	many := len(passes) - most
	for i := range many {
		drop = append(drop, passes[i].Hash)
	}
	return passes[many:], drop
}
