package rollcall_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/testbudget"
)

func mustDay(t require.TestingT, text string) rollcall.Day {
	d, err := rollcall.ParseDay(text)
	require.NoError(t, err)
	return d
}

func TestMonth(t *testing.T) {
	leap := rollcall.MonthOf(mustDay(t, "2024-02-10"))
	require.Equal(t, rollcall.Month(202402), leap)
	require.Equal(t, 29, leap.Len())
	require.Equal(t, rollcall.DayRange{From: mustDay(t, "2024-02-01"), To: mustDay(t, "2024-02-29")}, leap.Range())
	require.Equal(t, uint32(1<<29-1), leap.Mask())
	require.Equal(t, "2024-02", leap.String())
	require.Equal(t, rollcall.Month(202501), rollcall.Month(202412).Next())
	require.Equal(t, uint32(1)<<30, rollcall.Bit(mustDay(t, "2026-01-31")))
	require.Equal(t, uint32(1<<31-1), rollcall.Month(202601).Mask())
	require.Equal(t, []rollcall.Day{mustDay(t, "2026-01-01"), mustDay(t, "2026-01-31")}, rollcall.Month(202601).Days(1|1<<30))
	for _, wrong := range []rollcall.Month{0, 197000, 196912, 202613, 999913, 1000001, -202601} {
		require.False(t, wrong.Valid(), "%d", wrong)
	}
}

func TestMonthHasEachOfItsDaysOnce(t *testing.T) {
	testbudget.Check(t, testbudget.Quick(), func(t *rapid.T) {
		d := rollcall.Day(rapid.Int32Range(0, int32(mustDay(t, "9999-12-31"))).Draw(t, "day"))
		m := rollcall.MonthOf(d)
		require.True(t, m.Valid())
		r := m.Range()
		require.True(t, r.From <= d && d <= r.To)
		require.Equal(t, r.To+1, m.Next().Range().From)
		require.Equal(t, []rollcall.Day{d}, m.Days(rollcall.Bit(d)))
		require.Len(t, m.Days(m.Mask()), m.Len())
	})
}
