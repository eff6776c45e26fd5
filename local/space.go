package local

import (
	"github.com/dustin/go-humanize"

	"github.com/rollcall/rollcall"
)

// guardSpace refuses writes while less disk space is free than is to be left
// alone, so that the store never meets a full disk, and allows them again when
// there is room.
func (e *Engine) guardSpace() error {
	if e.opts.InMemory || e.opts.ReserveBytes < 0 {
		return nil
	}
	usage, err := e.opts.fs.GetDiskUsage(e.dir)
	if err != nil {
		return nil //nolint:nilerr // a file system that cannot tell is taken at its word
	}
	if usage.AvailBytes < uint64(e.opts.ReserveBytes) {
		return e.store.refuse(rollcall.CodeStorageFull, false,
			"less than "+humanize.IBytes(uint64(e.opts.ReserveBytes))+" of disk space are free: writes are refused until there is room", nil)
	}
	e.store.allow()
	return nil
}
