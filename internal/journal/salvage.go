package journal

import (
	"errors"
	"fmt"
	"path"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Hole is a run of records that were confirmed once and cannot be read now.
type Hole struct {
	From, To uint64 // To is 0 if nobody can tell how many there were
	Damage   *Damage
}

// Salvaged says what Salvage found.
type Salvaged struct {
	Segments int    // files of the journal
	End      uint64 // number of the last record there is
	Holes    []Hole // in order
	Torn     *Tail  // nil if the journal ended cleanly, or with a hole
}

// Salvage calls fn with every record after the given number that can be read, in
// order, whatever is damaged; behind says that a record before it is missing. It
// holds one segment in memory at a time. A directory without a journal has a
// hole of unknown length if wanted says that there has been one.
func Salvage(fs vfs.FS, dir string, after uint64, wanted bool, fn func(n uint64, record []byte, behind bool) error) (Salvaged, error) {
	s := salvage{fs: fs, dir: dir, next: after + 1, fn: fn}
	names, _, err := list(fs, dir)
	if ignoreMissing(err) != nil {
		return s.out, err
	}
	s.out.Segments = len(names)
	if len(names) == 0 {
		if wanted {
			s.hole(0, &Damage{dir, 0, "the journal is missing"})
		}
		s.out.End = after
		return s.out, nil
	}
	segments := make([]salvaged, len(names))
	for i, name := range names {
		segments[i] = s.inspect(name)
	}
	for i := range segments {
		limit := ^uint64(0) // where the next segment that can say so takes over
		for _, later := range segments[i+1:] {
			if later.damage == nil {
				limit = later.first
				break
			}
		}
		if err := s.segment(&segments[i], limit, i == len(segments)-1); err != nil {
			return s.out, err
		}
	}
	if s.seen < after {
		s.hole(0, &Damage{dir, 0, endsEarly(s.seen, after)})
	}
	s.out.End = s.next - 1
	return s.out, nil
}

type salvage struct {
	fs     vfs.FS
	dir    string
	next   uint64 // the record that comes next
	seen   uint64 // the newest that the journal speaks of
	behind bool
	fn     func(n uint64, record []byte, behind bool) error
	out    Salvaged
}

// salvaged is a segment, whose header may be damaged: then only its id is known.
type salvaged struct {
	segment
	damage *Damage
	cut    bool
}

// inspect reads the header of a segment.
func (s *salvage) inspect(name string) salvaged {
	id, _ := idOf(name, suffix)
	out := salvaged{segment: segment{header{id: id}, name}}
	file := path.Join(s.dir, name)
	h, size, err := readHeader(s.fs, file)
	switch {
	case err != nil:
		if !errors.As(err, &out.damage) {
			out.damage = &Damage{file, 0, err.Error()}
		}
	case h.id != id:
		out.damage = &Damage{file, 8, fmt.Sprintf("the segment says that its id is %d", h.id)}
	default:
		out.header, out.cut = h, size < h.size
		s.seen = max(s.seen, h.first-1)
	}
	return out
}

// hole notes that the records from the next one up to another are missing. to is 0 if nobody can
// tell which is the last.
func (s *salvage) hole(to uint64, why *Damage) {
	if s.behind = true; to != 0 && to < s.next {
		return
	}
	if n := len(s.out.Holes); n > 0 && s.out.Holes[n-1].To == 0 { // it ends here
		s.out.Holes[n-1].To = to
	} else {
		s.out.Holes = append(s.out.Holes, Hole{s.next, to, why})
	}
	if to != 0 {
		s.next = to + 1
	}
}

// segment reads every group of a segment that can be read, up to limit.
func (s *salvage) segment(seg *salvaged, limit uint64, last bool) error {
	file := path.Join(s.dir, seg.name)
	if limit <= s.next { // nothing of it is needed
		return nil
	}
	data, err := readAll(s.fs, file)
	if err != nil {
		s.missing(limit, &Damage{file, 0, err.Error()})
		return nil //nolint:nilerr // a file that cannot be read is a hole
	}
	why := seg.damage
	if why == nil && seg.first > s.next {
		s.hole(seg.first-1, &Damage{file, 0, fmt.Sprintf("the records from %d to %d are in no file", s.next, seg.first-1)})
	}
	offset := int64(headerLen)
	for {
		g, ok := decodeGroup(data, seg.id, offset)
		if !ok {
			at, found := nextGroup(data, seg.id, min(offset+1, int64(len(data))))
			if !found {
				break
			}
			if why == nil {
				why = &Damage{file, offset, fmt.Sprintf("record %d was confirmed and cannot be read", s.next)}
			}
			offset = at
			continue
		}
		if err := s.group(&g, limit, why, file, offset); err != nil {
			return err
		}
		offset = g.end
	}
	s.segmentEnd(seg, data, offset, limit, last, why)
	return nil
}

// group hands on the records of a group that are due.
func (s *salvage) group(g *group, limit uint64, why *Damage, file string, offset int64) error {
	if h := s.out.Holes; len(h) > 0 && h[len(h)-1].To == 0 && g.first <= s.next { // nothing was missing after all
		s.out.Holes = h[:len(h)-1]
		s.behind = len(s.out.Holes) > 0
	}
	if first := min(g.first, limit); first > s.next {
		if why == nil {
			why = &Damage{file, offset, fmt.Sprintf("record %d was confirmed and cannot be read", s.next)}
		}
		s.hole(first-1, why)
	}
	s.seen = max(s.seen, g.first+uint64(g.count)-1)
	err := g.each(func(n uint64, record []byte) error {
		if n < s.next || n >= limit {
			return nil
		}
		s.next = n + 1
		return s.fn(n, record, s.behind)
	})
	if errors.Is(err, errForm) {
		s.hole(g.first+uint64(g.count)-1, &Damage{file, offset, err.Error()})
		return nil
	}
	return err
}

// segmentEnd decides whether anything is missing behind the last group of a segment.
func (s *salvage) segmentEnd(seg *salvaged, data []byte, offset int64, limit uint64, last bool, why *Damage) {
	if s.next >= limit {
		return
	}
	file := path.Join(s.dir, seg.name)
	clean := offset+tailLen <= int64(len(data)) && endsCleanly(data, offset)
	switch {
	case limit != ^uint64(0):
		s.missing(limit, &Damage{file, offset, fmt.Sprintf("record %d was confirmed and cannot be read", s.next)})
	case seg.damage != nil && !clean:
		s.hole(0, why)
	case seg.cut && !clean:
		s.hole(0, &Damage{file, int64(len(data)), fmt.Sprintf("the segment is cut: it had %d bytes", seg.size)})
	case !last: // a later segment is there, and cannot say where it begins: that is its own hole
	case !clean:
		s.out.Torn = &Tail{file, offset}
	}
}

// missing notes that all records up to where the next segment begins are missing.
func (s *salvage) missing(limit uint64, why *Damage) {
	if limit == ^uint64(0) {
		s.hole(0, why)
		return
	}
	s.hole(limit-1, why)
}
