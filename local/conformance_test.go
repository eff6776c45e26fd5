package local

import (
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/enginetest"
)

// memStore is a directory in memory, which can lose what was not synced.
type memStore struct{ fs *vfs.MemFS }

func newMemStore(testing.TB) enginetest.Store { return &memStore{vfs.NewCrashableMem()} }

func (s *memStore) Open() (rollcall.Engine, error) {
	return Open("data", Options{fs: s.fs, ReserveBytes: -1})
}

// Crash implements [enginetest.Crasher]: the engine that is open goes on with
// the files of the past, the next one finds what was synced.
func (s *memStore) Crash() { s.fs = s.fs.CrashClone(vfs.CrashCloneCfg{}) }

func TestConformance(t *testing.T) { enginetest.Run(t, newMemStore) }

func TestVisitors(t *testing.T) { enginetest.RunVisitors(t, newMemStore, 1_000_000) }

func TestModel(t *testing.T) { enginetest.RunModel(t, newMemStore, 200) }

func TestCollegeMsg(t *testing.T) {
	enginetest.RunCollegeMsg(t, newMemStore, 0, "../testdata/CollegeMsg.txt.gz", "../testdata/CollegeMsg.expected.json")
}
