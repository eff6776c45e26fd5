package local

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/sstable/block"
	"github.com/cockroachdb/pebble/v2/sstable/block/blockkind"
	"github.com/cockroachdb/pebble/v2/sstable/colblk"
)

func be32(b []byte) uint32 { return binary.BigEndian.Uint32(b) }
func be64(b []byte) uint64 { return binary.BigEndian.Uint64(b) }

// keyRange is the keys from one to another, both included.
type keyRange struct{ from, to []byte }

func (r keyRange) has(k []byte) bool {
	return bytes.Compare(r.from, k) <= 0 && bytes.Compare(k, r.to) <= 0
}

// lostRanges are ranges of keys that cannot be read, ascending and apart.
type lostRanges []keyRange

// has reports whether a key is among them.
func (l lostRanges) has(k []byte) bool {
	return slices.ContainsFunc(l, func(r keyRange) bool { return r.has(k) })
}

// overlap reports whether any key that begins with a prefix is among them.
func (l lostRanges) overlap(prefix key) bool {
	return slices.ContainsFunc(l, func(r keyRange) bool {
		after := prefix.after()
		return bytes.Compare(r.to, prefix) >= 0 && (after == nil || bytes.Compare(r.from, after) < 0)
	})
}

// joinRanges sorts ranges and joins those that touch.
func joinRanges(ranges []keyRange) lostRanges {
	slices.SortFunc(ranges, func(a, b keyRange) int { return bytes.Compare(a.from, b.from) })
	var out lostRanges
	for _, r := range ranges {
		if n := len(out); n > 0 && bytes.Compare(r.from, out[n-1].to) <= 0 {
			if bytes.Compare(r.to, out[n-1].to) > 0 {
				out[n-1].to = r.to
			}
			continue
		}
		out = append(out, r)
	}
	return out
}

// damagedFile is a table file of which something cannot be read, and the keys that are in doubt for
// it.
type damagedFile struct {
	name   string
	offset uint64 // of the first damaged block; 0 if the file is lost whole
	err    error
	keys   []keyRange // none if it holds no keys
	unread int        // records that cannot be read, at most; -1 if nobody can tell
}

func (d *damagedFile) text() string {
	at := ""
	if d.offset > 0 {
		at = fmt.Sprintf(" at offset %d", d.offset)
	}
	text := fmt.Sprintf("%s%s: %s", d.name, at, plain(d.err))
	if of := tablesIn(d.keys); of != "" {
		text += ": it holds " + of
	}
	return text
}

// plain words an error in one line.
func plain(err error) string {
	if errors.Is(err, fs.ErrNotExist) {
		return "the file is missing"
	}
	return plainError{err}.Error()
}

// tablesIn names the tables that ranges of keys touch.
func tablesIn(ranges []keyRange) string {
	var names []string
	for _, info := range tableInfos() {
		if lostRanges(ranges).overlap(key{info.table}) {
			names = append(names, fmt.Sprintf("%s (%c)", info.name, info.table))
		}
	}
	return strings.Join(names, ", ")
}

// damagedFiles looks at every block of every table file, and returns the files in
// which any cannot be read.
func (t *tables) damagedFiles(s *store) ([]damagedFile, error) {
	levels, err := t.db.SSTables()
	if err != nil {
		return nil, err
	}
	var out []damagedFile
	for _, level := range levels {
		for i := range level {
			info := &level[i]
			d := damagedFile{name: tableName(s.dir, uint64(info.FileNum))}
			whole := keyRange{bytes.Clone(info.Smallest.UserKey), bytes.Clone(info.Largest.UserKey)}
			if t.lookInto(s, &d, whole); d.err != nil {
				out = append(out, d)
			}
		}
	}
	slices.SortFunc(out, func(a, b damagedFile) int { return cmp.Compare(a.name, b.name) })
	return out, nil
}

func tableName(dir string, file uint64) string { return path.Join(dir, fmt.Sprintf("%06d.sst", file)) }

// openFile opens a table file by itself.
func (t *tables) openFile(s *store, name string) (*sstable.Reader, error) {
	f, err := s.o.fs.Open(name)
	if err != nil {
		return nil, err
	}
	readable, err := sstable.NewSimpleReadable(f)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	r, err := sstable.NewReader(uninterrupted(), readable, t.reading)
	if err != nil {
		return nil, errors.Join(err, readable.Close())
	}
	return r, nil
}

// lookInto reads a table file. If its index cannot be read, all of its keys are in doubt; else only
// those of damaged blocks.
func (t *tables) lookInto(s *store, d *damagedFile, whole keyRange) {
	r, err := t.openFile(s, d.name)
	if err != nil {
		d.err, d.keys, d.unread = err, []keyRange{whole}, -1
		return
	}
	defer r.Close() //nolint:errcheck // only read
	if err := t.blocks(r, d, whole); err != nil {
		d.err, d.keys, d.unread = err, []keyRange{whole}, -1
	} else if len(d.keys) > 0 {
		d.unread = unreadOf(r, d.keys)
	}
}

// unreadOf counts the records of a table file that stand in ranges of keys that
// cannot be read: all there are, less those that can; -1 if nobody can tell.
func unreadOf(r *sstable.Reader, bad []keyRange) int {
	props, err := r.ReadPropertiesBlock(uninterrupted(), nil)
	if err != nil {
		return -1
	}
	n := int(props.NumEntries)
	from := []byte{0}
	for _, span := range append(slices.Clone(bad), keyRange{from: []byte{0xff}}) {
		to := bytes.TrimSuffix(span.from, []byte{0}) // reading up to a key looks at the one before it
		it, err := r.NewIter(block.NoTransforms, from, to, sstable.TableBlobContext{})
		if err != nil {
			return -1
		}
		for kv := it.SeekGE(from, 0); kv != nil; kv = it.Next() {
			n--
		}
		if it.Close() != nil { // then it is an upper bound still
			continue
		}
		from = append(bytes.Clone(span.to), 0)
	}
	return max(n, 0)
}

// blocks reads every block of a table file. An error says that the file cannot
// be read at all.
func (t *tables) blocks(r *sstable.Reader, d *damagedFile, whole keyRange) error {
	layout, err := r.Layout()
	if err != nil {
		return err
	}
	read := func(h block.Handle) error {
		if h.Length == 0 {
			return nil
		}
		b, err := r.BlockReader().Read(uninterrupted(), block.NoReadEnv, nil, h, blockkind.Metadata, noMetadata)
		if err == nil {
			b.Release()
		}
		return err
	}

	// A scan needs neither filters nor properties: they are reported, and no key is in doubt.
	for _, h := range layout.Filter {
		if err := read(h.Handle); err != nil {
			d.err, d.offset = err, h.Offset
		}
	}
	for _, h := range []block.Handle{layout.Properties, layout.MetaIndex} {
		if err := read(h); err != nil {
			d.err, d.offset = err, h.Offset
		}
	}

	// Without these the file cannot be read at all.
	for _, h := range append(layout.ValueBlock, layout.RangeDel, layout.RangeKey, layout.ValueIndex, layout.BlobReferenceIndex) {
		if err := read(h); err != nil {
			return err
		}
	}

	// The data, block by block.
	from := whole.from
	return eachBlock(r, layout, func(h block.Handle, separator []byte) {
		if err := read(h); err != nil {
			if len(d.keys) == 0 {
				d.offset = h.Offset
			}
			d.err = err
			d.keys = append(d.keys, keyRange{from, separator})
		}
		from = append(bytes.Clone(separator), 0) // the next key there can be
	})
}

func noMetadata(*block.Metadata, []byte) error { return nil }

// eachBlock calls fn with every data block and the separator behind it: no key of
// the block is greater, and none of the next block is less or equal.
func eachBlock(r *sstable.Reader, layout *sstable.Layout, fn func(h block.Handle, separator []byte)) error {
	for _, index := range layout.Index {
		b, err := r.BlockReader().Read(uninterrupted(), block.NoReadEnv, nil, index, blockkind.Metadata, noMetadata)
		if err != nil {
			return err
		}
		var it colblk.IndexIter
		if err := it.Init(pebble.DefaultComparer, b.BlockData(), block.NoTransforms); err != nil {
			b.Release()
			return err
		}
		for ok := it.First(); ok; ok = it.Next() {
			h, err := it.BlockHandleWithProperties()
			if err != nil {
				b.Release()
				return err
			}
			fn(h.Handle, bytes.Clone(it.Separator()))
		}
		b.Release()
	}
	return nil
}
