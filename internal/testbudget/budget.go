// Package testbudget bounds the random and repeated work of tests by time. Such
// work is never done: more rounds find more. A budget says how many rounds there
// must be, however slow the machine is, how many are enough, and the time after
// which a test is content with fewer.
//
// Round n of a test is the same in every run with the same seed. A budget decides
// only how many rounds there are.
package testbudget

import (
	"flag"
	"iter"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Budget is the work of one test.
type Budget struct {
	Least int           // rounds that are done however long they take; one if zero
	Most  int           // rounds that are enough; no bound if zero
	Time  time.Duration // when it has passed, the least will do; a second if zero
}

// variable makes budgets larger, by the factor in it. "./test.sh -long" sets it.
const variable = "ROLLCALL_TEST_LONG"

// Long tells whether long runs were asked for.
func Long() bool { return factor() > 1 }

func factor() int {
	n, err := strconv.Atoi(os.Getenv(variable))
	if err != nil || n < 1 {
		return 1
	}
	return n
}

// normal fills in what a budget leaves out, and makes it larger in a long run.
func (b Budget) normal() Budget {
	if b.Least < 1 {
		b.Least = 1
	}
	if b.Time == 0 {
		b.Time = time.Second
	}
	b.Time *= time.Duration(factor())
	b.Most *= factor()
	return b
}

// more tells whether there is a round after the ones that are done.
func (b Budget) more(done int, took time.Duration) bool {
	switch {
	case done < b.Least:
		return true
	case b.Most > 0 && done >= b.Most:
		return false
	default:
		return took < b.Time
	}
}

// Rounds yields the numbers of the rounds, from 0 on, as many as the budget has.
// If the test fails, its log says in which round; a test that draws from a seed
// makes it of that number, so that the round can be had again.
func Rounds(tb testing.TB, b Budget) iter.Seq[int] {
	b = b.normal()
	return func(yield func(int) bool) {
		began, round := time.Now(), 0
		tb.Cleanup(func() {
			if tb.Failed() {
				tb.Logf("it failed in or after round %d", round)
			}
		})
		for ; b.more(round, time.Since(began)); round++ {
			if !yield(round) {
				return
			}
		}
		tb.Logf("%d rounds in %.1f s", round, time.Since(began).Seconds())
	}
}

// Quick is the budget of a property whose cases are small.
func Quick() Budget { return Budget{Least: 20, Most: 100, Time: 500 * time.Millisecond} }

// Check is [rapid.Check] within a budget; a round is a case. If -rapid.checks asks
// for a number of cases, there are so many, however long they take.
//
// A case that is skipped or fails ends the budget's say: what rapid does then, such
// as looking for a smaller case, needs the whole property.
func Check(t *testing.T, b Budget, property func(*rapid.T)) {
	t.Helper()
	b = b.normal()
	if b.Most == 0 {
		b.Most = 1000 * factor()
	}
	asked, read := ask(t, b.Most)
	defer read()
	if asked {
		rapid.Check(t, property)
		return
	}

	began, done, whole := time.Now(), 0, false
	rapid.Check(t, func(rt *rapid.T) {
		read()
		if !whole && !b.more(done, time.Since(began)) {
			return // of the cases that rapid still counts, none is drawn
		}
		whole = true // unless the case comes to its end
		property(rt)
		whole = rt.Failed()
		done++
	})
	t.Logf("%d of at most %d cases in %.1f s", done, b.Most, time.Since(began).Seconds())
}

// asking is held while the number of cases is in rapid's flag, which all tests of a
// process share: tests that run side by side ask one after the other.
var asking sync.Mutex

// ask puts a number of cases into rapid's flag until read is called, which the first
// case does: rapid has read the flag by then. Asked tells that the command line says
// a number, which then stays.
func ask(t *testing.T, most int) (asked bool, read func()) {
	checks := flag.Lookup("rapid.checks")
	asking.Lock()
	if checks.Value.String() != checks.DefValue {
		asking.Unlock()
		return true, func() {}
	}
	restore := set(t, checks, strconv.Itoa(most))
	return false, sync.OnceFunc(func() {
		restore()
		asking.Unlock()
	})
}

// Seed has [Check] draw the same cases each time, unless -rapid.seed says which to
// draw. The function it returns ends that.
func Seed(t *testing.T, seed uint64) (restore func()) {
	t.Helper()
	f := flag.Lookup("rapid.seed")
	if f.Value.String() != f.DefValue {
		return func() {}
	}
	return set(t, f, strconv.FormatUint(seed, 10))
}

// set sets a flag until restore is called.
func set(t *testing.T, f *flag.Flag, value string) (restore func()) {
	t.Helper()
	before := f.Value.String()
	if err := f.Value.Set(value); err != nil {
		t.Fatalf("set -%s: %v", f.Name, err)
	}
	return func() {
		if err := f.Value.Set(before); err != nil {
			t.Errorf("set -%s: %v", f.Name, err)
		}
	}
}
