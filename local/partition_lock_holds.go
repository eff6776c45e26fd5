//go:build holds && linux

package local

import (
	"cmp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
	"unsafe"
)

// partitionLock guards a partition and measures how long it is held for writing. It does so
// in processor time of the holder's thread, which other work on the machine does not
// stretch.
type partitionLock struct {
	sync.RWMutex
	by    string
	began time.Duration
}

// Hold is the longest hold of a partition's lock by one function, in processor time.
type Hold struct {
	By      string
	Longest time.Duration
	Times   int
}

var holds = struct { //nolint:gochecknoglobals // a build to measure with
	sync.Mutex
	by map[string]Hold
}{by: make(map[string]Hold)}

// TakeHolds returns the longest holds since the last call, the longest first.
func TakeHolds() []Hold {
	holds.Lock()
	defer holds.Unlock()
	var out []Hold
	for _, h := range holds.by {
		out = append(out, h)
	}
	clear(holds.by)
	slices.SortFunc(out, func(a, b Hold) int { return cmp.Compare(b.Longest, a.Longest) })
	return out
}

func (l *partitionLock) Lock() {
	l.RWMutex.Lock()
	var pc [1]uintptr
	runtime.Callers(2, pc[:])
	f, _ := runtime.CallersFrames(pc[:]).Next()
	l.by = f.Function[strings.LastIndex(f.Function, "local.")+len("local."):]
	runtime.LockOSThread()
	l.began = threadTime()
}

func (l *partitionLock) Unlock() {
	by, d := l.by, threadTime()-l.began
	runtime.UnlockOSThread()
	l.RWMutex.Unlock()
	holds.Lock()
	defer holds.Unlock()
	h := holds.by[by]
	holds.by[by] = Hold{By: by, Longest: max(h.Longest, d), Times: h.Times + 1}
}

// threadTime is the processor time that this thread has taken.
func threadTime() time.Duration {
	const clockThread = 3 // CLOCK_THREAD_CPUTIME_ID
	var t syscall.Timespec
	_, _, _ = syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clockThread, uintptr(unsafe.Pointer(&t)), 0)
	return time.Duration(t.Nano())
}
