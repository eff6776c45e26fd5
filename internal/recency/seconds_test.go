package recency

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rollcall/rollcall/internal/testbudget"
)

func TestSecondsModel(t *testing.T) {
	testbudget.Check(t, testbudget.Quick(), func(t *rapid.T) {
		var counts Seconds
		var tally Tally
		want := map[uint32]int64{}
		edge := rapid.Custom(func(t *rapid.T) uint32 {
			base := rapid.SampledFrom([]uint32{0, 1 << 12, 1 << 22, epoch, 1<<32 - 5000}).Draw(t, "base")
			return base + rapid.Uint32Range(0, 3*blockLen).Draw(t, "offset") // past the end: from 0 again
		})
		sec := rapid.OneOf(edge, rapid.Uint32())
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) {
				from, to := sec.Draw(t, "from"), sec.Draw(t, "to")
				require.Equal(t, sum(want, from, to), counts.Sum(from, to))
				require.Equal(t, sum(want, from, from|(blockLen-1)), counts.Sum(from, from|(blockLen-1)))
				require.Equal(t, sum(want, 0, 1<<32-1), counts.Sum(0, 1<<32-1))
			},
			"add": func(t *rapid.T) {
				at, delta := sec.Draw(t, "sec"), rapid.Int64Range(-3, 1000).Draw(t, "delta")
				counts.Add(at, delta)
				want[at] += delta
			},
			"take back": func(t *rapid.T) {
				for at, n := range want {
					counts.Add(at, -n)
					delete(want, at)
				}
			},
			"batch": func(t *rapid.T) {
				for _, at := range rapid.SliceOfN(edge, 0, 300).Draw(t, "seconds") {
					tally.Add(at, 1)
					tally.Add(at+7, -1)
					want[at]++
					want[at+7]--
				}
				tally.Flush(&counts)
			},
			"trim": func(t *rapid.T) { counts.Trim(sec.Draw(t, "before")) },
		})
	})
}

// sum adds up a model. Second 0 is never, and not counted.
func sum(want map[uint32]int64, from, to uint32) int64 {
	var total int64
	for sec, n := range want {
		if sec != 0 && from <= sec && sec <= to {
			total += n
		}
	}
	return total
}

func TestTrimFreesOnlyWhatCountsNothing(t *testing.T) {
	var counts Seconds
	counts.Add(epoch, 1)
	counts.Add(epoch+blockLen, 1)
	counts.Add(epoch+2*blockLen, 1)
	counts.Add(epoch+2*blockLen, -1)
	held := counts.Bytes()

	counts.Trim(1<<32 - 1)
	require.Equal(t, held-4*blockLen, counts.Bytes(), "one block was empty")
	counts.Add(epoch, -1)
	counts.Add(epoch+blockLen, -1)
	counts.Trim(epoch / blockLen * blockLen)
	require.Equal(t, held-4*blockLen, counts.Bytes(), "none lies before")
	counts.Trim(epoch/blockLen*blockLen + blockLen)
	require.Equal(t, held-8*blockLen, counts.Bytes())

	// Opposite counts in one block add up to nothing and must stay.
	counts.Add(epoch+blockLen, 2)
	counts.Add(epoch+blockLen+1, -2)
	counts.Trim(1<<32 - 1)
	require.EqualValues(t, 2, counts.Sum(epoch, epoch+blockLen))
}

func TestTrimLeavesABlockToItsWriters(t *testing.T) {
	var counts Seconds
	p := counts.span(epoch / blockLen)
	b := counts.enter(p)
	counts.Trim(1<<32 - 1)
	require.Same(t, b, p.block.Load(), "a writer is in")
	p.writers.Add(-1)
	counts.Trim(1<<32 - 1)
	require.Nil(t, p.block.Load())
}

// Numbers move from second to second while others read and trim: whatever the
// interleaving, each is counted once in the end.
func TestSecondsConcurrently(t *testing.T) {
	const movers, moves, steps = 4, 100_000, 7
	var counts Seconds
	stop := make(chan struct{})
	var background, moving sync.WaitGroup
	for range 2 {
		background.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					counts.Trim(epoch + steps*blockLen + blockLen)
					counts.Sum(epoch-100, epoch+steps*blockLen)
					counts.Bytes()
				}
			}
		})
	}
	end := make([]uint32, movers)
	for m := range movers {
		moving.Go(func() {
			var tally Tally
			at := uint32(epoch + m)
			tally.Add(at, 1)
			tally.Flush(&counts)
			for i := range moves {
				next := uint32(epoch + m + i*i%steps*blockLen) // blocks empty and fill again
				tally.Add(at, -1)
				tally.Add(next, 1)
				tally.Flush(&counts)
				at = next
			}
			end[m] = at
		})
	}
	moving.Wait()
	close(stop)
	background.Wait()

	want := map[uint32]int64{}
	for _, at := range end {
		want[at]++
	}
	require.EqualValues(t, movers, counts.Sum(0, 1<<32-1))
	for m := range uint32(movers) {
		for step := range uint32(steps) {
			at := epoch + m + step*blockLen
			require.Equal(t, want[at], counts.Sum(at, at), "second %d", at)
		}
	}
}
