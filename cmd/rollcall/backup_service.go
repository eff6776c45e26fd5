package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/httpapi"
	"github.com/rollcall/rollcall/internal/backupfile"
)

// lastBackupFile, in the data directory, tells of the latest backup, so that its age is known
// after a restart.
const lastBackupFile = "last-backup.json"

// backupDir begins the names of directories, in the data directory, where the archive is copied.
const backupDir = ".backup-"

// lastBackup is that file.
type lastBackup struct {
	At    time.Time `json:"at"`    // when it began
	Bytes int64     `json:"bytes"` // packed
}

// backupService makes backups of a server that runs: its store, and its archive and offload log
// if they are in the data directory.
type backupService struct {
	roll    *rollcall.Roll
	archive *archiveService
	config  *config
	metrics *httpapi.Metrics
	log     *slog.Logger
}

// newBackupService tells the metrics of the latest backup that is known.
func newBackupService(s *server, metrics *httpapi.Metrics) *backupService {
	b := &backupService{roll: s.roll, archive: s.archive, config: s.config, metrics: metrics, log: s.log}
	b.removeLeftovers()
	text, err := os.ReadFile(b.lastPath())
	var last lastBackup
	if err == nil {
		err = json.Unmarshal(text, &last)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		b.log.Warn("the note of the latest backup cannot be read", "error", err)
	default:
		metrics.BackedUp(last.At, last.Bytes)
	}
	return b
}

// removeLeftovers removes what a backup that a crash cut short left in the data directory. Of
// the store's own copy the engine does that.
func (b *backupService) removeLeftovers() {
	names, err := os.ReadDir(b.config.dataDir)
	for _, e := range names {
		if strings.HasPrefix(e.Name(), backupDir) {
			err = errors.Join(err, os.RemoveAll(filepath.Join(b.config.dataDir, e.Name())))
		}
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		b.log.Warn("what a backup left could not be removed", "error", err)
	}
}

func (b *backupService) lastPath() string { return filepath.Join(b.config.dataDir, lastBackupFile) }

// WriteBackup implements [httpapi.Backups].
func (b *backupService) WriteBackup(ctx context.Context, w io.Writer) error {
	at, out := b.roll.Now(), &countedWriter{Writer: w}
	packed, err := backupfile.NewWriter(out)
	if err != nil {
		return err
	}

	// The store first: a day that leaves it meanwhile is in the archive by then, so it is in one
	// of the two.
	err = b.roll.Backup(ctx, func(f rollcall.BackupFile) error {
		return packed.Add(storeDir+"/"+f.Name, f.Size, at, f.Content)
	})
	if err == nil && b.archive != nil && b.config.archive.path != "" {
		err = b.addArchive(ctx, packed, at)
	}
	if err != nil {
		packed.Abort()
		return err
	}
	if err := packed.Close(); err != nil {
		return err
	}
	b.log.InfoContext(ctx, "a backup was sent", "bytes", out.n, "took", time.Since(at).Round(time.Millisecond))
	b.note(lastBackup{at, out.n})
	return nil
}

// addArchive adds the archive and the offload log.
func (b *backupService) addArchive(ctx context.Context, packed *backupfile.Writer, at time.Time) error {
	dir, err := os.MkdirTemp(b.config.dataDir, backupDir+"*")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }() // the next start of the server does it as well
	name := filepath.Join(dir, archiveFile)
	if err := b.archive.db.CopyTo(ctx, name); err != nil {
		return err
	}
	if err := addFile(packed, archiveFile, name, at); err != nil {
		return err
	}
	return b.archive.log.BackUp(func(path string) error {
		err := addFile(packed, offloadDir+"/"+filepath.Base(path), path, at)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
}

// addFile adds a file that is on the disk.
func addFile(packed *backupfile.Writer, name, path string, at time.Time) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err == nil {
		err = packed.Add(name, info.Size(), at, f)
	}
	return errors.Join(err, f.Close())
}

// note remembers a backup. The backup is whole also if that fails.
func (b *backupService) note(last lastBackup) {
	b.metrics.BackedUp(last.At, last.Bytes)
	text, err := json.Marshal(last)
	if err == nil {
		err = writePrivate(b.lastPath(), string(text)+"\n")
	}
	if err != nil {
		b.log.Warn("the note of the latest backup cannot be written", "error", err)
	}
}

// countedWriter counts what is written.
type countedWriter struct {
	io.Writer
	n int64
}

func (w *countedWriter) Write(b []byte) (int, error) {
	n, err := w.Writer.Write(b)
	w.n += int64(n)
	return n, err
}
