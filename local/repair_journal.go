package local

import (
	"errors"
	"fmt"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/enginekit"
	"github.com/rollcall/rollcall/internal/journal"
)

// applyJournal applies the journal to the copy. If a confirmed record is missing, it applies whole only
// what comes before it, and of the rest only what shuts somebody out.
func (r *repair) applyJournal() error {
	if err := r.mend.flush(); err != nil {
		return err
	}
	found, err := r.salvage(nil)
	if err != nil {
		return err
	}

	// Is anything missing? Then some session may have ended unnoticed.
	unknown := r.applied == 0 && r.mend.lost.has(metaKey(metaApplied))
	whole := len(found.Holes) == 0
	r.endAll = !whole || unknown

	// Records before this one are applied whole. With a hole that needs proof that the tables
	// hold nothing behind it.
	before := uint64(0)
	switch {
	case whole:
		before = found.End + 1
	case (r.ceiling > 0 || !r.mend.lost.has(metaKey(metaCeiling))) && r.ceiling < found.Holes[0].From:
		before = found.Holes[0].From
	}
	last := uint64(0) // the last hole is behind it
	if n := len(found.Holes); n > 0 {
		last = found.Holes[n-1].To
	}
	left, first, newest := 0, time.Time{}, time.Time{}
	_, err = r.salvage(func(n uint64, record []byte, _ bool) error {
		if n < before {
			return r.applyRecord(record, &first)
		}
		left++
		return r.shutOut(record, n > last && last > 0, &newest)
	})
	if err == nil && !whole {
		r.reportHoles(found.Holes, left, first, newest)
	}
	return err
}

// salvage reads the journal behind what the old tables have.
func (r *repair) salvage(fn func(n uint64, record []byte, behind bool) error) (journal.Salvaged, error) {
	after := r.applied
	if fn == nil {
		fn = func(uint64, []byte, bool) error { return nil }
	}
	out, err := journal.Salvage(r.o.fs, r.source.journalDir(), after, after > 0, fn)
	if err != nil {
		return out, fmt.Errorf("read the journal: %w", err)
	}
	if after == 0 && len(out.Holes) > 0 && out.Holes[0].From == 1 && r.mend.lost.has(metaKey(metaApplied)) {
		// Nobody can tell up to which record the tables have all. The journal releases only what
		// they have, so its first record follows on them: that is no hole.
		out.Holes = out.Holes[1:]
	}
	return out, nil
}

// stampOf notes the stamp of life in a record: about when it was written.
func stampOf(k, v []byte, at *time.Time) {
	if string(k) == string(metaKey(metaStamp)) && len(v) == 8 {
		*at = enginekit.TimeOf(int64(be64(v)))
	}
}

// applyRecord applies a record of the journal to the copy.
func (r *repair) applyRecord(record []byte, at *time.Time) error {
	b := new(pebble.Batch)
	if err := b.SetRepr(append([]byte(nil), record...)); err != nil {
		return err
	}
	err := eachOperation(b, func(_ pebble.InternalKeyKind, k, v []byte) error {
		stampOf(k, v, at)
		return nil
	})
	if err != nil {
		return err
	}
	if err := r.mend.b.Apply(b, nil); err != nil {
		return err
	}
	if r.mend.b.Len() > mendBytes {
		return r.mend.flush()
	}
	return nil
}

func eachOperation(b *pebble.Batch, fn func(kind pebble.InternalKeyKind, k, v []byte) error) error {
	for it := b.Reader(); ; {
		kind, k, v, ok, err := it.Next()
		if err != nil || !ok {
			return err
		}
		if err := fn(kind, k, v); err != nil {
			return err
		}
	}
}

// shutOut applies of a record only what shuts somebody out: a ban, a revoked key, an erasure. That a ban
// was lifted counts only if nothing is missing behind it.
func (r *repair) shutOut(record []byte, nothingMissing bool, at *time.Time) error {
	from := new(pebble.Batch)
	if err := from.SetRepr(append([]byte(nil), record...)); err != nil {
		return err
	}
	return eachOperation(from, func(kind pebble.InternalKeyKind, k, v []byte) error {
		set, gone := kind == pebble.InternalKeyKindSet, kind == pebble.InternalKeyKindDelete
		if len(k) == 0 {
			return nil
		}
		stampOf(k, v, at)
		switch {
		case k[0] == tabBan && set, k[0] == tabKey && set && revoked(k, v):
			r.mend.do(setting(k, v))
		case k[0] == tabBan && gone && nothingMissing, k[0] == tabKey && gone, k[0] == tabWebhook && gone:
			r.mend.do(func(b *pebble.Batch) error { return b.Delete(k, nil) })
		case k[0] == tabErasure && set:
			if x, err := decodeErasure(k, v); err == nil && rollcall.CheckUser(x.user) == nil {
				r.erase[x.user] = true
			}
		}
		return r.mend.err
	})
}

func revoked(k, v []byte) bool {
	key, err := decodeAPIKey(string(k[1:]), v)
	return err == nil && !key.RevokedAt.IsZero()
}

// reportHoles says what is missing, and that every session ends for it.
func (r *repair) reportHoles(holes []journal.Hole, left int, first, newest time.Time) {
	missing, file := -1, "the place in the journal is lost"
	if len(holes) > 0 {
		file, missing = holes[0].Damage.Error(), 0
	}
	for _, h := range holes {
		if h.To == 0 || missing < 0 {
			missing = -1
		} else {
			missing += int(h.To - h.From + 1)
		}
	}
	when := ""
	if !first.IsZero() {
		when = " after " + first.UTC().Format(time.RFC3339)
	}
	if !newest.IsZero() {
		when += ", until " + newest.UTC().Format(time.RFC3339)
	}
	total := missing
	if total >= 0 {
		total += left
	}
	r.out.Losses = append(r.out.Losses, Loss{
		What:   fmt.Sprintf("commands in the journal%s: %s", when, file),
		Tables: "the journal", Records: total,
		Advice: "Logins, ends, bans, friends, marks and keys of that time are lost. Bans, keys revoked and users erased then hold " +
			"where their record can be read; where it cannot, they are undone: ban, revoke and erase them again.",
	})
	if missing != 0 && left > 0 {
		r.out.Notes = append(r.out.Notes, fmt.Sprintf(
			"%d of those commands can be read. They are not carried out, as what they rest on is missing, but for what shuts somebody out.", left))
	}
}

// endSessions ends every session of the console, and every live session if a record
// that is missing may have ended any.
func (r *repair) endSessions() error {
	// Those of the console end whatever was found: to sign in again costs little.
	r.mend.do(func(b *pebble.Batch) error { return b.DeleteRange(key{tabPass}, key{tabPass}.after(), nil) })
	if !r.endAll {
		return nil
	}

	// Each live session becomes an ended one, and its user is gone.
	numbers, err := r.numbers()
	if err != nil {
		return err
	}
	n := 0
	err = r.target.scan(r.ctx, newKey(tabSession, 1), func(k, v []byte) error {
		if len(k) != 18 {
			return nil
		}
		id := rollcall.SessionID(k[2:])
		st, err := decodeSession(id, v)
		if err != nil || st.End != nil {
			return nil //nolint:nilerr // the check that follows names it
		}
		n++
		st.End = &rollcall.End{
			At: enginekit.TimeOf(max(r.mend.now, st.SeenAt.UnixMilli())), Cause: rollcall.CauseKicked,
			Reason: "the data was damaged and repaired", Actor: "rollcall check --repair",
		}
		r.mend.do(func(b *pebble.Batch) error {
			err := errors.Join(b.Delete(k, nil), putEnded(b, k[1], &st.Session, st.token))
			if of, ok := numbers[st.User]; ok {
				err = errors.Join(err, b.Set(goneKey(of.part(), of.number()), nil, nil))
			}
			return err
		})
		return r.mend.err
	})

	// Their touches are of nobody now.
	for _, table := range [...]byte{tabTouch, tabTouched} {
		r.mend.do(func(b *pebble.Batch) error { return b.DeleteRange(key{table}, key{table}.after(), nil) })
	}
	if n > 0 {
		r.out.Losses = append(r.out.Losses, Loss{
			What: "every live session has ended (cause \"kicked\"), as one of them may have ended in what is lost", Tables: "live sessions (s)",
			Records: n, Advice: "Users have to log in again.",
		})
	}
	return err
}

// numbers returns the numbers of all users in the copy.
func (r *repair) numbers() (map[string]ref, error) {
	if err := r.mend.flush(); err != nil {
		return nil, err
	}
	c := newChecker(r.target, Report{})
	c.allIDs()
	return c.byID, nil
}
