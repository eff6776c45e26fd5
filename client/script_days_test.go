package client_test

import (
	"context"
	"slices"
	"time"

	"github.com/rollcall/rollcall"
)

func (s *script) marks() step {
	var marks []rollcall.Mark
	for range s.rng.IntN(6) {
		marks = append(marks, rollcall.Mark{User: s.anyUser(), Kind: one(s, "", "staff"), Day: s.today - rollcall.Day(s.rng.IntN(30))})
	}
	old := append(slices.Clone(marks), rollcall.Mark{User: s.user(), Day: s.today - 40})
	switch s.rng.IntN(4) {
	case 0:
		return step{"Mark", func(ctx context.Context, one *side) (any, error) {
			marked, already, err := one.Mark(ctx, marks...)
			return []int{marked, already}, err
		}}
	case 1:
		anyAge := s.rng.IntN(2) == 0
		return step{"Unmark", func(ctx context.Context, one *side) (any, error) { return one.Unmark(ctx, anyAge, old...) }}
	default:
		return step{"ImportMarks", func(ctx context.Context, one *side) (any, error) {
			marked, already, err := one.ImportMarks(ctx, old...)
			return []int{marked, already}, err
		}}
	}
}

func (s *script) figures() step {
	user, kind, d, p := s.anyUser(), one(s, "", "staff", "user", "No Kind"), s.days(), s.page()
	period := one(s, "", rollcall.PeriodDay, rollcall.PeriodMonth, "century")
	switch s.rng.IntN(7) {
	case 0:
		return step{"Attended", func(ctx context.Context, one *side) (any, error) { return one.Attended(ctx, user, kind, d) }}
	case 1:
		q := rollcall.ActiveQuery{Range: d, Kind: kind, Match: one(s, "", rollcall.MatchEvery, "some"), Page: p}
		return step{"Active", func(ctx context.Context, one *side) (any, error) {
			found, err := one.Active(ctx, q)
			return paged(one, found, err)
		}}
	case 2:
		q := rollcall.SeriesQuery{Range: d, Kind: kind, MAU: one(s, "", rollcall.MAUMonth, "7")}
		return step{"Series", func(ctx context.Context, one *side) (any, error) { return one.Series(ctx, q) }}
	case 3:
		q := rollcall.RetentionQuery{Range: d, Kind: kind, Period: period, Cohort: one(s, "", rollcall.CohortRecurring, "x"), Measure: one(s, "", rollcall.MeasureOnOrAfter, "x")}
		return step{"Retention", func(ctx context.Context, one *side) (any, error) {
			r, err := one.Retention(ctx, q)
			return shares(r), err
		}}
	case 4:
		return step{"Lifecycle", func(ctx context.Context, one *side) (any, error) {
			return one.Lifecycle(ctx, rollcall.LifecycleQuery{Range: d, Kind: kind, Period: period})
		}}
	case 5:
		return step{"ActiveDays", func(ctx context.Context, one *side) (any, error) { return one.ActiveDays(ctx, kind, d) }}
	default:
		limit := one(s, 1, 20, 0, 1001)
		return step{"Streaks", func(ctx context.Context, one *side) (any, error) { return one.Streaks(ctx, kind, d, limit) }}
	}
}

func (s *script) visits() step {
	name, visitors := one(s, "", "front page", "a/b"), []string{s.user(), one(s, "v1", "v2", "v3", "")}
	hour := noon.Truncate(time.Hour)
	switch s.rng.IntN(4) {
	case 0:
		q := rollcall.VisitQuery{
			Name: name, From: hour.Add(-3 * time.Hour), To: hour.Add(one(s, time.Hour, 24*time.Hour, -5*time.Hour, time.Minute)),
			By: one(s, "", rollcall.VisitsByHour, "minute"),
		}
		return step{"Visitors", func(ctx context.Context, one *side) (any, error) { return one.Visitors(ctx, q) }}
	case 1:
		return step{"VisitNames", func(ctx context.Context, one *side) (any, error) { return one.VisitNames(ctx) }}
	default:
		return quiet("Visit", func(ctx context.Context, one *side) error { return one.Visit(ctx, name, visitors...) })
	}
}
