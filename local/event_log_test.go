package local

import (
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// readOnlyTables are tables that take nothing.
func (r *rig) readOnlyTables() *tables {
	o := &pebble.Options{FS: vfs.NewMem()}
	db, err := pebble.Open("", o)
	r.NoError(err)
	r.NoError(db.Close())
	o.ReadOnly = true
	db, err = pebble.Open("", o)
	r.NoError(err)
	r.t.Cleanup(func() { r.NoError(db.Close()) })
	return &tables{db: db}
}

func TestWhatTheTablesRefusedIsReadAfterARestart(t *testing.T) {
	r := newRig(t, 0)
	r.login("alice")
	last, err := r.roll.LastEvent(r.ctx)
	r.NoError(err)
	s := r.eng.store
	r.NoError(s.applyBacklog())
	sound := s.tables.Load()
	s.tables.Store(r.readOnlyTables())
	_, err = r.roll.Ban(r.ctx, "bob", time.Hour, "", "")
	r.NoError(err, "the journal has it")
	for range 2 {
		_, err = r.roll.EventsAfter(r.ctx, last, 10)
		r.Error(err, "tables that lack a change are not read")
		s.tables.Store(sound)
	}
	_, err = r.roll.Ban(r.ctx, "carol", time.Hour, "", "")
	r.Error(err, "nor is anything written on top")

	r.crash()
	events, err := r.roll.EventsAfter(r.ctx, last, 10)
	r.NoError(err)
	r.Len(events, 1, "what the journal had taken is carried out")
	r.Equal("bob", events[0].User)
}
