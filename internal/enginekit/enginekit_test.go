package enginekit

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
)

func TestTimesBecomeWhatTheyWere(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 1_500_000, time.UTC)
	require.Equal(t, at.Truncate(time.Millisecond), TimeOf(Milliseconds(at)))
	require.Equal(t, at.UnixMilli()+1, CeilMilliseconds(at))
	require.Equal(t, at.UnixMilli(), CeilMilliseconds(at.Truncate(time.Millisecond)))
	require.Zero(t, Milliseconds(time.Time{}))
	require.True(t, TimeOrZero(0).IsZero())
	require.True(t, TimeOfSecond(uint32(0)).IsZero())
	require.Equal(t, int64(7), TimeOfSecond(int64(7)).Unix())
}

func TestEveryTypeOfEventHasANumberOfItsOwn(t *testing.T) {
	for i, typ := range EventTypes() {
		require.Equal(t, uint8(i), NumberOfEventType(typ))
		back, ok := EventTypeOf(uint8(i))
		require.True(t, ok)
		require.Equal(t, typ, back)
	}
	_, ok := EventTypeOf(uint8(len(EventTypes())))
	require.False(t, ok)
}

func TestAnAudienceShowsAnEventToItsViewersAlone(t *testing.T) {
	for a, want := range map[Audience][2]bool{ForAll: {true, true}, ForAdmin: {false, true}, ForPublic: {true, false}} {
		require.Equal(t, want, [2]bool{a.Shows(rollcall.ViewerPublic), a.Shows(rollcall.ViewerAdmin)}, "audience %d", a)
	}
}

// FuzzCursors reads what other programs may have sent as cursors. What was encoded is
// decoded as it was.
func FuzzCursors(f *testing.F) {
	f.Add(SeenCursor{Began: 1, After: SessionSeen{At: math.MaxInt64}}.Encode())
	f.Add(activePlace{part: 3, number: 70_000}.encode())
	f.Add(FriendPlace(rollcall.FriendsByLastSeen, rollcall.FriendStatus{User: "alice"}))
	f.Add("")
	f.Fuzz(func(t *testing.T, s string) {
		if c := DecodeSeenCursor(s); c != (SeenCursor{}) {
			require.Equal(t, s, c.Encode())
		}
		if p := decodeActivePlace(s); p != (activePlace{}) {
			require.Equal(t, s, p.encode())
		}
		if at, user := DecodeFriendPlace(s); at != 0 || user != "" {
			friend := rollcall.FriendStatus{User: user, Since: TimeOf(int64(at))}
			require.Equal(t, s, FriendPlace(rollcall.FriendsBySince, friend))
		}
	})
}

func TestPagesOfAListHaveAllOfItOnce(t *testing.T) {
	all := make([]int, 23)
	for i := range all {
		all[i] = i
	}
	place := func(i int) string { return fmt.Sprintf("%04d", i) }
	var walked []int
	for r := (rollcall.PageRequest{Limit: 5}); ; {
		page := PageOf(all, r, place)
		require.Equal(t, len(all), page.Total)
		walked = append(walked, page.Items...)
		if page.Next == "" {
			break
		}
		r.Cursor = page.Next
	}
	require.Equal(t, all, walked)
	require.Equal(t, all[10:15], PageOf(all, rollcall.PageRequest{Limit: 5, Number: 3}, place).Items)
	require.Empty(t, PageOf(all, rollcall.PageRequest{Limit: 5, Number: 9}, place).Items)
	only := PageOf(all, rollcall.PageRequest{}, place)
	require.Empty(t, only.Items)
	require.Empty(t, only.Next)
}

func TestGapsAreJoinedIfTheyLieNear(t *testing.T) {
	known := func(day rollcall.Day) bool { return !slices.Contains([]rollcall.Day{1, 2, 4, 9}, day) }
	days := rollcall.DayRange{From: 0, To: 10}
	require.Equal(t, []rollcall.DayRange{{From: 1, To: 4}, {From: 9, To: 9}}, Gaps(days, 3, known))
	require.Equal(t, []rollcall.DayRange{{From: 1, To: 2}, {From: 4, To: 4}, {From: 9, To: 9}}, Gaps(days, 2, known))
	require.Equal(t, []rollcall.DayRange{{From: 1, To: 9}}, Gaps(days, 31, known))
}

// days are the days of partitions that a test gives.
type days []map[int32]*roaring.Bitmap

type set map[int32]*roaring.Bitmap

func (s set) Set(day int32) *roaring.Bitmap { return s[day] }

func (d days) Zone() *time.Location { return time.UTC }

func (d days) LastDay(context.Context, string) (rollcall.Day, bool, error) { return 0, false, nil }

func (d days) EachPartition(_ context.Context, _ DaysQuery, reset func(), fn func(PartitionDays) error) error {
	reset()
	if err := fn(d.partition(0)); err != nil {
		return err
	}
	reset() // days were offloaded meanwhile: all begins anew
	for i := range d {
		if err := fn(d.partition(i)); err != nil {
			return err
		}
	}
	return nil
}

func (d days) partition(i int) PartitionDays {
	users := func(numbers []uint32) ([]string, error) {
		out := make([]string, len(numbers))
		for j, n := range numbers {
			out[j] = fmt.Sprint(i, "-", n)
		}
		return out, nil
	}
	return PartitionDays{Index: i, Source: set(d[i]), Users: users}
}

func TestAWalkOfActiveUsersHasEachOnceAcrossPartitions(t *testing.T) {
	d := make(days, 3)
	var want []string
	for i := range d {
		d[i] = map[int32]*roaring.Bitmap{5: roaring.BitmapOf(0, 2, 70_000), 6: roaring.BitmapOf(2, 9)}
		for _, n := range []int{0, 2, 9, 70_000} {
			want = append(want, fmt.Sprint(i, "-", n))
		}
	}
	q := rollcall.ActiveQuery{Range: rollcall.DayRange{From: 5, To: 6}, Match: rollcall.MatchAny}
	for limit := 1; limit < 14; limit++ {
		var walked []string
		for q.Page = (rollcall.PageRequest{Limit: limit}); ; {
			page, err := Figures{Days: d}.Active(t.Context(), q)
			require.NoError(t, err)
			require.Equal(t, len(want), page.Total)
			walked = append(walked, page.Items...)
			if page.Next == "" {
				break
			}
			q.Page.Cursor = page.Next
		}
		require.Equal(t, want, walked)
	}
	q.Page = rollcall.PageRequest{Limit: 5, Number: 2}
	page, err := Figures{Days: d}.Active(t.Context(), q)
	require.NoError(t, err)
	require.Equal(t, want[5:10], page.Items)
}
