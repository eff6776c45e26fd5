package dayset_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/rollcall/rollcall/internal/dayset"
)

// BenchmarkSeries makes the figures of one day and of a year of days, of a
// partition in which 3 of 10 numbers come on a day.
func BenchmarkSeries(b *testing.B) {
	for _, numbers := range []int{1_500, 15_000, 150_000} {
		rng := rand.New(rand.NewPCG(1, 2))
		days := make(map[int32]*roaring.Bitmap)
		for day := range int32(400) {
			set := roaring.New()
			for n := range numbers {
				if rng.IntN(10) < 3 {
					set.Add(uint32(n))
				}
			}
			days[day] = set
		}
		for _, from := range []int32{399, 35} {
			b.Run(fmt.Sprintf("numbers=%d/days=%d", numbers, 400-from), func(b *testing.B) {
				for range b.N {
					dayset.Series(nil, &partition{days: days}, from, 399, dayset.MAU28)
				}
			})
		}
	}
}
