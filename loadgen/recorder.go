package loadgen

import (
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/rollcall/rollcall"
)

// sample is one operation that was done.
type sample struct {
	operation int // its place in the mix
	took      time.Duration
	users     int           // of a beat
	code      rollcall.Code // "" if it succeeded
}

// recorder collects samples.
type recorder struct {
	mu      sync.Mutex
	figures []figures // by the place in the mix
}

// figures are those of one operation.
type figures struct {
	latency   *hdrhistogram.Histogram // of those that succeeded, in nanoseconds
	ok, users int64
	errors    map[rollcall.Code]int64
}

const (
	// longest is the latency above which all are alike.
	longest = time.Hour
	// digits is how many digits of a latency are exact.
	digits = 3
)

func newFigures() figures {
	return figures{latency: hdrhistogram.New(1, int64(longest), digits), errors: make(map[rollcall.Code]int64)}
}

func newRecorder(operations int) *recorder {
	r := &recorder{figures: make([]figures, operations)}
	for i := range r.figures {
		r.figures[i] = newFigures()
	}
	return r
}

// record takes samples.
func (r *recorder) record(samples []sample) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range samples {
		f := &r.figures[s.operation]
		if s.code != "" {
			f.errors[s.code]++
			continue
		}
		f.ok++
		f.users += int64(s.users)
		_ = f.latency.RecordValue(int64(min(max(s.took, 1), longest))) // which is in range
	}
}

// add adds the figures of another operation.
func (f *figures) add(other figures) {
	f.ok += other.ok
	f.users += other.users
	f.latency.Merge(other.latency)
	for code, n := range other.errors {
		f.errors[code] += n
	}
}

// failed returns how many failed.
func (f *figures) failed() int64 {
	var n int64
	for _, count := range f.errors {
		n += count
	}
	return n
}
