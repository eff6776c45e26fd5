package rollcall

import (
	"context"
	"encoding/hex"
	"slices"
	"time"
)

// importSlack is how far the clock of the engine that dossiers come from may
// have been ahead: as far as those of servers that share data may.
const importSlack = 2 * time.Second

// Export calls visit with a dossier of each user of whom anything is known; see
// [Transfer]. Days that have left for the archive are in it too. An error of visit
// ends it and is returned as it is.
func (r *Roll) Export(ctx context.Context, visit func(UserSnapshot) error) error {
	return r.do("export", func() error {
		return r.engine.Export(ctx, r.clock.Now(), func(d UserSnapshot) error {
			if d.Archived {
				if err := r.addArchived(ctx, &d); err != nil {
					return err
				}
			}
			if d.IsEmpty() {
				return nil
			}
			return visit(d)
		})
	})
}

// Import enters up to MaxSnapshots dossiers of users of whom nothing is known
// yet; see [Transfer]. Each is held to the rules that logins, marks and all
// else are held to; the first that breaks one is refused with
// CodeInvalidArgument, before anything is entered. Times may be up to 2 s in the
// future.
//
// A user's ban is entered under the Roll's own secret, whatever secret it was
// kept under before; one of an erased user holds only under the secret it was
// made with, see [Roll.SecretID].
func (r *Roll) Import(ctx context.Context, dossiers ...UserSnapshot) error {
	return r.do("import", func() error {
		if len(dossiers) > MaxSnapshots {
			return Invalid("dossiers", "holds %d entries, the limit is %d", len(dossiers), MaxSnapshots)
		}
		now := r.clock.Now()
		latest := now.Add(importSlack)
		dossiers := slices.Clone(dossiers) // the keys of bans are filled in
		today := DayOf(latest, r.opts.Timezone)
		for i := range dossiers {
			d := &dossiers[i]
			if err := d.validate(latest, today); err != nil {
				return under(err, "dossiers", i)
			}
			if d.User != "" {
				d.BanKey = r.banKey(d.User)
			}
			d.Bans = slices.Clone(d.Bans)
			for j := range d.Bans {
				if b := &d.Bans[j]; b.User != "" {
					b.Key, b.Home, b.Bits = r.banKey(b.User), uint16(HashUser(b.User)), 16
				}
			}
		}
		return r.engine.Import(ctx, now, dossiers)
	})
}

// ImportKey stores an API key that was made elsewhere; false if it was known.
func (r *Roll) ImportKey(ctx context.Context, key APIKey) (bool, error) {
	return observe(r, "import_key", func() (bool, error) {
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
		err := r.engine.PutKey(ctx, key)
		return err == nil, err
	})
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
