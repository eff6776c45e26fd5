package archive

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/testbudget"
)

func day(t require.TestingT, text string) rollcall.Day {
	d, err := rollcall.ParseDay(text)
	require.NoError(t, err)
	return d
}

func TestMonth(t *testing.T) {
	leap := MonthOf(day(t, "2024-02-10"))
	require.Equal(t, Month(202402), leap)
	require.Equal(t, 29, leap.Len())
	require.Equal(t, rollcall.DayRange{From: day(t, "2024-02-01"), To: day(t, "2024-02-29")}, leap.Range())
	require.Equal(t, uint32(1<<29-1), leap.Mask())
	require.Equal(t, "2024-02", leap.String())
	require.Equal(t, Month(202501), Month(202412).Next())
	require.Equal(t, uint32(1)<<30, Bit(day(t, "2026-01-31")))
	require.Equal(t, uint32(1<<31-1), Month(202601).Mask())
	require.Equal(t, []rollcall.Day{day(t, "2026-01-01"), day(t, "2026-01-31")}, Month(202601).Days(1|1<<30))
	for _, wrong := range []Month{0, 197000, 196912, 202613, 999913, 1000001, -202601} {
		require.False(t, wrong.Valid(), "%d", wrong)
	}
}

func TestMonthHasEachOfItsDaysOnce(t *testing.T) {
	testbudget.Check(t, testbudget.Quick(), func(t *rapid.T) {
		d := rollcall.Day(rapid.Int32Range(0, int32(day(t, "9999-12-31"))).Draw(t, "day"))
		m := MonthOf(d)
		require.True(t, m.Valid())
		r := m.Range()
		require.True(t, r.From <= d && d <= r.To)
		require.Equal(t, r.To+1, m.Next().Range().From)
		require.Equal(t, []rollcall.Day{d}, m.Days(Bit(d)))
		require.Len(t, m.Days(m.Mask()), m.Len())
	})
}
