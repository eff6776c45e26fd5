package rollcall

import (
	"context"
	"io"
)

// BackupSource is an engine whose data is files of its own: an embedded one. The data of a
// distributed engine is backed up where it is kept.
type BackupSource interface {
	// Backup calls visit with each file of a copy of the store, in an order of the
	// engine's own. An engine that is opened on those files holds all that was
	// acknowledged before the call, and of what comes during it each command whole or
	// not at all. Commands go on meanwhile. One copy is made at a time: another call is
	// refused with CodeConflict, and so is a store in memory. An error of visit ends the
	// copy and is returned as it is.
	Backup(ctx context.Context, visit func(BackupFile) error) error
}

// BackupFile is one file of a copy of a store.
type BackupFile struct {
	Name    string    // below the store's directory, with slashes
	Size    int64     // bytes
	Content io.Reader // valid during the call only
}

// Backup copies the engine's store while it works: see [BackupSource]. CodeConflict if the
// engine's data is not files of its own. A copy holds ids, names and addresses of all
// users, but no token, no key and no secret.
func (r *Roll) Backup(ctx context.Context, visit func(BackupFile) error) error {
	return r.do(ctx, "backup", func() error {
		source, ok := r.engine.(BackupSource)
		if !ok {
			return &Error{Code: CodeConflict, Detail: "the data is in Redis: back up Redis itself, or use \"rollcall export\""}
		}
		_, err := act(ctx, r, NewAuditEntry{Action: AuditBackup}, func() (struct{}, error) {
			return struct{}{}, source.Backup(ctx, visit)
		}, nil)
		return err
	})
}
