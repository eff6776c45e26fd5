package local

import (
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/enginetest"
)

type memStore struct{ fs vfs.FS }

func (s *memStore) Open() (rollcall.Engine, error) {
	return Open("data", Options{fs: s.fs, ReserveBytes: -1})
}

func TestConformance(t *testing.T) {
	enginetest.Run(t, func(testing.TB) enginetest.Store { return &memStore{vfs.NewMem()} })
}
