package rollcall

import (
	"cmp"
	"context"
)

// unmark takes marks back and counts each once. Those of today are the engine's alone,
// and do not need the archive. Together with older ones they go in one step, as far as
// the engine has one: a crash leaves no half of what was asked.
func (r *Roll) unmark(ctx context.Context, marks []Mark) (n int, err error) {
	if r.opts.Archive == nil || len(marks) == 0 {
		return r.unmarkHere(ctx, marks)
	}
	fresh, old := r.splitToday(ctx, marks)
	if len(old) == 0 {
		return r.unmarkHere(ctx, fresh)
	}
	return r.unmarkOld(ctx, marks, fresh)
}

// unmarkHere takes marks back that no archive has.
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

// splitToday tells marks of today, which nobody lets go before the day is over, from
// the others. A day may be among those that left if a clock was ahead.
func (r *Roll) splitToday(ctx context.Context, marks []Mark) (fresh, old []Mark) {
	today := r.Today()
	for _, m := range marks {
		if m.Day == today {
			fresh = append(fresh, m)
		} else {
			old = append(old, m)
		}
	}
	if len(fresh) > 0 && r.mayHaveOffloaded(ctx)[today] {
		return nil, marks
	}
	return fresh, old
}

// unmarkOld takes marks back here and in the archive, see [Archive], and counts each
// once, wherever it was found. Without the archive it takes back only those that are
// fresh.
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
	archived := func() (any bool, err error) {
		if any, err = count(r.opts.Archive.Unmark(ctx, marks)); err != nil {
			err = archiveUnavailable(err)
		}
		return any, err
	}

	// Before, so that nothing is read back from the archive that was to go, and
	// after, so that nothing is copied into it that went.
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
	// They were being copied, and the engine may have read them back since.
	_, err = count(r.engine.Unmark(ctx, now, marks))
	return n, err
}
