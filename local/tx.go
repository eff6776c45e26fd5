package local

import (
	"errors"

	"github.com/cockroachdb/pebble/v2"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/enginekit"
	"github.com/rollcall/rollcall/internal/journal"
	"github.com/rollcall/rollcall/internal/recency"
)

// The write path.
//
// A command must be atomic, and a caller must not be told of a change that a crash
// can take back. Readers must not wait for the disk.
//
// Invariants:
//   - Memory changes only after the journal has taken the same change.
//   - The order of changes of a partition is the same in memory, journal and
//     tables: its lock is held from step 2 to step 5.
//   - Nobody waits for the disk with a lock held.
//
// The steps:
//
//  1. enterWrite: refuse the command if the engine is closed or the store refuses
//     writes.
//  2. Lock the partition, advance its clock, and decide. What can refuse the command
//     comes here: a refused command leaves no trace.
//  3. newTx: put all records into one Pebble batch, and collect the events.
//  4. tx.apply: number the events, and append the batch to the journal and to the
//     backlog of the tables (both in memory). If that fails, memory stays as it is.
//  5. Change memory, and unlock. Readers see the change from here on.
//  6. tx.wait: wait until the journal is synced. Then the caller is told.
//
// | crash after | what opening finds |
// | --- | --- |
// | step 3 | nothing of the command |
// | step 4 or 5 | nothing of the command, or all of it; nobody was told |
// | step 6 | all of the command |
//
// Beats, touches and visits take another way: they change memory alone, and each tick
// flushes what came (upkeep_tick.go). How the journal and the tables stand to each
// other is told at store.

// tx is a command's change of one partition on its way to the disk: a batch, and
// the events that go with it.
type tx struct {
	p      *partition
	batch  *pebble.Batch
	events []event
	ticket journal.Ticket

	// What appendOverdue and announceOffline put into the batch, for memory to
	// follow; see announcements.
	presenceChanges []waitingEvent  // online and offline events among the events
	takenUsers      []uint32        // users whose waiting events it takes along
	overdue         []uint32        // sessions past their deadline
	endedGraces     []deadlineEntry // ends of the grace after a logout
	announcedTo     *recency.Place  // up to where silent users have been announced offline
	newNumbers      []ref           // users who got a number
}

func (p *partition) newTx() *tx {
	return &tx{p: p, batch: p.eng.store.newBatch()}
}

// emptyTx forgets a change that nobody waits for any more, and keeps the room of its lists.
func emptyTx(used *tx) {
	clear(used.events) // of what they refer to
	*used = tx{
		events: reusable(used.events), presenceChanges: reusable(used.presenceChanges), newNumbers: reusable(used.newNumbers),
	}
}

// apply gives the change to the journal and the tables. The caller holds the
// partition's lock and changes memory only afterwards.
//
// After an error memory has not changed, nothing is left of the change, and the batch is
// released.
func (tx *tx) apply() error {
	if tx.batch.Empty() && len(tx.events) == 0 {
		return nil
	}

	// The events get their numbers here, under the lock, so that their order is
	// that of the changes.
	log := tx.p.eng.events
	first, err := log.putEvents(tx.batch, tx.events)
	if err == nil {
		tx.ticket, err = tx.p.eng.store.apply(tx.batch)
	}
	if err != nil {
		log.abandon(first)
		return tx.abort(err)
	}

	// From here on nothing can fail: the caller makes the change of memory.
	tx.p.eng.store.reuse(tx.batch)
	tx.batch = nil
	tx.p.newestRecord.Store(tx.ticket.Number)
	log.applied(first, tx.ticket.Number)
	tx.p.announcementsApplied(tx)
	tx.p.countEvents(tx.events)
	return nil
}

// wait returns once the change is durable. It is called without any lock. The
// answer of a command that changed nothing rests on the changes of others, so wait
// then waits for the newest of the partition.
func (tx *tx) wait() error {
	if tx.ticket.Number != 0 {
		return tx.p.eng.store.wait(tx.ticket)
	}
	return tx.p.eng.store.waitFor(tx.p.newestRecord.Load())
}

// waitAll waits for all transactions, also after an error.
func waitAll(txs []*tx, err error) error {
	for _, tx := range txs {
		err = errors.Join(err, tx.wait())
	}
	return err
}

// abort releases the batch of a transaction that is not applied, and returns the
// error. It may be called again.
func (tx *tx) abort(err error) error {
	if tx.batch != nil {
		_ = tx.batch.Close() // never applied: there is nothing to lose
		tx.batch = nil
	}
	return err
}

// appendEvent appends an event for the audience that may see its user.
func (tx *tx) appendEvent(typ rollcall.EventType, at int64, user string, e rollcall.Event) {
	e.Type, e.At, e.User = typ, enginekit.TimeOf(at), user
	out := event{Event: e}
	if !tx.p.users.invisible.IsEmpty() {
		if n, ok := tx.p.find(user); ok && tx.p.users.invisible.Contains(n) {
			out.audience = enginekit.ForAdmin
		}
	}
	tx.events = append(tx.events, out)
}
