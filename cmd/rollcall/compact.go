package main

import (
	"fmt"

	"github.com/dustin/go-humanize"

	"github.com/rollcall/rollcall"
)

type compactCmd struct{ settings }

// Help is the verb's own part of its help.
func (compactCmd) Help() string {
	return `Rewrites the store without what was deleted, and the archive if it is a file.
The server must be stopped.`
}

// Run compacts the data directory.
func (c *compactCmd) Run(a *app) error {
	return c.withRoll(a, func(r *rollcall.Roll) error {
		before, err := r.Stats(a.ctx)
		if err != nil {
			return err
		}
		if err := r.Compact(a.ctx); err != nil {
			return err
		}
		if err := c.compactArchive(a); err != nil {
			return err
		}
		after, err := r.Stats(a.ctx)
		if err != nil {
			return err
		}
		fmt.Fprintf(a.stdout, "Compacted: the store was %s and is %s.\n", humanize.IBytes(uint64(before.DiskBytes)), humanize.IBytes(uint64(after.DiskBytes)))
		return nil
	})
}
