package archive

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// blank finds a user's line in a file of the offload log and writes spaces over it.
// The line lies between two offsets that come ever closer; a line is on the side
// where it begins.
func blank(file *os.File, user string) error {
	info, err := file.Stat()
	if err != nil {
		return err
	}
	lines := lines{file, info.Size()}
	for low, high := int64(0), info.Size(); low < high; {
		middle := low + (high-low)/2
		at, line, err := lines.after(low, middle, high)
		if err != nil {
			return err
		}
		if line == nil {
			high = middle
			continue
		}
		var found struct {
			User string `json:"user"`
		}
		if err := json.Unmarshal(line, &found); err != nil {
			return fmt.Errorf("%s at %d: %w", filepath.Base(file.Name()), at, err)
		}
		switch {
		case found.User == user:
			return lines.clear(at, len(line))
		case found.User < user: // also the first line, which has none
			low = at + int64(len(line)) + 1
		default:
			high = middle
		}
	}
	return nil
}

// lines are those of a file, all of which end.
type lines struct {
	file *os.File
	size int64
}

// after returns the first line that begins between middle and high and is not
// blank; nil if there is none. A line begins at low.
func (l lines) after(low, middle, high int64) (at int64, line []byte, err error) {
	at = middle
	if middle > low {
		at-- // a newline there means that a line begins at middle
	}
	r := bufio.NewReaderSize(io.NewSectionReader(l.file, at, l.size-at), 4096)
	for first := true; ; first = false {
		line, err := r.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return 0, nil, nil
		}
		if err != nil {
			return 0, nil, err
		}
		begun := first && middle > low // before middle
		if !begun && at >= high {
			return 0, nil, nil
		}
		text := line[:len(line)-1]
		switch {
		case begun || len(text) == 0:
		case text[0] != ' ':
			return at, text, nil
		case len(bytes.Trim(text, " ")) > 0: // an erasure was cut short
			if err := l.clear(at, len(text)); err != nil {
				return 0, nil, err
			}
		}
		at += int64(len(line))
	}
}

func (l lines) clear(at int64, n int) error {
	if _, err := l.file.WriteAt(bytes.Repeat([]byte{' '}, n), at); err != nil {
		return err
	}
	return l.file.Sync()
}
