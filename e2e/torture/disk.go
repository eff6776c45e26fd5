package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// disk is a file system of its own, in a file: what the file holds is what a
// power cut leaves.
type disk struct {
	image string // "" for a plain directory
	mount string
	cuts  int
}

const (
	diskSize = 256 << 20
	// reserve is what servers leave free, and a little more.
	reserve = 70 << 20
)

// newDisk makes a file system, or a plain directory where none can be mounted.
func newDisk(dir string) (*disk, error) {
	d := &disk{mount: filepath.Join(dir, "disk")}
	if err := os.MkdirAll(d.mount, 0o700); err != nil {
		return nil, err
	}
	image := filepath.Join(dir, "disk.img")
	f, err := os.Create(image)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(f.Truncate(diskSize), f.Close()); err != nil {
		return nil, err
	}
	if exec.Command("mkfs.ext4", "-q", "-E", "lazy_itable_init=1,lazy_journal_init=1", "-J", "size=8", image).Run() != nil || mount(image, d.mount) != nil {
		return d, os.Remove(image)
	}
	d.image = image
	return d, nil
}

// mount mounts an image. Data that nobody syncs stays in memory.
func mount(image, at string) error {
	out, err := exec.Command("mount", "-o", "loop,commit=1000,noatime,noinit_itable", image, at).CombinedOutput() //nolint:gosec // our own arguments
	if err != nil {
		return fmt.Errorf("mount %s: %w: %s", image, err, out)
	}
	return nil
}

// cut goes on as after a power cut: with what the image holds now. Nobody may have
// a file open.
func (d *disk) cut(copied string) error {
	if err := d.unmount(); err != nil {
		return err
	}
	if err := errors.Join(os.Remove(d.image), mount(copied, d.mount)); err != nil {
		return err
	}
	d.image = copied
	return nil
}

// copyImage copies what the image holds. The copy is made again until the kernel
// wrote nothing meanwhile.
func (d *disk) copyImage() (string, error) {
	d.cuts++
	to := fmt.Sprintf("%s.%d", d.image[:len(d.image)-len(filepath.Ext(d.image))], d.cuts)
	for range 20 {
		before, err := os.Stat(d.image)
		if err != nil {
			return "", err
		}
		if out, err := exec.Command("cp", "--sparse=always", d.image, to).CombinedOutput(); err != nil { //nolint:gosec // our own arguments
			return "", fmt.Errorf("copy the disk: %w: %s", err, out)
		}
		after, err := os.Stat(d.image)
		if err != nil {
			return "", err
		}
		if after.ModTime().Equal(before.ModTime()) {
			return to, nil
		}
	}
	return "", errors.New("copy the disk: it changes all the time")
}

func (d *disk) unmount() error {
	if out, err := exec.Command("umount", d.mount).CombinedOutput(); err != nil { //nolint:gosec // our own arguments
		return fmt.Errorf("umount: %w: %s", err, out)
	}
	return nil
}

// close lets go of the file system.
func (d *disk) close() error {
	if d.image == "" {
		return nil
	}
	return d.unmount()
}

func (d *disk) ballast() string { return filepath.Join(d.mount, "ballast") }

// fill takes the room there is: all but so much.
func (d *disk) fill(leave int64) error {
	var s syscall.Statfs_t
	if err := syscall.Statfs(d.mount, &s); err != nil {
		return err
	}
	f, err := os.Create(d.ballast())
	if err != nil {
		return err
	}
	take := int64(s.Bavail)*s.Bsize - leave
	err = syscall.Fallocate(int(f.Fd()), 0, 0, max(take, 4096))
	return errors.Join(err, f.Close())
}

// free gives the room back, and syncs that: otherwise a power cut soon after would fill the
// disk again, and no server starts on a full one.
func (d *disk) free() error {
	if err := os.Remove(d.ballast()); err != nil {
		return err
	}
	dir, err := os.Open(d.mount)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
