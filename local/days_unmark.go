package local

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/enginekit"
)

// Unmark implements [rollcall.Attendance]. A user who loses the mark of the first day gets a
// later first day. If the user has archived marks, the archive is asked for it, which must
// not happen under a lock: see unmarkAsking.
func (e *Engine) Unmark(ctx context.Context, at time.Time, marks []rollcall.Mark) ([]bool, error) {
	now, err := e.enterWrite(at)
	taken := make([]bool, len(marks))
	if err != nil {
		return taken, err
	}
	places := make(map[*rollcall.Mark]int, len(marks))
	for i := range marks {
		places[&marks[i]] = i
	}
	var txs []*tx
	for i, some := range e.markBatches(marks) {
		if len(some.marks) == 0 {
			continue
		}
		var tx *tx
		var was []*rollcall.Mark
		if tx, was, err = e.parts[i].unmarkAsking(ctx, now, some); err != nil {
			break
		}
		for _, m := range was {
			taken[places[m]] = true
		}
		txs = append(txs, tx)
	}
	err = waitAll(txs, err)
	return taken, err
}

// archiveAnswer is what the archive says about offloaded days of users, and how things stood before
// it was asked.
type archiveAnswer struct {
	days map[userKind][]int32
	asOf uint64
}

type userKind struct {
	user string
	kind uint8
}

// unmarkAsking removes marks of one partition. If unmark needs to know something of the archive,
// it asks without the lock and tries again.
func (p *partition) unmarkAsking(ctx context.Context, now int64, s markBatch) (*tx, []*rollcall.Mark, error) {
	var known archiveAnswer
	for {
		tx, was, need, err := p.unmark(now, s, &known)
		if err != nil || len(need) == 0 {
			return tx, was, err
		}
		for _, who := range need {
			if known.days[who], err = p.eng.archivedDays(ctx, who); err != nil {
				return nil, nil, err
			}
		}
	}
}

// archivedDays asks the archive on which offloaded days a user of a kind was there.
func (e *Engine) archivedDays(ctx context.Context, who userKind) ([]int32, error) {
	days, err := e.offloadedIn(ctx, []uint8{who.kind}, int32(rollcall.FirstMonth.Day(1)), int32(rollcall.LastMonth.Day(31)))
	if err != nil || len(days) == 0 {
		return []int32{}, err
	}
	offloaded := func(d rollcall.KindDay) bool {
		_, is := slices.BinarySearchFunc(days, dayID{who.kind, int32(d.Day)}, compareDays)
		return is
	}
	found, err := enginekit.ArchivedDays(ctx, e.settings.Archive, who.user, e.kinds.all()[who.kind], offloaded)
	if err != nil {
		return nil, err
	}
	out := make([]int32, len(found))
	for i, d := range found {
		out[i] = int32(d.Day)
	}
	return out, nil
}

// unmark removes marks and returns those that were there. If the archive has to be asked first,
// it changes nothing and returns for whom. It forgets what is known of the archive if days
// have moved since.
func (p *partition) unmark(now int64, s markBatch, known *archiveAnswer) (*tx, []*rollcall.Mark, []userKind, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.advance(now)
	if asOf := p.eng.offloaded.moves.Load() + p.eng.settings.Archive.Version(); known.days == nil || asOf != known.asOf {
		*known = archiveAnswer{make(map[userKind][]int32), asOf}
	}

	// The marks as numbers, and for each the first mark of the command that says so.
	tx := p.newTx()
	numbers, _, err := p.numbers(tx.batch, s, false, nil)
	if err != nil {
		return nil, nil, nil, tx.abort(err)
	}
	by := make(map[packedMark]*rollcall.Mark, len(numbers))
	asked, err := p.packMarks(s, numbers, func(kind string) (uint8, bool, error) {
		i, known := p.eng.kinds.lookup(kind)
		return i, known, nil
	}, func(i int, step packedMark) {
		if by[step] == nil {
			by[step] = s.marks[i]
		}
	})
	if err != nil {
		return nil, nil, nil, tx.abort(err)
	}

	// The first days that change. Without an answer of the archive they are not known.
	moves, need := p.recomputeFirstDay(asked, known.days)
	if len(need) > 0 {
		return nil, nil, need, tx.abort(nil)
	}

	steps, err := p.days.putMarks(tx.batch, slices.Clone(asked), opUnmark)
	if err == nil {
		err = p.days.putFirsts(tx.batch, moves)
	}
	if err == nil {
		err = p.unmarkArchived(tx, asked)
	}
	if err != nil {
		return nil, nil, nil, tx.abort(err)
	}
	if err := tx.apply(); err != nil {
		return nil, nil, nil, err
	}
	p.days.applyMarks(steps, opUnmark)
	p.days.moveFirsts(moves)

	// Who has no mark left may be forgotten.
	was := make([]*rollcall.Mark, len(steps))
	for i, s := range steps {
		was[i] = by[s]
		p.mayRelease(s.user())
	}
	return tx, was, nil, nil
}

// unmarkArchived is for marks of offloaded days: the archive removes those, but what was read back
// and the figures still count them. It makes both stale. The figures come last: they must not
// be counted again from what was read back.
func (p *partition) unmarkArchived(tx *tx, asked []packedMark) error {
	stale := make(map[monthID]bool)
	var days []dayID
	for _, s := range asked {
		if id := s.set(); p.eng.offloaded.has(id) {
			stale[id.month()] = true
			days = append(days, id)
		}
	}
	if len(stale) == 0 {
		return nil
	}
	p.eng.settings.Archive.Outdate()
	p.eng.dropColdMonths(stale)
	for _, id := range slices.Compact(days) {
		if err := p.eng.figureCache.invalidate(tx.batch, id); err != nil {
			return err
		}
	}
	return nil
}

// recomputeFirstDay finds the first days that change when marks are removed, or the users for whom
// the archive has to be asked for that.
func (p *partition) recomputeFirstDay(asked []packedMark, known map[userKind][]int32) (moves []firstDayMove, need []userKind) {
	t := &p.days
	type numberKind struct {
		n    uint32
		kind uint8
	}

	// Of users who lose their first day: all days that they lose. Marks come in the order of
	// days, so the first day is the first of them.
	removed := make(map[numberKind][]int32)
	for _, s := range asked {
		k := numberKind{s.user(), s.set().kind}
		if first, ok := t.firstOf(k.kind, k.n); ok && (first == s.set().day || removed[k] != nil) {
			removed[k] = append(removed[k], s.set().day)
		}
	}
	for k, days := range removed {
		// Days in the archive count too.
		var others []int32
		if t.hasArchived.Contains(k.n) {
			who := userKind{p.dir.ID(k.n), k.kind}
			var asked bool
			if others, asked = known[who]; !asked {
				need = append(need, who)
				continue
			}
		}

		// The earliest of the days that stay, if there is one.
		m := firstDayMove{kind: k.kind, n: k.n, from: days[0], had: true}
		consider := func(day int32) {
			if (!m.has || day < m.to) && !slices.Contains(days, day) {
				m.to, m.has = day, true
			}
		}
		for id, set := range t.sets {
			if id.kind == k.kind && set.Contains(k.n) {
				consider(id.day)
			}
		}
		for _, day := range others {
			consider(day)
		}
		moves = append(moves, m)
	}
	slices.SortFunc(moves, func(a, b firstDayMove) int { return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.n, b.n)) })
	return moves, need
}
