package transfer

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"

	"github.com/klauspost/compress/zstd"

	"github.com/rollcall/rollcall"
)

// ErrChanged is in the chain of the error for an export that cannot go on: sessions began or
// ended since it began, which what is written does not know. It has to begin anew.
var ErrChanged = errors.New("the data has changed since the export began")

// File is what an export that was cut short is in: an [os.File].
type File interface {
	io.ReadWriteSeeker
	Truncate(size int64) error
}

// Resumed says where an export went on.
type Resumed struct {
	Snapshots int   // that had been written
	Bytes     int64 // of the file that were good
	Whole     bool  // nothing was missing
}

// Resume goes on with an export that was cut short: behind the last part that is in the
// file whole. It reads the file first, and cuts off what is behind that part. If there is none,
// it begins anew.
//
// What changed meanwhile in users who are in the file stays as it was. Where sessions, bans
// or users changed, other than that sessions expired, the error has ErrChanged: a session that
// was ended would live again.
func Resume(ctx context.Context, from Source, f File, progress func(Progress)) (Counts, Resumed, error) {
	found, err := readCut(f)
	if err != nil {
		return Counts{}, Resumed{}, err
	}
	if found.mark == nil {
		if err := cut(f, 0); err != nil {
			return Counts{}, Resumed{}, err
		}
		counts, err := Export(ctx, from, f, progress)
		return counts, Resumed{}, err
	}
	at := Resumed{Snapshots: found.mark.Counts.Snapshots, Bytes: found.bytes}
	if found.whole != nil {
		at.Whole, at.Snapshots = true, found.whole.Snapshots
		return *found.whole, at, nil
	}
	if err := found.fits(ctx, from); err != nil {
		return found.mark.Counts, at, err
	}
	if err := cut(f, found.bytes); err != nil {
		return found.mark.Counts, at, err
	}
	x := &export{frames: frameWriter{out: f}, hash: found.hash, mark: *found.mark, total: found.header.Users, progress: progress}
	err = x.run(ctx, from)
	return x.mark.Counts, at, err
}

// cut cuts a file off, to be written on from there.
func cut(f File, size int64) error {
	if err := f.Truncate(size); err != nil {
		return err
	}
	_, err := f.Seek(size, io.SeekStart)
	return err
}

// cutExport is what a file has of an export.
type cutExport struct {
	header Header
	mark   *mark     // the last that is right; nil for none
	hash   hash.Hash // of the text before it
	bytes  int64     // of the file before its end
	whole  *Counts   // what a whole export holds; nil for one that was cut short
}

// readCut reads a file as far as it is good.
func readCut(f File) (*cutExport, error) {
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	unpack, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxFrame))
	if err != nil {
		return nil, err
	}
	defer unpack.Close()
	r := &frameReader{in: bufio.NewReaderSize(f, 1<<20), unpack: unpack}
	out, sum, first := &cutExport{}, sha256.New(), true
	for {
		text, m, err := r.next()
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, errNoFrame):
			return out, nil
		case err != nil:
			return nil, err
		case m != nil:
			if hex.EncodeToString(sum.Sum(nil)) != m.SHA256 {
				return out, nil
			}
			if out.hash, err = copyOf(sum); err != nil {
				return nil, err
			}
			out.mark, out.bytes = m, r.read
		case first:
			begin, _, _ := bytes.Cut(text, []byte{'\n'})
			var l line
			if parse(begin, &l) != nil || l.Export == nil || l.Export.Version != Version {
				return out, nil
			}
			out.header, first = *l.Export, false
			sum.Write(text)
		case bytes.HasPrefix(text, beginEnd):
			// The trailer has a frame of its own.
			var l line
			if parse(text, &l) == nil && l.End != nil && l.End.SHA256 == hex.EncodeToString(sum.Sum(nil)) {
				out.whole, out.bytes = &l.End.Counts, r.read
			}
			return out, nil
		default:
			sum.Write(text)
		}
	}
}

// copyOf returns a hash that goes on from where another is.
func copyOf(h hash.Hash) (hash.Hash, error) {
	c, ok := h.(hash.Cloner)
	if !ok {
		return nil, fmt.Errorf("%T cannot be copied", h)
	}
	return c.Clone()
}

// fits refuses to go on where that would not make one export.
func (c *cutExport) fits(ctx context.Context, from Source) error {
	stats, err := from.Stats(ctx)
	if err != nil {
		return err
	}
	if c.header.Engine != stats.Engine || c.header.Timezone != from.Timezone().String() || c.header.SecretID != from.SecretID() {
		return errors.New("the export that was cut short is one of another engine, time zone or secret")
	}

	// Sessions that expired since do so in the other engine too. All else matters.
	for after := c.mark.LastEvent; ; {
		events, err := from.EventsAfter(ctx, after, rollcall.MaxLimit, rollcall.SessionEvents)
		if errors.Is(err, rollcall.ErrEventsGone) {
			return ErrChanged
		}
		if err != nil || len(events) == 0 {
			return err
		}
		for _, e := range events {
			expired := e.Type == rollcall.SessionEnded && (e.Cause == rollcall.CauseExpired || e.Cause == rollcall.CauseLifetime)
			if !expired && e.Type != rollcall.ArchiveCompleted && e.Type != rollcall.ArchiveFailed {
				return fmt.Errorf("%w: %s of %q at %s", ErrChanged, e.Type, e.User, e.At.Format("2006-01-02 15:04:05"))
			}
		}
		after = events[len(events)-1].ID
	}
}
