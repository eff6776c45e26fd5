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
			return &dayMerge{values: [][]byte{slices.Clone(value)}}, nil
		},
	}
}

// dayMerge collects the values of one key, oldest first.
type dayMerge struct{ values [][]byte }

func (m *dayMerge) MergeNewer(value []byte) error {
	m.values = append(m.values, slices.Clone(value))
	return nil
}

func (m *dayMerge) MergeOlder(value []byte) error {
	m.values = slices.Insert(m.values, 0, slices.Clone(value))
	return nil
}

func (m *dayMerge) Finish(includesBase bool) ([]byte, io.Closer, error) {
	v, err := dayset.Fold(nil, includesBase, m.values...)
	return v, nil, err
}
