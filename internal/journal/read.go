package journal

import (
	"errors"
	"fmt"
	"os"
	"path"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Damage is an error about what was confirmed once and cannot be read now.
type Damage struct {
	File   string
	Offset int64
	Reason string
}

func (d *Damage) Error() string {
	return fmt.Sprintf("%s at offset %d: %s", d.File, d.Offset, d.Reason)
}

// Tail is what lay after the last confirmed sync and was torn.
type Tail struct {
	File   string
	Offset int64
}

// Report says what a journal holds.
type Report struct {
	Segments int
	First    uint64 // number of the first record there can be
	End      uint64 // of the last there is; First-1 if there is none
	Read     int    // records read
	Torn     *Tail  // nil if the journal ended cleanly
	lastID   uint64
}

// Read calls fn with every record after the given number, in order. It returns
// a *Damage if any of them is missing that was confirmed, and calls fn with
// none behind it. A directory without a journal has the zero Report.
func Read(fs vfs.FS, dir string, after uint64, fn func(n uint64, record []byte) error) (Report, error) {
	names, _, err := list(fs, dir)
	if err != nil || len(names) == 0 {
		return Report{}, err
	}
	segments, err := headers(fs, dir, names)
	if err != nil {
		return Report{}, err
	}
	last := len(segments) - 1
	r := Report{Segments: len(segments), First: segments[0].first, End: segments[0].first - 1, lastID: segments[last].id}
	if r.First > after+1 {
		return r, &Damage{path.Join(dir, segments[0].name), 0, fmt.Sprintf(
			"the journal begins with record %d, and the tables end with record %d: what is between is missing", r.First, after)}
	}
	for i := range segments {
		limit := ^uint64(0) // the segment's records are superseded from here on
		if i < last {
			limit = segments[i+1].first
		}
		if limit <= after+1 { // nothing of it is needed, and it may be on its way out
			r.End = limit - 1
			continue
		}
		if err := readSegment(fs, dir, segments[i], limit, after, &r, fn); err != nil {
			return r, err
		}
	}
	if r.End < after {
		return r, &Damage{path.Join(dir, segments[last].name), 0, endsEarly(r.End, after)}
	}
	return r, nil
}

func endsEarly(end, tables uint64) string {
	return fmt.Sprintf("the journal ends with record %d, and the tables have all up to record %d: the newest segment is missing", end, tables)
}

// headers reads the headers of all segments, each of which must continue where
// an older one can have ended.
func headers(fs vfs.FS, dir string, names []string) ([]segment, error) {
	var out []segment
	for i, name := range names {
		file := path.Join(dir, name)
		h, size, err := readHeader(fs, file)
		if err != nil {
			return nil, err
		}
		id, _ := idOf(name, suffix)
		switch {
		case h.id != id:
			return nil, &Damage{file, 8, fmt.Sprintf("the segment says that its id is %d", h.id)}
		case size < h.size:
			return nil, &Damage{file, size, fmt.Sprintf("the segment is cut: it had %d bytes", h.size)}
		case i > 0 && h.first < out[i-1].first:
			return nil, &Damage{file, 16, "the segment begins before the one before it"}
		}
		out = append(out, segment{h, name})
	}
	return out, nil
}

func readHeader(fs vfs.FS, file string) (header, int64, error) {
	f, err := fs.Open(file)
	if err != nil {
		return header{}, 0, err
	}
	defer f.Close() //nolint:errcheck // only read
	info, err := f.Stat()
	if err != nil {
		return header{}, 0, err
	}
	b := make([]byte, headerLen)
	if info.Size() < headerLen {
		return header{}, 0, &Damage{file, info.Size(), "the segment is cut in its header"}
	}
	if _, err := f.ReadAt(b, 0); err != nil {
		return header{}, 0, err
	}
	h, ok := decodeHeader(b)
	if !ok {
		return header{}, 0, &Damage{file, 0, "the header of the segment is damaged"}
	}
	return h, info.Size(), nil
}

// readSegment reads the records of one segment that are before limit.
func readSegment(fs vfs.FS, dir string, s segment, limit, after uint64, r *Report, fn func(n uint64, record []byte) error) error {
	file := path.Join(dir, s.name)
	data, err := readAll(fs, file)
	if err != nil {
		return err
	}
	next, offset := s.first, int64(headerLen)
	for next < limit {
		g, ok := decodeGroup(data, s.id, offset)
		if !ok || g.first != next {
			break
		}
		err := g.each(func(n uint64, record []byte) error {
			if n <= after || n >= limit {
				return nil
			}
			r.Read++
			return fn(n, record)
		})
		if errors.Is(err, errForm) {
			return &Damage{file, offset, err.Error()}
		}
		if err != nil {
			return err
		}
		next, offset = next+uint64(g.count), g.end
	}
	r.End = min(next, limit) - 1
	if next >= limit {
		return nil
	}
	if limit != ^uint64(0) { // a later segment's header says that there was more
		return &Damage{file, offset, fmt.Sprintf("record %d was confirmed and cannot be read", next)}
	}
	if at, ok := nextGroup(data, s.id, offset+1); ok {
		return &Damage{file, offset, fmt.Sprintf("record %d cannot be read, and what follows at offset %d can: it was confirmed", next, at)}
	}
	if !endsCleanly(data, offset) {
		r.Torn = &Tail{file, offset}
	}
	return nil
}

// endsCleanly reports whether the groups of a segment end at an offset.
func endsCleanly(data []byte, offset int64) bool {
	for _, b := range data[offset:min(int64(len(data)), offset+tailLen)] {
		if b != 0 {
			return false
		}
	}
	return true
}

func ignoreMissing(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}
