package local

import (
	"bytes"
	"errors"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/sstable/block"
)

// copyTables copies every record that can be read, but those in ranges that cannot: there may have been
// a newer version. It does not copy the place in the journal.
func (r *repair) copyTables() error {
	from := []byte{0}
	for _, lost := range r.mend.lost {
		if err := r.copyRange(from, bytes.TrimSuffix(lost.from, []byte{0})); err != nil {
			return err
		}

		// The key before the range is the last of a block that can be read. A scan would read
		// on into the range, so it is copied by itself.
		if before, cut := bytes.CutSuffix(lost.from, []byte{0}); cut {
			if err := r.copyOne(before); err != nil {
				return err
			}
		}
		from = append(bytes.Clone(lost.to), 0)
	}
	if err := r.copyRange(from, []byte{0xff}); err != nil {
		return err
	}
	return r.mend.flush()
}

// maxSkips bounds the single unreadable records that are left out. After that the rest of their table
// is left out.
const maxSkips = 1000

// copyRange copies the records from one key up to another.
func (r *repair) copyRange(from, to []byte) error {
	for bytes.Compare(from, to) < 0 {
		last, err := r.copySome(from, to)
		if err == nil {
			return nil
		}
		if !isDamage(err) || r.mend.err != nil {
			return errors.Join(err, r.mend.err)
		}

		// A record cannot be read though its block is whole: leave it out.
		bad := r.nextKey(last)
		if bad == nil || bytes.Compare(bad, to) >= 0 {
			return nil
		}
		table := bad[0]
		if r.skipped++; r.skipped > maxSkips {
			r.mend.drop(bad, "cannot be read, and neither can what follows")
			r.mend.lost = joinRanges(append(r.mend.lost, keyRange{bad, []byte{table, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}}))
			from = key{table}.after()
			continue
		}
		r.mend.drop(bad, "cannot be read")
		from = append(bytes.Clone(bad), 0)
	}
	return nil
}

// unreadable marks an error of reading.
type unreadable struct{ error }

func (u unreadable) Unwrap() error { return u.error }

func isDamage(err error) bool { return errors.As(err, new(unreadable)) }

// copySome copies records until one cannot be read, and returns the last key.
func (r *repair) copySome(from, to []byte) (last []byte, err error) {
	last = bytes.TrimSuffix(from, []byte{0})
	it, err := r.source.tables.Load().db.NewIter(&pebble.IterOptions{LowerBound: from, UpperBound: to})
	if err != nil {
		return last, unreadable{err}
	}
	for ok := it.First(); ok; ok = it.Next() {
		v, err := it.ValueAndErr()
		if err != nil {
			return last, errors.Join(unreadable{err}, it.Close())
		}
		if err := r.copyRecord(it.Key(), v); err != nil {
			return last, errors.Join(err, it.Close())
		}
		last = append(last[:0:0], it.Key()...)
	}
	if err := errors.Join(it.Error(), it.Close()); err != nil {
		return last, unreadable{err}
	}
	return last, nil
}

func (r *repair) copyRecord(k, v []byte) error {
	if r.copied++; r.copied%(1<<12) == 0 && r.ctx.Err() != nil {
		return r.ctx.Err()
	}
	switch string(k) {
	case string(metaKey(metaApplied)):
		if len(v) == 8 {
			r.applied = be64(v)
		}
		return nil
	case string(metaKey(metaCeiling)):
		if len(v) == 8 {
			r.ceiling = be64(v)
		}
		return nil
	}
	r.mend.do(func(b *pebble.Batch) error { return b.Set(k, v, nil) })
	return r.mend.err
}

// copyOne copies one record, if it is there and can be read.
func (r *repair) copyOne(k []byte) error {
	v, ok, err := getFrom(r.source.tables.Load().db, k)
	if err != nil {
		if info, known := infoOf(k[0]); known && (info.keyLen == 0 || len(k) == info.keyLen) { // else it is no key, but what parts two blocks
			r.mend.drop(k, "cannot be read")
		}
		return nil // what cannot be read is left out
	}
	if !ok {
		return nil
	}
	return r.copyRecord(k, v)
}

// nextKey finds the first key behind one in any table file, also if its value cannot be read; nil for
// none.
func (r *repair) nextKey(k []byte) []byte {
	t := r.source.tables.Load()
	levels, err := t.db.SSTables()
	if err != nil {
		return nil // the list was read before
	}
	var next []byte
	for _, level := range levels {
		for i := range level {
			if bytes.Compare(level[i].Largest.UserKey, k) <= 0 {
				continue
			}
			at := t.seekFile(r.source, uint64(level[i].FileNum), append(bytes.Clone(k), 0))
			if at != nil && (next == nil || bytes.Compare(at, next) < 0) {
				next = at
			}
		}
	}
	return next
}

// seekFile returns the first key of a table file that is not before one; nil for
// none, or if it cannot be read.
func (t *tables) seekFile(s *store, file uint64, k []byte) (found []byte) {
	r, err := t.openFile(s, tableName(s.dir, file))
	if err != nil {
		return nil // what a damaged file holds is left out already
	}
	defer r.Close() //nolint:errcheck // only read
	it, err := r.NewIter(block.NoTransforms, k, nil, sstable.TableBlobContext{})
	if err != nil {
		return nil // the same
	}
	defer it.Close() //nolint:errcheck // only read
	if kv := it.SeekGE(k, 0); kv != nil {
		return bytes.Clone(kv.K.UserKey)
	}
	return nil
}

func isStop(err error) bool { return errors.Is(err, errStop) }
