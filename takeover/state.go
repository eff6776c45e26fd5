package takeover

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// The stages of an import.
const (
	stageMain    = ""
	stageFriends = "friends"
)

// state is how far an import has come. It is written after what it says has been entered,
// so that one that was cut short enters a part again and leaves none out.
type state struct {
	Layout Layout   `json:"layout"`
	Key    string   `json:"key"`
	RunID  string   `json:"run_id"` // of the old Redis
	Stage  string   `json:"stage,omitempty"`
	At     position `json:"at"`
	High   float64  `json:"high"`
	Sum    string   `json:"sum"` // SHA-256 of all else

	path string // "" for one that is not kept
}

// openState reads the state of an import of the same thing, if there is one. Positions of
// SCAN are good for one run of a server only: after a restart it begins anew.
func openState(path string, layout Layout, key, runID string) (*state, error) {
	fresh := &state{Layout: layout, Key: key, RunID: runID, path: path}
	if path == "" {
		return fresh, nil
	}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return fresh, nil
	}
	if err != nil {
		return nil, err
	}
	found := &state{path: path}
	if err := json.Unmarshal(text, found); err != nil {
		return nil, fmt.Errorf("%s is no state of an import: %w", path, err)
	}
	if found.Sum != found.sum() {
		return nil, fmt.Errorf("%s is damaged: remove it, and the import begins anew", path)
	}
	if found.Layout != layout || found.Key != key {
		return nil, fmt.Errorf("%s is the state of an import of %s %s: name another file with --state", path, found.Layout, quoted(visible(found.Key)))
	}
	if runID == "" || found.RunID != runID {
		return fresh, nil
	}
	return found, nil
}

// sum returns the sum of all but itself.
func (s *state) sum() string {
	bare := *s
	bare.Sum = ""
	text, err := json.Marshal(&bare)
	if err != nil {
		return ""
	}
	return fmt.Sprintf("%x", sha256.Sum256(text))
}

// save notes a position.
func (s *state) save(at position, high float64) error {
	s.At, s.High = at, high
	if s.path == "" {
		return nil
	}
	s.Sum = s.sum()
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(s.path), ".state-*")
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
	return nil
}

// begun reports whether anything has been entered.
func (s *state) begun() bool { return s.Stage != stageMain || s.At != position{} }

// forget begins anew.
func (s *state) forget() { s.Stage, s.At, s.High = stageMain, position{}, 0 }

// next begins a stage.
func (s *state) next(stage string) error {
	s.Stage = stage
	return s.save(position{}, s.High)
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
