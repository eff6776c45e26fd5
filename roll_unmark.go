package rollcall

import (
	"cmp"
	"context"
)

// unmark takes marks back and counts each once. Marks of today are in the engine only, so
// they need no archive. If older ones are asked for too, all are given to the engine in one
// call: a crash leaves no half of what was asked.
func (r *Roll) unmark(ctx context.Context, marks []Mark) (n int, err error) {
	if !r.archive.Configured() || len(marks) == 0 {
		return r.unmarkHere(ctx, marks)
	}
	fresh, old := r.splitToday(ctx, marks)
	if len(old) == 0 {
		return r.unmarkHere(ctx, fresh)
	}
	return r.unmarkOld(ctx, marks, fresh)
}

// unmarkHere takes marks back in the engine alone.
func (r *Roll) unmarkHere(ctx context.Context, marks []Mark) (n int, err error) {
	if len(marks) == 0 {
		return 0, nil
	}
	taken, err := r.engine.Unmark(ctx, r.clock.Now(), marks)
	for _, was := range taken {
		if was {
			n++
		}
	}
	return n, err
}

// splitToday separates marks of today from the others. No run offloads a day before it
// is over, unless a clock was ahead: then all marks count as old.
func (r *Roll) splitToday(ctx context.Context, marks []Mark) (fresh, old []Mark) {
	today := r.Today()
	for _, m := range marks {
		if m.Day == today {
			fresh = append(fresh, m)
		} else {
			old = append(old, m)
		}
	}
	if len(fresh) > 0 && r.archive.OffloadedDates(ctx)[today] {
		return nil, marks
	}
	return fresh, old
}

// unmarkOld takes marks back in the engine and in the archive, and counts each once,
// wherever it was found. If the archive does not answer, it takes back only the fresh
// ones, those of today.
func (r *Roll) unmarkOld(ctx context.Context, marks, fresh []Mark) (n int, err error) {
	now := r.clock.Now()
	taken := make(map[Mark]bool)
	count := func(some []bool, err error) (any bool, _ error) {
		for i, was := range some {
			if any = any || was; was && !taken[marks[i]] {
				taken[marks[i]] = true
				n++
			}
		}
		return any, err
	}
	if marks, err = r.distinctWithKinds(ctx, marks); err != nil {
		return 0, err
	}
	archived := func() (any bool, err error) { return count(r.archive.Unmark(ctx, marks)) }

	// The archive comes before the engine, so that nothing that was to go is restored,
	// and after it, so that nothing that went is copied.
	if _, err := archived(); err != nil {
		n, failed := r.unmarkHere(ctx, fresh)
		return n, cmp.Or(failed, err)
	}
	if _, err := count(r.engine.Unmark(ctx, now, marks)); err != nil {
		return n, err
	}
	late, err := archived()
	if err != nil || !late {
		return n, err
	}

	// The second time found some: they were being copied. The engine may have restored
	// them since.
	_, err = count(r.engine.Unmark(ctx, now, marks))
	return n, err
}
