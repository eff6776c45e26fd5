package main

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/rollcall/rollcall"
)

// The files beside the store in the data directory, readable by their owner
// alone.
const (
	storeDir   = "store"
	secretFile = "secret"
	keyFile    = "admin.key"
)

// openRoll opens the service on an engine, with the secret of the data
// directory unless one is configured.
func (c *config) openRoll(engine rollcall.Engine) (*rollcall.Roll, error) {
	opts := c.roll
	opts.Secret = c.secret
	if opts.Secret == nil {
		secret, err := c.ownSecret()
		if err != nil {
			return nil, err
		}
		opts.Secret = secret
	}
	return rollcall.New(engine, opts)
}

// ownSecret reads the secret of the data directory, or makes it.
func (c *config) ownSecret() ([]byte, error) {
	path := filepath.Join(c.dataDir, secretFile)
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		secret := make([]byte, 32)
		_, _ = rand.Read(secret) // never fails
		if err := writePrivate(path, hex.EncodeToString(secret)+"\n"); err != nil {
			return nil, err
		}
		return secret, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the secret: %w", err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("%s can be read by others (mode %v): run chmod 600 on it", path, info.Mode().Perm())
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the secret: %w", err)
	}
	secret, err := hex.DecodeString(strings.TrimSpace(string(text)))
	if err != nil || len(secret) < 32 {
		return nil, fmt.Errorf("%s does not hold 32 bytes in hex", path)
	}
	return secret, nil
}

// writePrivate writes a file that only its owner can read, whole or not at all.
func writePrivate(path, text string) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*") // mode 0600
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("write %s: %w", path, err), os.Remove(f.Name()))
	}
	return syncDir(filepath.Dir(path))
}

// syncDir makes the names in a directory last.
func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// withRoll opens the data directory for one command.
func (s *settings) withRoll(a *app, run func(*rollcall.Roll) error) error {
	conf, err := s.load(a)
	if err != nil {
		return err
	}
	return conf.withRoll(a, run)
}

func (c *config) withRoll(a *app, run func(*rollcall.Roll) error) error {
	engine, err := c.openEngine(a)
	if err != nil {
		return err
	}
	shelf, err := c.openShelf(a, engine, nil, nil)
	if err != nil {
		return errors.Join(err, engine.Close())
	}
	c.roll.Archive = shelf.port()
	roll, err := c.openRoll(engine)
	if err != nil {
		return errors.Join(err, engine.Close(), shelf.close())
	}
	return errors.Join(run(roll), roll.Close(), engine.Close(), shelf.close())
}
