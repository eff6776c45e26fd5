package local

import (
	"io"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"github.com/rollcall/rollcall/internal/dayset"
)

// dayMerger folds marks into sets of days: a mark is a merge of a few bytes,
// which Pebble folds into the set when it reads or compacts.
func dayMerger() *pebble.Merger {
	return &pebble.Merger{
		Name: "rollcall.days",
		Merge: func(_, value []byte) (pebble.ValueMerger, error) {
			return &dayMerge{newer: [][]byte{slices.Clone(value)}}, nil
		},
	}
}

// dayMerge collects the values of one key.
type dayMerge struct {
	newer [][]byte // oldest first
	older [][]byte // newest first, all older than those in newer
}

// MergeNewer implements [pebble.ValueMerger].
func (m *dayMerge) MergeNewer(value []byte) error {
	m.newer = append(m.newer, slices.Clone(value))
	return nil
}

// MergeOlder implements [pebble.ValueMerger].
func (m *dayMerge) MergeOlder(value []byte) error {
	m.older = append(m.older, slices.Clone(value))
	return nil
}

// Finish implements [pebble.ValueMerger].
func (m *dayMerge) Finish(includesBase bool) ([]byte, io.Closer, error) {
	slices.Reverse(m.older)
	v, err := dayset.Fold(nil, includesBase, append(m.older, m.newer...)...)
	return v, nil, err
}
