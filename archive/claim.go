package archive

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// claim is the right of one process to the lease of those that had the same offload
// log before it, and died.
//
// A process that is killed leaves its lease held, and nobody else can tell that it is
// dead before the lease lapses. But its locks on files end with it. So a runner keeps
// a file of its log's directory locked as long as it wants or holds the lease, and
// writes into it the number that it drew, before it asks for the lease. Whoever gets
// that lock knows that the processes whose numbers the file has do not work any more,
// and may take the lease from them, and from nobody else.
//
//	crash after                      what the next process finds
//	the number was written           the lease of another, or of nobody: it waits, or takes it
//	the lease was taken              its holder among the numbers: it takes the lease at once
//	the lease was given up           the lease of nobody
//
// The numbers of those before stay in the file until the database has said who holds
// the lease: one that did not answer may still hold the lease of each of them. A copy
// of the directory may name a process that is alive elsewhere. That costs it its run,
// and nothing else: who lost the lease writes nothing, see [Lease].
type claim struct {
	file   *os.File
	former []string
}

const (
	claimName = "lease"
	// maxClaims is how many processes are remembered that died one after the other
	// without an answer of the database.
	maxClaims = 16
)

// newHolder draws the number of a runner.
func newHolder() string { return rand.Text() }

// claim locks the directory for a holder; nil if another has it locked, or where
// files cannot be locked.
func (l *OffloadLog) claim(holder string) (*claim, error) {
	file, err := os.OpenFile(filepath.Join(l.dir, claimName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, logFailed("cannot be claimed", err)
	}
	locked, err := lockFile(file)
	if err != nil || !locked {
		return nil, logFailed("cannot be claimed", errors.Join(err, file.Close()))
	}
	text, err := io.ReadAll(io.LimitReader(file, maxClaims*64))
	c := &claim{file: file, former: holdersIn(string(text))}
	if err == nil {
		kept := c.former[max(0, len(c.former)-maxClaims+1):]
		err = c.write(append(slices.Clone(kept), holder))
	}
	if err != nil {
		return nil, logFailed("cannot be claimed", errors.Join(err, file.Close()))
	}
	return c, nil
}

// holdersIn returns the numbers in a text, which a machine's end may have damaged.
func holdersIn(text string) []string {
	return slices.DeleteFunc(strings.Fields(text), func(word string) bool {
		return len(word) != len(newHolder()) || strings.Trim(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") != ""
	})
}

// write replaces the numbers in the file. No process ends in the middle of it but by
// the machine's end; then the lease lapses in its time.
func (c *claim) write(holders []string) error {
	text := strings.Join(holders, "\n") + "\n"
	if _, err := c.file.WriteAt([]byte(text), 0); err != nil {
		return err
	}
	return c.file.Truncate(int64(len(text)))
}

// close lets others claim the directory. A nil claim does nothing.
func (c *claim) close() error {
	if c == nil {
		return nil
	}
	return logFailed("cannot be given free", c.file.Close())
}

// acquire takes the lease, also from a dead process with the same offload log.
// The caller closes the claim after it has given the lease up.
func (r *Runner) acquire(ctx context.Context) (*Lease, *claim, error) {
	if r.opts.OffloadLog == nil {
		l, err := r.db.Acquire(ctx, r.opts.Name, r.opts.Lease)
		return l, nil, err
	}
	c, err := r.opts.OffloadLog.claim(r.holder)
	if err != nil {
		return nil, nil, err
	}
	holder, dead := "", []string(nil)
	if c != nil {
		holder, dead = r.holder, c.former
	}
	l, err := r.db.acquire(ctx, r.opts.Name, r.opts.Lease, holder, dead)
	// From here on the database has said who holds the lease: us, or somebody who is
	// none of the dead.
	if c != nil && (err == nil || errors.Is(err, ErrHeld)) {
		err = errors.Join(err, logFailed("cannot be claimed", c.write([]string{r.holder})))
	}
	if err != nil && l != nil {
		err = errors.Join(err, l.Release(context.WithoutCancel(ctx)))
	}
	if err != nil {
		return nil, nil, errors.Join(err, c.close())
	}
	return l, c, nil
}

// release gives lease and claim up.
func (r *Runner) release(ctx context.Context, l *Lease, c *claim) error {
	return errors.Join(l.Release(ctx), c.close())
}
