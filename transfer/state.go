package transfer

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// How an import that was cut short goes on.
//
// The state says of two lines of the stream how far the import has come: all up to Entered is
// in the engine, and nothing behind Reach. It is written ahead: before a line behind Reach is
// entered, Reach moves. So a user of whom something is known, and whose line lies behind Reach,
// was not entered by this import: that is a conflict, as it is without a state. One up to
// Reach may have been, and is passed over.
//
// What an engine acknowledged it may lose: a Redis that crashes loses its last second or two,
// or more as it is configured, and a state may lie beside another engine than the one it was
// written for. So of each thousand lines up to Entered some are tried. If one is not known,
// all of these are entered that are not.
//
// | killed | what the next import does |
// | --- | --- |
// | before the first state | begins at the first line; nothing has been entered |
// | while lines up to Reach are entered | tries some up to Entered, all up to Reach, enters the rest |
// | behind the last line, before the state is removed | the same, and finds all of it there |

const (
	// stateEvery is how often Entered is written.
	stateEvery = 200 * time.Millisecond
	// reachAhead is how many lines Reach lies ahead.
	reachAhead = 10 * chunkLines
)

// state is how far an import has come.
type state struct {
	Sum     string `json:"sha256"` // of the stream
	Entered int    `json:"entered"`
	Reach   int    `json:"reach"`
	// Conflict is what ended the import where somebody was known whom it had not entered.
	Conflict string `json:"conflict,omitempty"`

	path    string // "" for one that is not kept
	written time.Time
	// What an import that was cut short had said.
	resumedAt, mayBeEntered int
}

// openState reads the state that an import of the same stream has left, if there is one.
func openState(o Options) (*state, error) {
	fresh := &state{Sum: o.Sum, path: o.State}
	if o.State == "" {
		return fresh, nil
	}
	text, err := os.ReadFile(o.State)
	if errors.Is(err, fs.ErrNotExist) {
		return fresh, nil
	}
	if err != nil {
		return nil, err
	}
	found := &state{}
	if err := json.Unmarshal(text, found); err != nil {
		return nil, fmt.Errorf("%s is no state of an import: %w", o.State, err)
	}
	if found.Sum != o.Sum {
		return nil, fmt.Errorf("%s is the state of an import of another file", o.State)
	}
	if found.Conflict != "" && !o.SkipKnown {
		return nil, fmt.Errorf("the import met somebody whom it had not entered, and goes on only if it passes over who is known (--skip-known): %s", found.Conflict)
	}
	found.Conflict = ""
	found.path, found.resumedAt, found.mayBeEntered = o.State, found.Entered, found.Reach
	return found, nil
}

// conflict keeps what ended the import: of the lines at hand it cannot be told any more who was
// entered, and who was known before.
func (s *state) conflict(err error) error {
	if s.path == "" {
		return err
	}
	s.Conflict = err.Error()
	return errors.Join(err, s.write())
}

// reach is called before lines up to last are entered.
func (s *state) reach(last int) error {
	if s.path == "" || last <= s.Reach {
		return nil
	}
	s.Reach = last + reachAhead
	return s.write()
}

// entered is called once all lines up to last are in the engine.
func (s *state) entered(last int) error {
	s.Entered = max(s.Entered, last)
	if s.path == "" || time.Since(s.written) < stateEvery {
		return nil
	}
	return s.write()
}

// write replaces the file. It is on disk before anything that it announces is entered.
func (s *state) write() error {
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(s.path), ".import-*") // mode 0600
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), s.path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	s.written = time.Now()
	return nil
}

// done removes the state of an import that is through.
func (s *state) done() error {
	if s.path == "" {
		return nil
	}
	if err := os.Remove(s.path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
