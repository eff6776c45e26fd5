package enginetest

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"math/bits"
	"slices"
	"strings"
	"sync"

	"github.com/rollcall/rollcall"
)

// memoryArchive is an archive in memory, in the plainest form.
type memoryArchive struct {
	mu        sync.Mutex
	rows      map[rollcall.MonthMap]uint32 // by a map without its days
	offloaded map[rollcall.Mark]rollcall.OffloadedDay
	away      bool
	asked     int    // how often a question came, answered or not
	between   func() // called once, when a user's maps have been found and not told yet
	taken     func() // called once, when marks have been taken back
}

var _ rollcall.Archive = (*memoryArchive)(nil)

func newMemoryArchive() *memoryArchive {
	return &memoryArchive{rows: make(map[rollcall.MonthMap]uint32), offloaded: make(map[rollcall.Mark]rollcall.OffloadedDay)}
}

var errAway = errors.New("the archive is away")

// ask begins a question. The caller unlocks.
func (s *memoryArchive) ask() error {
	s.mu.Lock()
	s.asked++
	if s.away {
		return errAway
	}
	return nil
}

func (s *memoryArchive) goAway(away bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.away = away
}

func (s *memoryArchive) questions() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked
}

// OffloadedDays implements [rollcall.Archive].
func (s *memoryArchive) OffloadedDays(context.Context) ([]rollcall.OffloadedDay, error) {
	defer s.mu.Unlock()
	if err := s.ask(); err != nil {
		return nil, err
	}
	return slices.SortedFunc(maps.Values(s.offloaded), func(a, b rollcall.OffloadedDay) int {
		return cmp.Or(strings.Compare(a.Kind, b.Kind), cmp.Compare(a.Day, b.Day))
	}), nil
}

// Each implements [rollcall.Archive].
func (s *memoryArchive) Each(_ context.Context, kind string, m rollcall.Month, visit func(rollcall.MonthMap) error) error {
	found, err := s.find(func(r rollcall.MonthMap) bool { return r.Kind == kind && r.Month == m })
	for _, r := range found {
		if err := visit(r); err != nil {
			return err
		}
	}
	return err
}

// User implements [rollcall.Archive].
func (s *memoryArchive) User(_ context.Context, user, kind string, from, to rollcall.Month) ([]rollcall.MonthMap, error) {
	found, err := s.find(func(r rollcall.MonthMap) bool {
		return r.User == user && (kind == "" || r.Kind == kind) && from <= r.Month && r.Month <= to
	})
	s.mu.Lock()
	between := s.between
	s.between = nil
	s.mu.Unlock()
	if between != nil {
		between()
	}
	return found, err
}

func (s *memoryArchive) find(keep func(rollcall.MonthMap) bool) (found []rollcall.MonthMap, err error) {
	defer s.mu.Unlock()
	if err := s.ask(); err != nil {
		return nil, err
	}
	for r, days := range s.rows {
		if keep(r) {
			r.Days = days
			found = append(found, r)
		}
	}
	slices.SortFunc(found, func(a, b rollcall.MonthMap) int {
		return cmp.Or(strings.Compare(a.Kind, b.Kind), cmp.Compare(a.Month, b.Month), strings.Compare(a.User, b.User))
	})
	return found, nil
}

// Marked implements [rollcall.Archive].
func (s *memoryArchive) Marked(_ context.Context, marks []rollcall.Mark) ([]bool, error) {
	defer s.mu.Unlock()
	if err := s.ask(); err != nil {
		return nil, err
	}
	stand := make([]bool, len(marks))
	for i, m := range marks {
		r := rollcall.MonthMap{User: m.User, Kind: m.Kind, Month: rollcall.MonthOf(m.Day)}
		stand[i] = s.left(m.Kind, m.Day) && s.rows[r]&rollcall.Bit(m.Day) != 0
	}
	return stand, nil
}

// Unmark implements [rollcall.Archive].
func (s *memoryArchive) Unmark(_ context.Context, marks []rollcall.Mark) ([]bool, error) {
	defer func() {
		then := s.taken
		s.taken = nil
		s.mu.Unlock()
		if then != nil {
			then()
		}
	}()
	if err := s.ask(); err != nil {
		return nil, err
	}
	taken := make([]bool, len(marks))
	for i, m := range marks {
		r := rollcall.MonthMap{User: m.User, Kind: m.Kind, Month: rollcall.MonthOf(m.Day)}
		if s.left(m.Kind, m.Day) && s.rows[r]&rollcall.Bit(m.Day) != 0 {
			s.put(r, s.rows[r]&^rollcall.Bit(m.Day))
			taken[i] = true
		}
	}
	return taken, nil
}

// EraseUser implements [rollcall.Archive].
func (s *memoryArchive) EraseUser(_ context.Context, user string) error {
	defer s.mu.Unlock()
	if err := s.ask(); err != nil {
		return err
	}
	maps.DeleteFunc(s.rows, func(r rollcall.MonthMap, _ uint32) bool { return r.User == user })
	return nil
}

func (s *memoryArchive) left(kind string, day rollcall.Day) bool {
	_, left := s.offloaded[rollcall.Mark{Kind: kind, Day: day}]
	return left
}

func (s *memoryArchive) put(r rollcall.MonthMap, days uint32) {
	if r.Days = 0; days == 0 {
		delete(s.rows, r)
	} else {
		s.rows[r] = days
	}
}

// copy takes maps in: of days that are not offloaded as they are, of others what
// is added.
func (s *memoryArchive) copy(some []rollcall.MonthMap) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range some {
		key, hot := m, uint32(0)
		key.Days = 0
		for _, d := range m.Month.Days(m.Month.Mask()) {
			if !s.left(m.Kind, d) {
				hot |= rollcall.Bit(d)
			}
		}
		s.put(key, s.rows[key]&^hot|m.Days)
	}
}

// note says of a day whether it has left.
func (s *memoryArchive) note(kind string, day rollcall.Day, left bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := rollcall.Mark{Kind: kind, Day: day}
	if !left {
		delete(s.offloaded, key)
		return
	}
	users := 0
	for r, days := range s.rows {
		if r.Kind == kind && r.Month == rollcall.MonthOf(day) {
			users += bits.OnesCount32(days & rollcall.Bit(day))
		}
	}
	s.offloaded[key] = rollcall.OffloadedDay{Kind: kind, Day: day, Users: users, At: start(), Run: 1}
}

// listed returns the maps of offloaded days.
func (s *memoryArchive) listed() (found []rollcall.MonthMap) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for r, days := range s.rows {
		for _, d := range r.Month.Days(days) {
			if s.left(r.Kind, d) {
				r.Days |= rollcall.Bit(d)
			}
		}
		if r.Days != 0 {
			found = append(found, r)
		}
	}
	return found
}
