package local

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/rollcall/rollcall"
)

// A backup is a copy of the store's files, made while commands go on: links to the tables,
// which never change, and the segments of the journal that have ended.
//
// Steps, and what makes the copy whole:
//  1. Most of the journal goes into the tables. So little of it has to be copied.
//  2. From here on no segment is released. So the journal has all that the tables lack.
//  3. Pebble links its tables. They hold nothing that the journal has not on disk by now:
//     see beforeTable.
//  4. A new segment begins, and all before it are copied. They hold all that any linked
//     table holds, and all that was acknowledged before.
//  5. The lock is released, and the copy is read, for as long as its reader takes.
//
// To an opening the copy is a store after a power cut. A crash meanwhile leaves the
// directory of the copy, which the next opening removes.

// backupName is the directory, in the store's, of the copy.
const backupName = "backup"

var errInMemory = &rollcall.Error{Code: rollcall.CodeConflict, Detail: "the store is in memory: there are no files to copy"}

// Backup implements [rollcall.BackupSource].
func (e *Engine) Backup(ctx context.Context, visit func(rollcall.BackupFile) error) error {
	if !e.backingUp.TryLock() {
		return &rollcall.Error{Code: rollcall.CodeConflict, Detail: "another backup is being made"}
	}
	defer e.backingUp.Unlock()
	if err := e.copyStore(); err != nil {
		return err
	}
	defer func() {
		if err := e.store.removeBackup(); err != nil {
			e.opts.Logger.Warn("the copy that a backup was read from could not be removed: the next start does it", "error", err)
		}
	}()
	for _, dir := range []string{"", journalName} {
		if err := e.store.visitBackup(ctx, dir, visit); err != nil {
			return err
		}
	}
	return nil
}

// copyStore makes the copy, with all that was heard so far.
func (e *Engine) copyStore() error {
	e.closing.RLock()
	defer e.closing.RUnlock()
	switch err := e.readable(); {
	case err != nil:
		return err
	case e.opts.InMemory:
		return errInMemory
	}
	if err := e.flushAll(); err != nil {
		return err
	}
	return e.store.makeBackup()
}

func (s *store) backupDir() string { return path.Join(s.dir, backupName) }

// makeBackup makes the copy of the store's files.
func (s *store) makeBackup() error {
	if err := s.writable(); err != nil {
		return err
	}
	if err := cmp.Or(s.checkpoint(), s.removeBackup()); err != nil {
		return backupError(err)
	}
	s.checkpoints.Lock()
	defer s.checkpoints.Unlock()
	err := s.linkTables()
	if err == nil {
		err = s.journal.Replace()
	}
	if err == nil {
		err = makeDirs(s.o.fs, path.Join(s.backupDir(), journalName))
	}
	if err == nil {
		err = s.journal.CopyEnded(path.Join(s.backupDir(), journalName))
	}
	if err != nil {
		return errors.Join(backupError(err), s.removeBackup())
	}
	return nil
}

// backupError words a failure to make or read the copy. The store goes on.
func backupError(err error) error {
	var own *rollcall.Error
	switch {
	case errors.As(err, &own):
		return own
	case errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT):
		return &rollcall.Error{Code: rollcall.CodeStorageFull, Detail: "the disk has no room for the copy that a backup is made of", Err: err}
	default:
		return &rollcall.Error{Code: rollcall.CodeUnavailable, Detail: "the copy that a backup is made of cannot be made or read", Err: err}
	}
}

// linkTables links the tables on disk into the copy.
func (s *store) linkTables() error {
	t := s.tables.Load()
	t.using.RLock()
	defer t.using.RUnlock()
	if t.shut {
		return errClosed
	}
	if err := t.db.Checkpoint(s.backupDir()); err != nil {
		return err
	}
	return t.well() // else links may be missing
}

// removeBackup removes the copy, if there is one.
func (s *store) removeBackup() error {
	if err := s.o.fs.RemoveAll(s.backupDir()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove a copy: %w", err)
	}
	return nil
}

// visitBackup visits the files in a directory of the copy, in the order of their names.
func (s *store) visitBackup(ctx context.Context, dir string, visit func(rollcall.BackupFile) error) error {
	names, err := s.o.fs.List(path.Join(s.backupDir(), dir))
	if err != nil {
		return backupError(err)
	}
	slices.Sort(names)
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return err
		}
		name = path.Join(dir, name)
		if name == journalName {
			continue
		}
		f, err := s.o.fs.Open(path.Join(s.backupDir(), name), vfs.SequentialReadsOption)
		if err != nil {
			return backupError(err)
		}
		info, err := f.Stat()
		if err != nil {
			return errors.Join(backupError(err), f.Close())
		}
		err = visit(rollcall.BackupFile{Name: name, Size: info.Size(), Content: io.LimitReader(f, info.Size())})
		if err := errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
	return nil
}
