package local

import (
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// exchange puts the new store into the place of the old one.
func (r *repair) exchange(work string) error {
	r.progress("putting the new store in place")
	ready, old := r.dir+repairedSuffix, r.dir+damagedSuffix+r.ro.Now.UTC().Format("20060102T150405Z")
	for n := 2; exists(r.o.fs, old); n++ {
		old = fmt.Sprintf("%s%s%s-%d", r.dir, damagedSuffix, r.ro.Now.UTC().Format("20060102T150405Z"), n)
	}
	lock, err := lockDir(work, r.o.fs) // nobody may take it up half-way
	if err != nil {
		return err
	}
	defer lock.Close() //nolint:errcheck // nothing was written under it
	for _, step := range [...][2]string{{work, ready}, {r.dir, old}, {ready, r.dir}} {
		if err := renameDir(r.o.fs, step[0], step[1]); err != nil {
			return fmt.Errorf("rename %s to %s: %w", step[0], step[1], err)
		}
		r.completed(step[1])
	}
	r.out.Old = old
	return nil
}

func exists(fsys vfs.FS, name string) bool {
	_, err := fsys.Stat(name)
	return err == nil
}

// renameDir renames a directory, durably.
func renameDir(fsys vfs.FS, from, to string) error {
	if err := fsys.Rename(from, to); err != nil {
		return err
	}
	parent, err := fsys.OpenDir(fsys.PathDir(to))
	if err != nil {
		return err
	}
	return errors.Join(parent.Sync(), parent.Close())
}

// FinishRepair takes the last step of a repair that a crash cut short before it:
// the old store was put aside, and the new one is not in its place. It reports
// whether that was so. Open, Check and Repair call it.
func FinishRepair(dir string) (bool, error) { return finishRepair(dir, vfs.Default) }

func finishRepair(dir string, fsys vfs.FS) (bool, error) {
	ready := dir + repairedSuffix
	if exists(fsys, dir) || !exists(fsys, ready) {
		return false, nil
	}
	lock, err := lockDir(ready, fsys)
	if err != nil {
		return false, err
	}
	err = renameDir(fsys, ready, dir)
	return err == nil, errors.Join(err, lock.Close())
}
