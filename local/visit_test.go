package local

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/axiomhq/hyperloglog"
	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
)

// numbers are visitors or users by their numbers, from included, to not.
func numbers(from, to int) []string {
	var out []string
	for i := from; i < to; i++ {
		out = append(out, fmt.Sprint(i))
	}
	return out
}

func noVisitors() []byte {
	b, _ := encodeSketch(hyperloglog.New14())
	return b
}

func otherPrecision() []byte {
	b, _ := encodeSketch(hyperloglog.New16())
	return b
}

func (r *rig) visit(name string, visitors ...string) {
	r.NoError(r.roll.Visit(r.ctx, name, visitors...))
}

// byHour returns how many visitors the hours had before and up to the one it is.
func (r *rig) byHour(name string, hours int) []int {
	_, to := r.roll.HourAt(r.clock.Now())
	f, err := r.roll.Visitors(r.ctx, rollcall.VisitQuery{
		Name: name, From: to.Add(-time.Duration(hours) * time.Hour), To: to, By: rollcall.VisitsByHour,
	})
	r.NoError(err)
	var out []int
	for _, item := range f.Items {
		out = append(out, item.Visitors)
	}
	return out
}

func TestVisitsOfAnEarlierTimeCountInTheLatestHour(t *testing.T) {
	r := newRig(t, 0)
	r.visit("", "a", "b")
	earlier := r.clock.Now().Add(-2 * time.Hour)
	r.NoError(visitAt(r.ctx, r.eng, earlier, "", []string{"c"}))
	r.NoError(visitAt(r.ctx, r.eng, earlier, "another", []string{"c"}))
	r.Equal([]int{0, 0, 3}, r.byHour("", 3))
	r.Equal([]int{0, 0, 1}, r.byHour("another", 3))
	r.restart()
	r.NoError(visitAt(r.ctx, r.eng, earlier, "", []string{"d"}))
	r.NoError(visitAt(r.ctx, r.eng, earlier, "a third", []string{"d"}))
	r.Equal([]int{0, 0, 4}, r.byHour("", 3))
	r.Equal([]int{0, 0, 1}, r.byHour("a third", 3))
}

func TestOnlySketchesOfTheHourAreInMemory(t *testing.T) {
	r := newRig(t, 0)
	for hour := range 50 {
		for name := range 4 {
			r.visit(fmt.Sprint(name), numbers(hour, hour+20)...)
		}
		_, bytes := r.eng.visits.memory()
		r.LessOrEqual(bytes, 4*(sketchLen+1))
		r.clock.Advance(time.Hour)
	}
	r.NoError(r.roll.Tick(r.ctx))
	names, bytes := r.eng.visits.memory()
	r.Equal([]int{4, 4}, []int{names, bytes}, "nobody has come in this hour")
	for name := range 4 {
		got := r.byHour(fmt.Sprint(name), 51)
		r.Equal(0, got[50])
		for _, n := range got[:50] {
			r.Equal(20, n)
		}
	}
}

func TestVisitorsNotedAgainAreNotWrittenAgain(t *testing.T) {
	r := newRig(t, 0)
	hour, _ := r.roll.HourAt(r.clock.Now())
	k := visitKey("", hour.Unix())
	for _, n := range []int{10, 50_000} { // sparse and dense
		some := numbers(0, n)
		for len(some) > 0 {
			now := min(len(some), rollcall.MaxVisitors)
			r.visit("", some[:now]...)
			some = some[now:]
		}
		r.NoError(r.eng.Flush(r.ctx))
		b := r.eng.store.newBatch()
		r.NoError(b.Delete(k, nil))
		r.NoError(r.eng.store.queue(b))
		r.visit("", numbers(0, 10)...)
		r.NoError(r.eng.Flush(r.ctx))
		_, stored, err := r.eng.store.get(k)
		r.NoError(err)
		r.False(stored)
		r.visit("", fmt.Sprint("new", n))
		r.visit("", numbers(2*n, 2*n+9000)...)
		r.NoError(r.eng.Flush(r.ctx))
		_, stored, err = r.eng.store.get(k)
		r.NoError(err)
		r.True(stored)
	}
}

func TestADamagedHourIsAnErrorAndNotAFigure(t *testing.T) {
	r := newRig(t, 0)
	r.visit("", "a")
	r.NoError(r.eng.Flush(r.ctx))
	hour, end := r.roll.HourAt(r.clock.Now())
	r.NoError(r.eng.store.put(visitKey("", hour.Unix()), []byte("nonsense")))
	require.NoError(t, r.eng.Close())
	r.open()
	err := r.roll.Visit(r.ctx, "", "b")
	r.Equal(rollcall.CodeInternal, rollcall.CodeOf(err))
	_, err = r.roll.Visitors(r.ctx, rollcall.VisitQuery{From: hour, To: end})
	r.Equal(rollcall.CodeInternal, rollcall.CodeOf(err))
	r.Contains(err.Error(), "rollcall check")
	r.clock.Advance(time.Hour)
	r.visit("", "b")
	r.Equal([]int{1}, r.byHour("", 1))
}

func TestVisitsAreRefusedWhileTheDiskIsFull(t *testing.T) {
	r := newRig(t, 0)
	r.visit("", "a")
	r.Error(r.eng.store.refuse(rollcall.CodeStorageFull, false, "no room", nil))
	r.ErrorIs(r.roll.Visit(r.ctx, "", "b"), rollcall.ErrStorageFull)
	r.ErrorIs(r.roll.Visit(r.ctx, "new", "b"), rollcall.ErrStorageFull)
	r.Equal([]int{1}, r.byHour("", 1))
	r.restart()
	names, err := r.roll.VisitNames(r.ctx)
	r.NoError(err)
	r.Len(names, 1)
	r.Empty(names[0].Name)
}

// TestVisitorsWhileHoursEnd asks while the hour changes: what has been noted is
// in every answer.
func TestVisitorsWhileHoursEnd(t *testing.T) {
	r := newRig(t, 0)
	day := r.roll.DayStart(r.roll.Today())
	noted := make(chan int, 1)
	done := make(chan error, 1)
	go func() {
		defer close(done)
		for n := range 400 {
			at := day.Add(time.Duration(n) * 3 * time.Minute)
			if err := visitAt(r.ctx, r.eng, at, "", []string{fmt.Sprint(n)}); err != nil {
				done <- err
				return
			}
			select { // the latest that is known to be noted
			case <-noted:
			default:
			}
			noted <- n + 1
		}
	}()
	for least := 0; least < 400; {
		select {
		case least = <-noted:
		default:
		}
		f, err := r.eng.Visitors(r.ctx, rollcall.VisitQuery{From: day, To: day.Add(24 * time.Hour), By: rollcall.VisitsByDay})
		r.NoError(err)
		r.GreaterOrEqual(f.Total, least)
	}
	r.NoError(<-done)
}

func visitAt(ctx context.Context, e *Engine, at time.Time, name string, visitors []string) error {
	_, err := e.Visit(ctx, at, name, visitors)
	return err
}
