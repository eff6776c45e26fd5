package redis

import (
	"context"

	"github.com/redis/rueidis"
)

// hashStep is about how many fields of a hash one command reads.
const hashStep = 500

// eachField reads a hash of some partitions in steps, and calls each with every field. A field
// that stood all the while comes once or more often.
func (e *Engine) eachField(ctx context.Context, name string, parts []int, each func(part int, field, value string) error) error {
	cursors := make(map[int]uint64, len(parts))
	for len(parts) > 0 {
		calls := make([]call, len(parts))
		for i, p := range parts {
			calls[i] = plainCall(func() rueidis.Completed {
				return e.client.B().Hscan().Key(e.of(p, name)).Cursor(cursors[p]).Count(hashStep).Build()
			})
		}
		messages, err := e.do(ctx, 0, calls...)
		if err != nil {
			return err
		}
		var rest []int
		for i, msg := range messages {
			p := parts[i]
			entry, err := msg.AsScanEntry()
			if err != nil || len(entry.Elements)%2 != 0 {
				return damaged("a hash")
			}
			for j := 0; j < len(entry.Elements); j += 2 {
				if err := each(p, entry.Elements[j], entry.Elements[j+1]); err != nil {
					return err
				}
			}
			if cursors[p] = entry.Cursor; entry.Cursor != 0 {
				rest = append(rest, p)
			}
		}
		parts = rest
	}
	return nil
}

// allParts are the numbers of all partitions.
func (e *Engine) allParts() []int {
	parts := make([]int, len(e.keyPrefixes))
	for p := range parts {
		parts[p] = p
	}
	return parts
}
