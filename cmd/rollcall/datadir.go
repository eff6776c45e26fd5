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
	"github.com/rollcall/rollcall/local"
)

// The files beside the store in the data directory, readable by their owner
// alone.
const (
	storeDir   = "store"
	secretFile = "secret"
	keyFile    = "admin.key"
)

// openDataDir makes sure that the data directory is there, is its owner's alone
// to change, and has the secret. Only a verb that may create data makes any of it.
func (c *config) openDataDir() error {
	if c.redis == nil {
		if err := c.refuseCutRestore(); err != nil {
			return err
		}
		if _, err := local.FinishRepair(filepath.Join(c.dataDir, storeDir)); err != nil {
			return err
		}
	}
	_, err := os.Stat(filepath.Join(c.dataDir, storeDir))
	exists := err == nil
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("look at the data directory: %w", err)
	}
	if c.redis == nil && !exists && !c.create {
		return fmt.Errorf("there is no data in %s: is --data-dir right? To make new data there, start \"rollcall serve\" once, or use --create where a verb has it", c.dataDir)
	}
	if c.create {
		if err := os.MkdirAll(c.dataDir, 0o700); err != nil {
			return fmt.Errorf("make the data directory: %w", err)
		}
	}
	if err := c.checkRights(); err != nil {
		return err
	}
	if c.secret != nil || c.secretLost {
		return nil
	}

	// The secret is on disk before the store is: a store without its secret has
	// lost it.
	secret, err := c.readSecret()
	if !errors.Is(err, fs.ErrNotExist) {
		c.secret = secret
		return err
	}
	switch {
	case c.redis != nil && !c.create:
		return fmt.Errorf("there is no secret: configure the one of the servers, or copy their file %q to %s", secretFile, c.dataDir)
	case exists:
		return fmt.Errorf("%s is missing, and the data was made with it: put it back from a backup; without it bans, cursors and retried logins would no longer hold (docs/troubleshooting.md, \"The secret is lost\")",
			filepath.Join(c.dataDir, secretFile))
	}
	c.secret, err = c.makeSecret()
	return err
}

// checkRights refuses a data directory that others may change. They could put a
// secret or a store of their own in its place.
func (c *config) checkRights() error {
	dirs := []string{c.dataDir, filepath.Join(c.dataDir, storeDir)}
	for _, dir := range dirs {
		if info, err := os.Stat(dir); err == nil && info.Mode().Perm()&0o022 != 0 {
			return fmt.Errorf("%s can be changed by others (mode %v): run chmod 700 on it", dir, info.Mode().Perm())
		}
	}
	for _, name := range []string{keyFile, archiveFile} {
		info, err := os.Lstat(filepath.Join(c.dataDir, name))
		switch {
		case err != nil: // it is not there, or opening it will say more
		case !info.Mode().IsRegular():
			return fmt.Errorf("%s is not a regular file: name the real one in the configuration", filepath.Join(c.dataDir, name))
		case info.Mode().Perm()&0o077 != 0:
			return fmt.Errorf("%s can be read by others (mode %v): run chmod 600 on it", filepath.Join(c.dataDir, name), info.Mode().Perm())
		}
	}
	return nil
}

// openRoll opens the service on an engine that openEngine opened.
func (c *config) openRoll(engine rollcall.Engine) (*rollcall.Roll, error) {
	opts := c.roll
	opts.Secret = c.secret // nil if it is lost: then it is made anew, for this command alone
	roll, err := rollcall.New(engine, opts)
	if err != nil && c.redis != nil && c.secretMade {
		// Redis has data under another secret. The one just made is of no use,
		// and would stand in the way of the right one.
		err = errors.Join(err, os.Remove(filepath.Join(c.dataDir, secretFile)))
	}
	return roll, err
}

// readSecret reads the secret of the data directory.
func (c *config) readSecret() ([]byte, error) {
	path := filepath.Join(c.dataDir, secretFile)
	info, err := os.Stat(path)
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

// makeSecret makes the secret of a new data directory.
func (c *config) makeSecret() ([]byte, error) {
	secret := make([]byte, 32)
	_, _ = rand.Read(secret) // never fails
	c.secretMade = true
	return secret, writePrivate(filepath.Join(c.dataDir, secretFile), hex.EncodeToString(secret)+"\n")
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
	archived, err := c.openArchive(a, engine, nil, nil)
	if err != nil {
		return errors.Join(err, engine.Close())
	}
	c.roll.Archive = archived.adapter()
	roll, err := c.openRoll(engine)
	if err != nil {
		return errors.Join(err, engine.Close(), archived.close())
	}
	return errors.Join(run(roll), roll.Close(), engine.Close(), archived.close())
}
