package httpapi

import (
	"context"
	"fmt"

	"github.com/rollcall/rollcall"
)

type mark struct {
	User string  `json:"user"`
	Kind string  `json:"kind,omitempty" doc:"the user's own unless said"`
	Day  day     `json:"day,omitempty" doc:"the day; today unless day or at says otherwise"`
	At   instant `json:"at,omitempty" doc:"an instant, for the civil day it lies in"`
}

type marksInput struct {
	Import bool `query:"import" doc:"takes days of any age; needs the role admin"`
	Body   struct {
		Marks []mark `json:"marks" nullable:"false" maxItems:"10000"`
	} `nameHint:"MarksRequest"`
}

// marked says how many marks were new and how many stood already.
type marked struct {
	Marked  int `json:"marked"`
	Already int `json:"already"`
}

// unmarked says how many marks were taken back.
type unmarked struct {
	Unmarked int `json:"unmarked"`
}

func (s *Server) registerMarks() {
	register(s, op("POST /v1/attendance/marks", "mark", "Attendance", "Say that users were there on days; a mark that stands stays as it is"), s.mark)
	register(s, op("DELETE /v1/attendance/marks", "unmark", "Attendance", "Take marks back"), s.unmark)
}

// marksOf reads the marks, and checks that the caller may give them.
func (s *Server) marksOf(ctx context.Context, in *marksInput) ([]rollcall.Mark, error) {
	if in.Import {
		if err := callerOf(ctx).need(rollcall.RoleAdmin, "import=1"); err != nil {
			return nil, err
		}
	}
	out := make([]rollcall.Mark, len(in.Body.Marks))
	for i, m := range in.Body.Marks {
		d, err := s.markDay(m, i)
		if err != nil {
			return nil, err
		}
		out[i] = rollcall.Mark{User: m.User, Kind: m.Kind, Day: d}
	}
	return out, nil
}

func (s *Server) markDay(m mark, i int) (rollcall.Day, error) {
	switch {
	case m.Day != "" && m.At != "":
		return 0, rollcall.Invalid(at("marks", i, "at"), "cannot be combined with day")
	case m.Day != "":
		return m.Day.parse(at("marks", i, "day"))
	case m.At != "":
		t, err := m.At.parse(at("marks", i, "at"))
		return s.roll.DayAt(t), err
	default:
		return s.roll.Today(), nil
	}
}

// at names a field of a list's element.
func at(list string, i int, field string) string { return fmt.Sprintf("%s[%d].%s", list, i, field) }

func (s *Server) mark(ctx context.Context, in *marksInput) (marked, error) {
	marks, err := s.marksOf(ctx, in)
	if err != nil {
		return marked{}, err
	}
	add := s.view(ctx).Mark
	if in.Import {
		add = s.view(ctx).ImportMarks
	}
	fresh, already, err := add(ctx, marks...)
	return marked{Marked: fresh, Already: already}, err
}

func (s *Server) unmark(ctx context.Context, in *marksInput) (unmarked, error) {
	marks, err := s.marksOf(ctx, in)
	if err != nil {
		return unmarked{}, err
	}
	n, err := s.view(ctx).Unmark(ctx, in.Import, marks...)
	return unmarked{n}, err
}
