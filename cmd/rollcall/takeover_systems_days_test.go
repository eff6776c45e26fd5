package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/takeover"
)

// loginDays is a bitmap for each user, month and kind.
func loginDays() *handBuilt {
	const months = 12
	kinds := func(i int) []string {
		if i%10 == 0 {
			return []string{"client", "office"} // two people
		}
		return []string{"client"}
	}
	month := func(o *oldSystem, back int) time.Time {
		return time.Date(o.began.UTC().Year(), o.began.UTC().Month()-time.Month(back), 1, 0, 0, 0, 0, time.UTC)
	}
	key := func(at time.Time, kind, user string) string {
		return "loginLog_" + at.UTC().Format("2006-01") + "_" + kind + "_" + user
	}
	return &handBuilt{
		layout: takeover.LoginBitmaps, users: 300, long: 100_000,
		flags:   []string{"--map", "client=client:", "--map", "office=office:"},
		entries: func(users int) int { return users * months },
		faults:  []string{"expires", "keys_scan"},
		fill: func(o *oldSystem) {
			for back := range months {
				first := month(o, back)
				days := first.AddDate(0, 1, -1).Day()
				if back == 0 {
					days = o.began.UTC().Day()
				}
				for i := range o.n {
					for _, kind := range kinds(i) {
						var bits [4]byte
						for k := range 6 {
							day := (i*7 + back*3 + k*5 + len(kind)) % days
							bits[day/8] |= 0x80 >> (day % 8)
						}
						o.add("SET", key(first, kind, o.user(i)), string(bits[:]))
						if back > 0 && i%50 == 3 {
							o.add("EXPIRE", key(first, kind, o.user(i)), "864000")
						}
					}
				}
			}
		},
		change: func(o *oldSystem, i int) {
			now := time.Now().UTC()
			o.add("SETBIT", key(now, "client", o.user(i*7919%o.n)), strconv.Itoa(now.Day()-1), "1")
			o.add("SETBIT", key(now, "office", "new-"+strconv.Itoa(i)), strconv.Itoa(now.Day()-1), "1")
		},
		use: func(o *oldSystem) {
			today := rollcall.DayOf(time.Now(), time.UTC)
			var marks []rollcall.Mark
			for i := range 100 {
				marks = append(marks, rollcall.Mark{User: "client:here-" + strconv.Itoa(i), Kind: "client", Day: today}, rollcall.Mark{User: "office:" + o.user(i), Kind: "office", Day: today})
			}
			_, _, err := o.here.Mark(o.t.Context(), marks...)
			require.NoError(o.t, err)
		},
		equal: func(o *oldSystem) { o.equalDays(months, kinds, key) },
	}
}

// equalDays asks the seven questions.
func (o *oldSystem) equalDays(months int, kinds func(int) []string, key func(time.Time, string, string) string) {
	t, ctx := o.t, o.t.Context()
	today := rollcall.DayOf(time.Now(), time.UTC)
	last := today.Date()
	from := rollcall.DateOf(last.Year(), last.Month()-time.Month(months-1), 1)

	// On which days of the range, and so on a day, in a month, and in the range at all.
	for _, user := range append(o.sample(), "here-7") {
		for _, kind := range []string{"client", "office"} {
			var want []rollcall.Day
			for day := from; day <= today; day++ {
				at := day.Date()
				o.add("GETBIT", key(at, kind, user), strconv.Itoa(at.Day()-1))
			}
			for i, r := range o.redis.DoMulti(ctx, o.batch...) {
				bit, err := r.AsInt64()
				require.NoError(t, err)
				if bit == 1 {
					want = append(want, from+rollcall.Day(i))
				}
			}
			o.batch = o.batch[:0]
			here, err := o.here.Attended(ctx, kind+":"+user, kind, rollcall.DayRange{From: from, To: today})
			require.NoError(t, err)
			require.Equal(t, fmt.Sprint(want), fmt.Sprint(here.Days), "%s %s", kind, user)
		}
	}

	// Which users of a kind, and of all kinds, in a range: the last three days.
	active := make(map[string]map[string]bool)
	for _, kind := range []string{"client", "office"} {
		active[kind] = make(map[string]bool)
		names := o.keysOf(key(last, kind, "*"))
		for some := range slices.Chunk(names, 1000) {
			for _, name := range some {
				for back := range 3 {
					o.add("GETBIT", name, strconv.Itoa(last.AddDate(0, 0, -back).Day()-1))
				}
			}
			for i, r := range o.redis.DoMulti(ctx, o.batch...) {
				if bit, err := r.AsInt64(); err == nil && bit == 1 {
					active[kind][some[i/3][strings.LastIndexByte(some[i/3], '_')+1:]] = true
				}
			}
			o.batch = o.batch[:0]
		}
	}
	if last.Day() < 3 {
		return // the range has two months, which this model of the question does not
	}
	span := rollcall.DayRange{From: today - 2, To: today}
	for _, kind := range []string{"client", "office", ""} {
		page, err := o.here.Active(ctx, rollcall.ActiveQuery{Range: span, Kind: kind, Page: rollcall.PageRequest{Limit: 1}})
		require.NoError(t, err)
		want := len(active[kind])
		if kind == "" {
			want = len(active["client"]) + len(active["office"])
		}
		require.Equal(t, want, page.Total, "active users of kind %q", kind)
	}
}

// keysOf lists the keys that match a pattern.
func (o *oldSystem) keysOf(match string) (out []string) {
	for cursor := "0"; ; {
		m, err := o.redis.Do(o.t.Context(), o.redis.B().Arbitrary("SCAN", cursor, "MATCH", match, "COUNT", "5000").Build()).AsScanEntry()
		require.NoError(o.t, err)
		out = append(out, m.Elements...)
		if cursor = strconv.FormatUint(m.Cursor, 10); cursor == "0" {
			slices.Sort(out)
			return slices.Compact(out)
		}
	}
}
