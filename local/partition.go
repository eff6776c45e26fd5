package local

import (
	"cmp"
	"errors"
	"slices"
	"sync/atomic"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/cockroachdb/pebble/v2"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/column"
	"github.com/rollcall/rollcall/internal/directory"
	"github.com/rollcall/rollcall/internal/enginekit"
	"github.com/rollcall/rollcall/internal/journal"
	"github.com/rollcall/rollcall/internal/recency"
)

// partition holds a share of the users and all that is known about them, by
// number. mu guards everything in it.
type partition struct {
	mu    partitionLock
	eng   *Engine
	index uint8
	clock int64 // latest time seen, ms: time here never moves backwards

	newest atomic.Uint64 // record of the newest change; not guarded

	dir        *directory.Directory
	onDisk     bitset   // numbers whose id is in the store
	fresh      []uint32 // numbers whose id is not
	friendRefs column.Column[uint32]

	presence presence
	told     announcing
	idle     []uint32 // numbers of whom nothing may be known any more
	sessions sessions
	users    userTable
	friends  friendTable
	days     dayTable
}

func newPartition(e *Engine, index uint8) *partition {
	p := &partition{eng: e, index: index, dir: directory.New(rollcall.HashText, rollcall.HashNumber)}
	p.presence.gone, p.presence.forgot = roaring.New(), roaring.New()
	p.sessions.init(p)
	p.users.init()
	p.friends.init()
	p.days.init(p)
	return p
}

// advance moves the partition's time to now and returns the time to work with.
func (p *partition) advance(now int64) int64 {
	p.clock = max(p.clock, now)
	return p.clock
}

// at returns the time a read works with.
func (p *partition) at(now int64) int64 { return max(p.clock, now) }

// find returns the number of a user.
func (p *partition) find(user string) (uint32, bool) {
	return p.dir.Find(rollcall.HashUser(user), user)
}

// number returns the number of a user of any partition that is locked, giving
// them one if need be. The id is put into the batch if the store does not have
// it. If the command fails after all, freeNewNumbers takes it back.
func (u *tx) number(user string) (uint32, error) { return u.numberIn(u.p, user) }

func (u *tx) numberIn(p *partition, user string) (uint32, error) {
	n, added, err := p.dir.Insert(rollcall.HashUser(user), user)
	if err != nil {
		return 0, errFull(err)
	}
	if added {
		p.fresh = append(p.fresh, n)
		u.made = append(u.made, p.ref(n))
	}
	if !p.onDisk.has(n) {
		return n, u.batch.Set(idKey(p.index, n), []byte(user), nil)
	}
	return n, nil
}

// freeNewNumbers frees the numbers that the unit gave to users, as if it had never
// been. It is called instead of applying the unit, with the partitions still
// locked: nobody has seen the numbers.
func (u *tx) freeNewNumbers() {
	for i := len(u.made) - 1; i >= 0; i-- {
		p, n := u.p.eng.parts[u.made[i].part()], u.made[i].number()
		p.dir.Remove(n)
		if last := len(p.fresh) - 1; last >= 0 && p.fresh[last] == n {
			p.fresh = p.fresh[:last]
		}
	}
	u.made = nil
}

// stored notes that the ids of users are in the store now.
func (p *partition) stored(n uint32) { p.onDisk.add(n) }

func errFull(err error) error {
	return &rollcall.Error{Code: rollcall.CodeStorageFull, Detail: "too many users in one partition", Err: err}
}

// ref names a user of this partition anywhere in the engine.
func (p *partition) ref(n uint32) ref { return newRef(p.index, n) }

// needs reports whether anything is known of a number.
func (p *partition) needs(n uint32) bool {
	return p.presence.seen.Last(n) != 0 || p.sessions.ofUser.head.Get(n) != 0 || p.users.has(n) ||
		p.friends.count(n) != 0 || p.friendRefs.Get(n) != 0 || p.days.needs(n) || p.told.holds(n)
}

// freeNumber makes a number another user's to have. Its block has to be written:
// it may hold the id even if it was never flushed itself.
func (p *partition) freeNumber(b *pebble.Batch, n uint32) error {
	p.dir.Remove(n)
	p.onDisk.remove(n)
	p.forgetTold(n)
	return b.Delete(idKey(p.index, n), nil)
}

// mayRelease notes a number of whom the last that is known may have gone: the
// next flush looks. Whoever was seen stays for that alone.
func (p *partition) mayRelease(n uint32) {
	if p.presence.seen.Last(n) == 0 && p.sessions.ofUser.head.Get(n) == 0 {
		p.idle = append(p.idle, n)
	}
}

// releaseStep bounds the numbers that one flush gives back.
const releaseStep = 4096

// releaseIdle gives back the numbers of users of whom nothing is known any more,
// in a batch of its own that nobody waits for.
func (p *partition) releaseIdle() error {
	if len(p.idle) == 0 {
		return nil
	}
	some := slices.Clone(p.idle[:min(len(p.idle), releaseStep)])
	slices.Sort(some)
	b := p.eng.store.newBatch()
	var blocks []uint32
	var err error
	for _, n := range slices.Compact(some) {
		if err == nil && p.dir.Has(n) && !p.needs(n) {
			err = p.freeNumber(b, n)
			blocks = append(blocks, n>>blockShift)
		}
	}
	for _, block := range slices.Compact(blocks) {
		err = cmp.Or(err, p.writeBlock(b, block))
	}
	if err == nil && !b.Empty() {
		err = p.eng.store.queue(b)
	}
	if p.idle = p.idle[len(some):]; len(p.idle) == 0 {
		p.idle = nil
	}
	return errors.Join(err, b.Close())
}

// Numbers are stored in blocks of 256, so that many new users cost few keys.
const (
	blockShift = 8
	blockLen   = 1 << blockShift
)

// writeBlock stores the ids of a block of numbers.
func (p *partition) writeBlock(b *pebble.Batch, block uint32) error {
	w := writer{make([]byte, 0, blockLen*8)}
	var id [rollcall.MaxUserLen]byte
	for n := block << blockShift; n < (block+1)<<blockShift; n++ {
		if p.dir.Has(n) {
			w.bytes(p.dir.AppendID(id[:0], n))
		} else {
			w.uint(0)
		}
	}
	return b.Set(blockKey(p.index, block), w.b, nil)
}

// flushIDs stores the ids of users who came by beats.
func (p *partition) flushIDs(b *pebble.Batch) error {
	last := uint32(1<<32 - 1)
	for _, n := range p.fresh {
		if !p.dir.Has(n) || p.onDisk.has(n) {
			continue
		}
		if block := n >> blockShift; block != last {
			last = block
			if err := p.writeBlock(b, block); err != nil {
				return err
			}
		}
	}
	return nil
}

// flushedIDs is called once the batch of flushIDs has been applied.
func (p *partition) flushedIDs() {
	for _, n := range p.fresh {
		if p.dir.Has(n) {
			p.onDisk.add(n)
		}
	}
	p.fresh = p.fresh[:0]
	if cap(p.fresh) > 1<<16 {
		p.fresh = nil
	}
}

// tx is a command's change of one partition on its way to the disk: a batch,
// and the events that go with it.
type tx struct {
	p      *partition
	batch  *pebble.Batch
	events []event
	ticket journal.Ticket

	// What replayJournal and announceOffline found, see announcing.
	changes []waitingEvent // presence changes among the events
	taken   []uint32       // whose events waited
	overdue []uint32       // sessions past their deadline
	left    []ending       // taken from those who logged out
	place   *recency.Place
	made    []ref // users it gave a number
}

func (p *partition) newTx() *tx {
	return &tx{p: p, batch: p.eng.store.newBatch()}
}

// apply queues the unit. It must be called with the partition locked, before
// memory changes. On error nothing was changed, and the unit is released.
func (u *tx) apply() error {
	if u.batch.Empty() && len(u.events) == 0 {
		return nil
	}
	log := u.p.eng.events
	first, err := log.append(u.batch, u.events)
	if err == nil {
		u.ticket, err = u.p.eng.store.apply(u.batch)
	}
	if err != nil {
		log.drop(first)
		return u.drop(err)
	}
	u.p.eng.store.reuse(u.batch)
	u.batch = nil
	u.p.newest.Store(u.ticket.Number)
	log.applied(first, u.ticket.Number)
	u.p.announcementsApplied(u)
	return nil
}

// wait returns once the unit is durable. It must be called without any lock. A
// unit that changes nothing says that things stand as they do: what made them
// so has to be durable too.
func (u *tx) wait() error {
	if u.ticket.Number != 0 {
		return u.p.eng.store.wait(u.ticket)
	}
	return u.p.eng.store.waitFor(u.p.newest.Load())
}

// waitAll waits for units, whether or not others failed before.
func waitAll(units []*tx, err error) error {
	for _, u := range units {
		err = errors.Join(err, u.wait())
	}
	return err
}

// drop releases a unit that is not to be applied. It may be called again.
func (u *tx) drop(err error) error {
	if u.batch != nil {
		_ = u.batch.Close() // never applied: there is nothing to lose
		u.batch = nil
	}
	return err
}

// event appends an event to the unit, for the eyes that may see its user.
func (u *tx) event(typ rollcall.EventType, at int64, user string, e rollcall.Event) {
	e.Type, e.At, e.User = typ, enginekit.TimeOf(at), user
	out := event{Event: e}
	if !u.p.users.invisible.IsEmpty() {
		if n, ok := u.p.find(user); ok && u.p.users.invisible.Contains(n) {
			out.aud = enginekit.ForAdmin
		}
	}
	u.events = append(u.events, out)
}

// presence is who was seen when.
type presence struct {
	seen   recency.Table
	gone   *roaring.Bitmap
	forgot *roaring.Bitmap // numbers the store is told to know no last-seen time of
	back   []heard         // working memory of recordBeats
	seenLog
}

// seenLog is what flushes know of last-seen times in the store. One that fails puts
// it back as it was.
type seenLog struct {
	again   []uint32        // of those forgotten, heard again since the last flush
	ungone  []uint32        // came back since the last flush
	dropped []uint32        // of those forgotten, whose note goes with the flush at hand
	flushed uint32          // seconds before this one are in the store
	written int             // entries in beat records
	roll    roll            // of last-seen times
	young   *roaring.Bitmap // while one is under way: forgotten since it began
}

// forgotten notes that the store has been told that a last-seen time is void.
func (pr *presence) forgotten(n uint32) {
	pr.forgot.Add(n)
	if pr.roll.stage != rollNone {
		pr.young.Add(n)
	}
}

// flushedSeen is called once a batch of flushBeats has been applied.
func (pr *presence) flushedSeen() {
	for _, n := range pr.dropped {
		pr.forgot.Remove(n)
	}
	pr.dropped = nil
}
