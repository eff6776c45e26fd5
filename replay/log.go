package replay

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/rollcall/rollcall"
)

// act is a row with its names as numbers: what stays in memory.
type act struct {
	at           int64
	user, friend uint32
	kind         uint8
}

// names gives every text a number, from 1; 0 is the empty text.
type names struct {
	numbers map[string]uint32
	texts   []string
}

func newNames() *names { return &names{numbers: map[string]uint32{"": 0}, texts: []string{""}} }

func (n *names) number(text string) uint32 {
	i, ok := n.numbers[text]
	if !ok {
		text = strings.Clone(text)
		i = uint32(len(n.texts))
		n.numbers[text] = i
		n.texts = append(n.texts, text)
	}
	return i
}

// log is all of a log, in order of time.
type log struct {
	acts     []act
	users    *names
	kinds    *names
	earliest int64 // unix seconds
	rejected int
	first    []Rejected // the first of them
	cut      error      // why the log could not be read to its end
}

// maxLine is the longest line that is read; a longer one is rejected.
const maxLine = 64 << 10

// readLog reads a log, compressed by gzip or not. Lines that cannot be read are
// counted. Where the input breaks off, what came before stands in the log, and
// cut says why.
func readLog(ctx context.Context, r io.Reader, parse parser, zone *time.Location) (*log, error) {
	in := bufio.NewReaderSize(r, maxLine)
	if magic, err := in.Peek(2); err == nil && bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		zip, err := gzip.NewReader(in)
		if err != nil {
			return nil, fmt.Errorf("unpack the log: %w", err)
		}
		in = bufio.NewReaderSize(zip, maxLine)
	}
	l := &log{users: newNames(), kinds: newNames(), earliest: earliestIn(zone)}
	for line := 1; ; line++ {
		if line%10_000 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		text, err := readLine(in)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil && !errors.Is(err, bufio.ErrTooLong) {
			l.cut = fmt.Errorf("read the log: line %d: %w", line, err)
			break
		}
		if err != nil {
			l.reject(line, fmt.Errorf("the line is longer than %d bytes", maxLine))
			continue
		}
		if line == 1 {
			text = strings.TrimPrefix(text, "\ufeff") // else it would be part of a name
		}
		l.add(line, text, parse)
	}
	slices.SortStableFunc(l.acts, func(a, b act) int { return int(max(-1, min(1, a.at-b.at))) })
	return l, nil
}

// readLine returns the next line without its end.
func readLine(in *bufio.Reader) (string, error) {
	text, err := in.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		for errors.Is(err, bufio.ErrBufferFull) {
			_, err = in.ReadSlice('\n')
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return "", err
		}
		return "", bufio.ErrTooLong
	}
	if err != nil && (!errors.Is(err, io.EOF) || len(text) == 0) {
		return "", err
	}
	return strings.TrimRight(string(text), "\r\n"), nil
}

func (l *log) add(line int, text string, parse parser) {
	if strings.TrimSpace(text) == "" {
		return
	}
	r, err := parse(text)
	if err == nil {
		err = r.check(l.earliest)
	}
	if err != nil {
		if line == 1 && !strings.ContainsAny(text, "0123456789") {
			return // a header
		}
		l.reject(line, err)
		return
	}
	if _, known := l.kinds.numbers[r.kind]; !known && len(l.kinds.texts) == rollcall.MaxKinds {
		l.reject(line, fmt.Errorf("the kind would be one more than %d", rollcall.MaxKinds-1))
		return
	}
	kind := l.kinds.number(r.kind)
	l.acts = append(l.acts, act{at: r.at, user: l.users.number(r.user), friend: l.users.number(r.friend), kind: uint8(kind)})
}

func (l *log) reject(line int, why error) {
	l.rejected++
	if len(l.first) < keptRejected {
		l.first = append(l.first, Rejected{line, why.Error()})
	}
}
