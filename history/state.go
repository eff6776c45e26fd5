package history

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/rollcall/rollcall"
)

// state is a checkpoint: all rows before Offset are durable, and Summary tells
// of them. It names no user: it may outlive one who is erased.
type state struct {
	Version  int     `json:"version"`
	Source   string  `json:"source"` // SHA-256 of the file's size and its first 64 KiB
	Size     int64   `json:"size"`
	Offset   int64   `json:"offset"` // in the file, unpacked
	Line     int64   `json:"line"`   // lines before Offset
	Timezone string  `json:"timezone"`
	Kind     string  `json:"kind"`
	Report   string  `json:"report"`       // path of the list of rejected lines, "" for none
	Reported int64   `json:"report_bytes"` // of it that tell of lines before Offset
	Summary  Summary `json:"summary"`
}

const stateVersion = 1

// stateFile is where the checkpoints of a source are.
type stateFile struct {
	path   string
	source *Source
}

// openState returns the place for a source's checkpoints, nil for a source that
// cannot be known again.
func openState(dir string, s *Source) (*stateFile, error) {
	if s.id == "" {
		return nil, nil //nolint:nilnil // no place is what is asked for
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return nil, errors.Join(fmt.Errorf("%s is not a directory for checkpoints", dir), err)
	}
	return &stateFile{filepath.Join(dir, "import-"+s.id[:16]+".json"), s}, nil
}

// read returns the checkpoint; false if there is none.
func (f *stateFile) read() (state, bool, error) {
	text, err := os.ReadFile(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return state{}, false, nil
	}
	if err != nil {
		return state{}, false, err
	}
	var s state
	if err := json.Unmarshal(text, &s); err != nil {
		return state{}, false, fmt.Errorf("the checkpoint %s cannot be read, remove it to begin anew: %w", f.path, err)
	}
	if s.Version != stateVersion || s.Source != f.source.id || s.Size != f.source.size || s.Offset < 0 || s.Line < 0 {
		return state{}, false, fmt.Errorf("the checkpoint %s is of another file or version: remove it to begin anew", f.path)
	}
	return s, true, nil
}

// write replaces the checkpoint, whole or not at all.
func (f *stateFile) write(s *state) error {
	s.Version, s.Source, s.Size = stateVersion, f.source.id, f.source.size
	s.Summary.FirstRejected = nil // they hold what is in the file
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	next := f.path + ".new"
	if err := writeSynced(next, append(text, '\n')); err != nil {
		return fmt.Errorf("write a checkpoint: %w", err)
	}
	if err := os.Rename(next, f.path); err != nil {
		return fmt.Errorf("write a checkpoint: %w", err)
	}
	return f.syncDir()
}

func writeSynced(path string, text []byte) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Sync(), f.Close())
}

func (f *stateFile) remove() error {
	err := os.Remove(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return errors.Join(err, f.syncDir())
}

func (f *stateFile) syncDir() error {
	d, err := os.Open(filepath.Dir(f.path))
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// resume takes over the checkpoint, if there is one.
func (m *importRun) resume() error {
	old, found, err := m.store.read()
	if err != nil || !found {
		return err
	}
	if old.Kind != m.opts.Kind {
		return &rollcall.Error{
			Code: rollcall.CodeConflict, Field: "kind",
			Detail: fmt.Sprintf("the import was begun with %q and cannot be resumed with %q", old.Kind, m.opts.Kind),
		}
	}
	if old.Timezone != m.state.Timezone {
		return &rollcall.Error{
			Code: rollcall.CodeConflict, Field: "timezone",
			Detail: "the import was begun in " + old.Timezone + " and cannot be resumed in " + m.state.Timezone,
		}
	}
	m.state, m.summary = old, old.Summary
	m.summary.ResumedAt = old.Line + 1
	if m.summary.Reasons == nil {
		m.summary.Reasons = make(map[Reason]int64)
	}
	return nil
}
