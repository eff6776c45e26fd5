package journal

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// segment is a file of the journal.
type segment struct {
	header
	name string // in the directory
}

const (
	suffix     = ".journal"
	freeSuffix = ".free"
)

func segmentName(id uint64) string { return fmt.Sprintf("%010d", id) + suffix }

// freeName returns the name of a new file until it is a segment.
func freeName(id uint64) string { return fmt.Sprintf("%010d", id) + freeSuffix }

// idOf reads the id a file's name says.
func idOf(name, suffix string) (uint64, bool) {
	digits, ok := strings.CutSuffix(name, suffix)
	if !ok {
		return 0, false
	}
	id, err := strconv.ParseUint(digits, 10, 64)
	return id, err == nil
}

// list returns the names of segments and of free files, in the order of ids.
func list(fs vfs.FS, dir string) (segments, free []string, err error) {
	names, err := fs.List(dir)
	if err != nil {
		return nil, nil, err
	}
	for _, name := range names {
		if _, ok := idOf(name, suffix); ok {
			segments = append(segments, name)
		} else if strings.HasSuffix(name, freeSuffix) {
			free = append(free, name)
		}
	}
	slices.SortFunc(segments, func(a, b string) int {
		x, _ := idOf(a, suffix)
		y, _ := idOf(b, suffix)
		return cmp.Compare(x, y)
	})
	slices.Sort(free)
	return segments, free, nil
}

// readAll returns a file's content.
func readAll(fs vfs.FS, name string) ([]byte, error) {
	f, err := fs.Open(name)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	b := make([]byte, info.Size())
	if _, err := io.ReadFull(f, b); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return b, f.Close()
}

// makeSegment makes a segment, out of the free file if one is named, and
// returns it open for writing. After an error the file may be there under either name.
func makeSegment(fs vfs.FS, dir string, h header, free string) (vfs.File, error) {
	name := cmp.Or(free, freeName(h.id))
	if free == "" {
		if err := fill(fs, path.Join(dir, name), h.size, nil); err != nil {
			return nil, err
		}
	}
	f, err := fs.OpenReadWrite(path.Join(dir, name), vfs.WriteCategoryUnspecified)
	if err != nil {
		return nil, err
	}
	// The header, and the end of the groups of which there are none yet. Only
	// then the name: a segment with a bad header is a damaged one.
	if _, err = f.WriteAt(append(h.encode(), make([]byte, tailLen)...), 0); err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = fs.Rename(path.Join(dir, name), path.Join(dir, segmentName(h.id)))
	}
	if err == nil {
		err = syncDir(fs, dir)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// fillStep is how much of a new file is written between two syncs: more at once would hold up
// the syncs of the segment in use.
const fillStep = 1 << 20

// fill makes a file of zeros. It gives up with ErrClosed when stop is closed.
func fill(fs vfs.FS, name string, size int64, stop <-chan struct{}) error {
	f, err := fs.Create(name, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	zeros := make([]byte, min(256<<10, size))
	for done := int64(0); done < size && err == nil; {
		var n int
		clear(zeros) // a vfs.File may change what it writes
		n, err = f.Write(zeros[:min(int64(len(zeros)), size-done)])
		if done += int64(n); err == nil && done%fillStep == 0 && done < size {
			err = f.SyncData()
		}
		select {
		case <-stop:
			err = cmp.Or(err, ErrClosed)
		default:
		}
	}
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

func syncDir(fs vfs.FS, dir string) error {
	d, err := fs.OpenDir(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// CopyEnded copies every segment but the one in use into a directory, which must be there.
// No segment may be released meanwhile. Behind Replace the copy has each record that was
// durable before that.
func (j *Journal) CopyEnded(dir string) error {
	j.files.Lock()
	ended := slices.Clone(j.segments[:len(j.segments)-1])
	j.files.Unlock()
	for _, s := range ended {
		if err := vfs.Copy(j.o.FS, path.Join(j.o.Dir, s.name), path.Join(dir, s.name)); err != nil {
			return err
		}
	}
	return nil
}
