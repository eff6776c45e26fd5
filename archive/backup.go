package archive

import (
	"context"
	"path/filepath"

	"github.com/rollcall/rollcall"
)

// CopyTo writes a copy of an SQLite archive into a file that is not there yet: the archive at
// one instant. Reads and runs go on meanwhile, though a run may have to wait. It is
// CodeConflict for another database, which has means of its own.
func (db *DB) CopyTo(ctx context.Context, path string) error {
	if db.dialect.copyTo == "" {
		return &rollcall.Error{Code: rollcall.CodeConflict, Detail: "only an SQLite archive is a file to copy"}
	}
	if err := db.prepare(ctx); err != nil {
		return err
	}
	s := session{ctx, db.sql, db.dialect}
	_, err := s.exec(db.dialect.copyTo, path)
	return unavailable("cannot be copied", err)
}

// BackUp calls visit with the path of each file of the log that is whole, in the order of their
// names. Whoever opens one may find it gone: an erasure puts another in its place.
func (l *OffloadLog) BackUp(visit func(path string) error) error {
	names, err := filepath.Glob(filepath.Join(escapeGlob(l.dir), "*"+logSuffix))
	if err != nil {
		return logFailed("cannot be read", err)
	}
	for _, name := range names {
		if err := visit(name); err != nil {
			return err
		}
	}
	return nil
}
