package history

import (
	"bufio"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
)

// reportFile lists rejected lines.
type reportFile struct {
	file *os.File
	buf  *bufio.Writer
	csv  *csv.Writer
}

// openReport begins a list, or goes on with that of the import that is resumed,
// from which it removes what is going to be told again.
func openReport(path string, s *Source, st *state) (*reportFile, error) {
	full, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	keep := int64(0)
	if st.Offset > 0 && st.Report == full {
		keep = st.Reported
	}
	f, err := os.OpenFile(full, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the list of rejected lines: %w", err)
	}
	r := &reportFile{file: f, buf: bufio.NewWriter(f)}
	r.csv = csv.NewWriter(r.buf)
	if err := r.begin(s, keep); err != nil {
		return nil, errors.Join(fmt.Errorf("open the list of rejected lines: %w", err), f.Close())
	}
	st.Report = full
	return r, nil
}

func (r *reportFile) begin(s *Source, keep int64) error {
	info, err := r.file.Stat()
	if err != nil {
		return err
	}
	if s.file != nil {
		if of, err := s.file.Stat(); err != nil || os.SameFile(info, of) {
			return errors.Join(errors.New("it is the file to import"), err)
		}
	}
	if !info.Mode().IsRegular() { // a pipe, or /dev/stderr
		keep = 0
	} else {
		if info.Size() < keep {
			keep = 0
		}
		if err := r.file.Truncate(keep); err != nil {
			return err
		}
		if _, err := r.file.Seek(keep, io.SeekStart); err != nil {
			return err
		}
	}
	if keep > 0 {
		return nil
	}
	return r.csv.Write([]string{"line", "reason", "text"})
}

func (r *reportFile) add(x Rejected) error {
	if err := r.csv.Write([]string{strconv.FormatInt(x.Line, 10), string(x.Reason), x.Text}); err != nil {
		return fmt.Errorf("write the list of rejected lines: %w", err)
	}
	return nil
}

func (r *reportFile) flush() error {
	r.csv.Flush()
	if err := errors.Join(r.csv.Error(), r.buf.Flush()); err != nil {
		return fmt.Errorf("write the list of rejected lines: %w", err)
	}
	return nil
}

// sync makes the list so far durable and notes in a checkpoint how long it is.
func (r *reportFile) sync(st *state) error {
	if err := r.flush(); err != nil {
		return err
	}
	info, err := r.file.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return err
	}
	st.Reported = info.Size()
	if err := r.file.Sync(); err != nil {
		return fmt.Errorf("write the list of rejected lines: %w", err)
	}
	return nil
}

func (r *reportFile) close() error { return errors.Join(r.flush(), r.file.Close()) }
