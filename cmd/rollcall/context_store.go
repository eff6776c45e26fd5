package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// contexts are the servers that the user has given names. They are kept in one
// file that only its owner can read, as it holds API keys.
type contexts struct {
	Current  string                  `json:"current,omitempty"` // "" for the server of this machine
	Contexts map[string]savedContext `json:"contexts"`

	path string
}

// savedContext is a server and the key to ask it with.
type savedContext struct {
	Server string `json:"server"`
	Key    string `json:"key,omitempty"`
}

// contextFile is where contexts are kept below the user's configuration directory.
const contextFile = "rollcall/contexts.json"

// readContexts reads the user's contexts; without a file there are none.
func readContexts() (*contexts, error) {
	dir, err := os.UserConfigDir()
	if err != nil { // a service without a home has no contexts
		return &contexts{Contexts: map[string]savedContext{}}, nil //nolint:nilerr // it cannot save any either
	}
	c := &contexts{path: filepath.Join(dir, filepath.FromSlash(contextFile))}
	text, err := os.ReadFile(c.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, fmt.Errorf("read the contexts: %w", err)
	default:
		if err := privateFile(c.path); err != nil {
			return nil, err
		}
		if err := json.Unmarshal(text, c); err != nil {
			return nil, fmt.Errorf("%s is not a list of contexts: %w", c.path, err)
		}
	}
	if c.Contexts == nil {
		c.Contexts = map[string]savedContext{}
	}
	return c, nil
}

// privateFile refuses a file of keys that others can read.
func privateFile(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if info.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("%s can be read by others (mode %v): run chmod 600 on it", path, info.Mode().Perm())
	}
	return nil
}

// save writes the contexts, whole or not at all.
func (c *contexts) save() error {
	if c.path == "" {
		return errors.New("there is no configuration directory to keep contexts in: set HOME or XDG_CONFIG_HOME")
	}
	if err := os.MkdirAll(filepath.Dir(c.path), 0o700); err != nil {
		return err
	}
	text, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return err
	}
	return writePrivate(c.path, string(text)+"\n")
}

// find returns the context of a name.
func (c *contexts) find(name string) (savedContext, error) {
	found, ok := c.Contexts[name]
	if !ok {
		return found, usageError{fmt.Errorf("there is no context %q: \"rollcall context list\" shows those there are", name)}
	}
	return found, nil
}

// checkContextName refuses a name that would be hard to type.
func checkContextName(name string) error {
	plain := func(r rune) bool {
		return r == '-' || r == '_' || r == '.' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
	}
	if name == "" || len(name) > 64 || strings.IndexFunc(name, func(r rune) bool { return !plain(r) }) >= 0 {
		return usageError{fmt.Errorf("a context's name has 1 to 64 letters, digits, dots, dashes and underscores, and is %.80q", name)}
	}
	return nil
}
