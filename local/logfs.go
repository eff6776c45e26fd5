package local

import (
	"errors"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// logFS lets the store write over its old logs, which syncs faster than new
// files do, except while they are being purged: an old log still holds what has
// since been erased.
type logFS struct {
	vfs.FS
	purging atomic.Bool
}

// ReuseForWrite implements vfs.FS.
func (f *logFS) ReuseForWrite(oldname, newname string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if !f.purging.Load() {
		return f.FS.ReuseForWrite(oldname, newname, category)
	}
	file, err := f.Create(newname, category)
	if err != nil {
		return nil, err
	}
	if err := f.Remove(oldname); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// Unwrap implements vfs.FS.
func (f *logFS) Unwrap() vfs.FS { return f.FS }

// oldLogs is more than the logs Pebble keeps to write over.
const oldLogs = 8

// purge replaces every log of the store by a new file.
func (s *store) purge() error {
	s.logs.purging.Store(true)
	defer s.logs.purging.Store(false)
	for i := range oldLogs {
		if err := s.put(metaKey(metaPurge), []byte{byte(i)}); err != nil {
			return err
		}
		if err := s.db.Flush(); err != nil {
			return storeError(err)
		}
	}
	return nil
}
