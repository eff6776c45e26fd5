package archive

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/rollcall/rollcall"
)

// OffloadLog is a directory of files that say who was there on the days that
// left the hot store: a backup beside the database. A file is of one kind, month
// and run, and on disk before the days go. Its first line says which days they
// are; each other line has a user and which of the days they were there, in the
// order of user ids as bytes. Where a user was erased there are spaces.
//
// Its methods may be called at the same time. Beside the files lies that of the
// directory's [claim].
type OffloadLog struct {
	dir      string
	unsynced bool // see [Options]

	mu      sync.Mutex
	writing *offloadFile // not yet under its name
}

const (
	logSuffix  = ".jsonl"
	halfSuffix = ".half"
)

// offloadHead is the first line of a file.
type offloadHead struct {
	Kind  string         `json:"kind"`
	Month string         `json:"month"`
	Days  []rollcall.Day `json:"days"`
	Run   int64          `json:"run"`
	At    time.Time      `json:"at"`
}

// offloadLine is one of the others. Bit 0 of Days is the first of the month.
type offloadLine struct {
	User string `json:"user"`
	Days uint32 `json:"days"`
}

// OpenOffloadLog makes the directory if it is missing, for its owner alone.
func OpenOffloadLog(dir string) (*OffloadLog, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, logFailed("cannot be made", err)
	}
	return &OffloadLog{dir: dir}, nil
}

func logFailed(what string, err error) error {
	if err == nil {
		return nil
	}
	return &rollcall.Error{Code: rollcall.CodeUnavailable, Detail: "the offload log " + what, Err: err}
}

// removeHalves removes the files that a run left half written.
func (l *OffloadLog) removeHalves() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	names, err := filepath.Glob(filepath.Join(escapeGlob(l.dir), "*"+halfSuffix))
	for _, name := range names {
		err = errors.Join(err, os.Remove(name))
	}
	l.writing = nil
	return logFailed("cannot be cleared", err)
}

func escapeGlob(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// offloadFile is a file that is being written.
type offloadFile struct {
	log    *OffloadLog
	name   string // without directory, and as long as it is half written without suffix
	file   *os.File
	lines  *bufio.Writer
	last   string
	erased []string // users erased since it was begun
}

// create begins the file of some days of a kind and month, half written until commit.
func (l *OffloadLog) create(head offloadHead) (*offloadFile, error) {
	f := &offloadFile{log: l, name: fmt.Sprintf("%s_%s_run%d", head.Month, head.Kind, head.Run)}
	file, err := os.OpenFile(filepath.Join(l.dir, f.name+halfSuffix), os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, logFailed("cannot be written", err)
	}
	f.file, f.lines = file, bufio.NewWriterSize(file, 1<<16)
	l.mu.Lock()
	l.writing = f
	l.mu.Unlock()
	if err := f.put(head); err != nil {
		return nil, discardAfter(f, err)
	}
	return f, nil
}

func (f *offloadFile) put(line any) error {
	b, err := json.Marshal(line)
	if err == nil {
		_, err = f.lines.Write(append(b, '\n'))
	}
	return logFailed("cannot be written", err)
}

// add writes a user's days. Users must come in the order of their bytes, as
// erasing relies on it.
func (f *offloadFile) add(user string, days uint32) error {
	if user <= f.last {
		return logFailed("cannot be written", fmt.Errorf("users of %s are out of order", f.name))
	}
	f.last = user
	return f.put(offloadLine{User: user, Days: days})
}

// commit makes the file durable under its name.
func (f *offloadFile) commit() error {
	l := f.log
	l.mu.Lock()
	defer l.mu.Unlock()
	err := f.lines.Flush()
	for _, user := range f.erased {
		err = errors.Join(err, blank(f.file, user))
	}
	half := f.file.Name()
	if !l.unsynced {
		err = errors.Join(err, f.file.Sync())
	}
	if err = errors.Join(err, f.file.Close()); err == nil {
		err = os.Rename(half, f.free())
	}
	if err == nil && !l.unsynced {
		err = syncDir(l.dir)
	}
	l.writing = nil
	return logFailed("cannot be written", err)
}

// free returns a path that is not taken: a run may let days of a month go twice.
func (f *offloadFile) free() string {
	for n := 1; ; n++ {
		path := filepath.Join(f.log.dir, f.name+logSuffix)
		if n > 1 {
			path = filepath.Join(f.log.dir, fmt.Sprintf("%s_%d%s", f.name, n, logSuffix))
		}
		if _, err := os.Lstat(path); err != nil {
			return path
		}
	}
}

// discard removes the file.
func (f *offloadFile) discard() error {
	f.log.mu.Lock()
	defer f.log.mu.Unlock()
	f.log.writing = nil
	return logFailed("cannot be cleared", errors.Join(f.file.Close(), os.Remove(f.file.Name())))
}

func discardAfter(file *offloadFile, err error) error {
	return errors.Join(err, file.discard())
}

func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// EraseUser writes spaces over a user in every file. It looks a user up as in a
// dictionary, so its cost grows with the number of files, hardly with their size.
func (l *OffloadLog) EraseUser(user string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.writing != nil {
		l.writing.erased = append(l.writing.erased, user)
	}
	names, err := filepath.Glob(filepath.Join(escapeGlob(l.dir), "*"+logSuffix))
	for _, name := range names {
		err = errors.Join(err, eraseFrom(name, user))
	}
	return logFailed("cannot be cleared", err)
}

func eraseFrom(path, user string) error {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(blank(file, user), file.Close())
}
