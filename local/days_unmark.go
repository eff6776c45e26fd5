package local

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/enginekit"
)

// Unmark implements [rollcall.Attendance]. Who loses the mark of their first day
// gets another first day, for which the archive is asked if they have marks
// there.
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
	var units []*tx
	for i, some := range e.markBatches(marks) {
		if len(some.marks) == 0 {
			continue
		}
		var u *tx
		var was []*rollcall.Mark
		if u, was, err = e.parts[i].unmarkAll(ctx, now, some); err != nil {
			break
		}
		for _, m := range was {
			taken[places[m]] = true
		}
		units = append(units, u)
	}
	err = waitAll(units, err)
	return taken, err
}

// archived are the departed days of users of a kind by the archive, and how things
// stood before it was asked.
type archived struct {
	days map[userKind][]int32
	asOf uint64
}

type userKind struct {
	user string
	kind uint8
}

// unmarkAll takes marks back, having asked the archive for whatever is needed.
func (p *partition) unmarkAll(ctx context.Context, now int64, s markBatch) (*tx, []*rollcall.Mark, error) {
	var known archived
	for {
		u, was, need, err := p.unmark(now, s, &known)
		if err != nil || len(need) == 0 {
			return u, was, err
		}
		for _, who := range need {
			if known.days[who], err = p.eng.archivedDays(ctx, who); err != nil {
				return nil, nil, err
			}
		}
	}
}

// archivedDays asks the archive for the departed days of a user of a kind.
func (e *Engine) archivedDays(ctx context.Context, who userKind) ([]int32, error) {
	days, err := e.offloadedIn(ctx, []uint8{who.kind}, int32(enginekit.FirstMonth.Day(1)), int32(enginekit.LastMonth.Day(31)))
	if err != nil || len(days) == 0 {
		return []int32{}, err
	}
	rows, err := e.settings.Archive.User(ctx, who.user, e.kinds.all()[who.kind], enginekit.FirstMonth, enginekit.LastMonth)
	if err != nil {
		return nil, enginekit.ArchiveUnavailable(ctx, err)
	}
	out := []int32{}
	for _, row := range rows {
		for _, day := range row.Month.Days(row.Days) {
			if _, left := slices.BinarySearchFunc(days, dayID{who.kind, int32(day)}, compareDays); left {
				out = append(out, int32(day))
			}
		}
	}
	return out, nil
}

// unmark takes marks back and returns those that were there, unless the archive
// has to be asked first: then it says for whom. What is known is forgotten if days or marks have left since.
func (p *partition) unmark(now int64, s markBatch, known *archived) (*tx, []*rollcall.Mark, []userKind, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.advance(now)
	if asOf := p.eng.offloaded.moves.Load() + p.eng.offloaded.list.Version(); known.days == nil || asOf != known.asOf {
		*known = archived{make(map[userKind][]int32), asOf}
	}
	u := p.newTx()
	numbers, _, err := p.numbers(u.batch, s, false, nil)
	if err != nil {
		return nil, nil, nil, u.drop(err)
	}
	by := make(map[packedMark]*rollcall.Mark, len(numbers)) // the first that says so
	asked, err := p.markSteps(s, numbers, func(kind string) (uint8, bool, error) {
		i, known := p.eng.kinds.lookup(kind)
		return i, known, nil
	}, func(i int, step packedMark) {
		if by[step] == nil {
			by[step] = s.marks[i]
		}
	})
	if err != nil {
		return nil, nil, nil, u.drop(err)
	}
	moves, need := p.recomputeFirstDay(asked, known.days)
	if len(need) > 0 {
		return nil, nil, need, u.drop(nil)
	}
	steps, err := p.days.putAll(u.batch, slices.Clone(asked), unmarking)
	if err == nil {
		err = p.days.putFirsts(u.batch, moves)
	}
	if err == nil {
		err = p.unmarkArchived(u, asked)
	}
	if err != nil {
		return nil, nil, nil, u.drop(err)
	}
	if err := u.apply(); err != nil {
		return nil, nil, nil, err
	}
	p.days.change(steps, unmarking)
	p.days.moveFirsts(moves)
	was := make([]*rollcall.Mark, len(steps))
	for i, s := range steps {
		was[i] = by[s]
		p.mayRelease(s.user())
	}
	return u, was, nil, nil
}

// unmarkArchived sees to marks that may be in the archive, of days that departed:
// what was read back of them, and the figures they were part of, count them. The
// figures come last, lest they are made once more of what was read back.
func (p *partition) unmarkArchived(u *tx, asked []packedMark) error {
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
	p.eng.offloaded.list.Outdate()
	p.eng.forgetMonths(stale)
	for _, id := range slices.Compact(days) {
		if err := p.eng.figureCache.invalidate(u.batch, id); err != nil {
			return err
		}
	}
	return nil
}

// recomputeFirstDay finds the first days that change when marks are taken back, or of whom
// the archive has to be asked for that.
func (p *partition) recomputeFirstDay(asked []packedMark, known map[userKind][]int32) (moves []firstMove, need []userKind) {
	t := &p.days
	type numberKind struct {
		n    uint32
		kind uint8
	}
	gone := make(map[numberKind][]int32) // of those whose first day is among them
	for _, s := range asked {
		k := numberKind{s.user(), s.set().kind}
		if first, ok := t.firstOf(k.kind, k.n); ok && (first == s.set().day || gone[k] != nil) {
			gone[k] = append(gone[k], s.set().day) // steps come in order: the first day is the first of them
		}
	}
	for k, days := range gone {
		var others []int32
		if t.hasArchived.Contains(k.n) {
			who := userKind{p.dir.ID(k.n), k.kind}
			var asked bool
			if others, asked = known[who]; !asked {
				need = append(need, who)
				continue
			}
		}
		m := firstMove{kind: k.kind, n: k.n, from: days[0], had: true}
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
	slices.SortFunc(moves, func(a, b firstMove) int { return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.n, b.n)) })
	return moves, need
}
