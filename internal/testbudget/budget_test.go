package testbudget_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rollcall/rollcall/internal/testbudget"
)

// rounds returns how many rounds of a duration a budget has.
func rounds(t *testing.T, b testbudget.Budget, each time.Duration) (n int) {
	synctest.Test(t, func(t *testing.T) {
		for round := range testbudget.Rounds(t, b) {
			require.Equal(t, n, round)
			n++
			<-time.After(each)
		}
	})
	return n
}

func TestTheLeastIsDoneHoweverLongItTakes(t *testing.T) {
	t.Setenv("ROLLCALL_TEST_LONG", "")
	require.Equal(t, 7, rounds(t, testbudget.Budget{Least: 7, Most: 20, Time: time.Second}, time.Hour))
	require.Equal(t, 1, rounds(t, testbudget.Budget{}, time.Hour), "a test does something")
}

func TestTheMostIsEnoughHoweverLittleItTakes(t *testing.T) {
	t.Setenv("ROLLCALL_TEST_LONG", "")
	require.Equal(t, 20, rounds(t, testbudget.Budget{Least: 7, Most: 20, Time: time.Second}, 0))
}

func TestTimeEndsARun(t *testing.T) {
	t.Setenv("ROLLCALL_TEST_LONG", "")
	require.Equal(t, 10, rounds(t, testbudget.Budget{Least: 7, Most: 20, Time: time.Second}, 100*time.Millisecond))
	require.Equal(t, 10, rounds(t, testbudget.Budget{}, 100*time.Millisecond), "a budget that says nothing is a second")
}

func TestALongRunHasMoreTimeAndMoreRounds(t *testing.T) {
	t.Setenv("ROLLCALL_TEST_LONG", "3")
	require.True(t, testbudget.Long())
	require.Equal(t, 30, rounds(t, testbudget.Budget{Least: 7, Time: time.Second}, 100*time.Millisecond))
	require.Equal(t, 60, rounds(t, testbudget.Budget{Most: 20, Time: time.Second}, 0))
}

// drawn returns the cases that a budget has.
func drawn(t *testing.T, b testbudget.Budget) (out []int) {
	defer testbudget.Seed(t, 1)()
	testbudget.Check(t, b, func(rt *rapid.T) { out = append(out, rapid.Int().Draw(rt, "n")) })
	return out
}

func TestABudgetDecidesHowManyCasesThereAreAndNotWhich(t *testing.T) {
	t.Setenv("ROLLCALL_TEST_LONG", "")
	all := drawn(t, testbudget.Budget{Least: 50, Most: 50})
	require.Len(t, all, 50)
	require.Equal(t, all[:5], drawn(t, testbudget.Budget{Least: 5, Most: 50, Time: 1}))
	require.Greater(t, len(slices.Compact(all)), 10)
}
