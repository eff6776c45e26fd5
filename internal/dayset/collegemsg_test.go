package dayset_test

import (
	"bufio"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"hash/fnv"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall/internal/dayset"
)

// expected is the part of CollegeMsg.expected.json that is about days.
type expected struct {
	Users     int       `json:"users"`
	FirstDay  string    `json:"first_day"`
	LastDay   string    `json:"last_day"`
	DAU       []int64   `json:"dau"`
	WAU7      []int64   `json:"wau7"`
	MAU28     []int64   `json:"mau28"`
	MAU30     []int64   `json:"mau30"`
	Weeks     []string  `json:"weeks"`
	Sizes     []int64   `json:"cohort_sizes"`
	On        [][]int64 `json:"retention_on"`
	OnOrAfter [][]int64 `json:"retention_on_or_after"`
	Lifecycle []struct {
		Week         string `json:"week"`
		New          int64  `json:"new"`
		Returning    int64  `json:"returning"`
		Resurrecting int64  `json:"resurrecting"`
		Dormant      int64  `json:"dormant"`
	} `json:"lifecycle_weekly"`
	Streaks    [][2]any            `json:"longest_streaks"`
	ActiveDays map[string]int64    `json:"active_days_distribution"`
	UserDays   map[string][]string `json:"user_days"`
}

// college is the messages' senders over four partitions, each with dense
// numbers of its own, so that a total is right only if the partitions add up.
type college struct {
	parts   [4]*partition
	names   [4][]string
	numbers map[string]uint32
}

func partitionOf(name string) int {
	hash := fnv.New32a()
	hash.Write([]byte(name))
	return int(hash.Sum32() % 4)
}

func (c *college) mark(name string, day int32) {
	i := partitionOf(name)
	n, known := c.numbers[name]
	if !known {
		n = uint32(len(c.names[i]))
		c.numbers[name] = n
		c.names[i] = append(c.names[i], name)
	}
	c.parts[i].mark(day, n)
}

func readCollege(t *testing.T) (*college, expected) {
	text, err := os.ReadFile("../../testdata/CollegeMsg.expected.json")
	require.NoError(t, err)
	var want expected
	require.NoError(t, json.Unmarshal(text, &want))

	file, err := os.Open("../../testdata/CollegeMsg.txt.gz")
	require.NoError(t, err)
	defer file.Close()
	unzipped, err := gzip.NewReader(file)
	require.NoError(t, err)
	c := &college{numbers: map[string]uint32{}}
	for i := range c.parts {
		c.parts[i] = newPartition()
	}
	lines := bufio.NewScanner(unzipped)
	require.True(t, lines.Scan(), "headings")
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		seconds, err := strconv.ParseInt(fields[2], 10, 64)
		require.NoError(t, err)
		c.mark(fields[0], int32(seconds/86400))
	}
	require.NoError(t, lines.Err())
	require.Len(t, c.numbers, want.Users)
	return c, want
}

func dateOf(t *testing.T, text string) int32 {
	date, err := time.Parse(time.DateOnly, text)
	require.NoError(t, err)
	return int32(date.Unix() / 86400)
}

func datesOf(t *testing.T, texts []string) []int32 {
	days := make([]int32, len(texts))
	for i, text := range texts {
		days[i] = dateOf(t, text)
	}
	return days
}

func TestCollegeMsg(t *testing.T) {
	c, want := readCollege(t)
	first, last := dateOf(t, want.FirstDay), dateOf(t, want.LastDay)
	t.Run("series", func(t *testing.T) { c.checkSeries(t, want, first, last) })
	t.Run("retention", func(t *testing.T) { c.checkRetention(t, want, first, last) })
	t.Run("lifecycle", func(t *testing.T) { c.checkLifecycle(t, want, first, last) })
	t.Run("active days", func(t *testing.T) { c.checkActiveDays(t, want, first, last) })
	t.Run("streaks", func(t *testing.T) { c.checkStreaks(t, want, first, last) })
	t.Run("days of a user", func(t *testing.T) { c.checkUserDays(t, want, first, last) })
}

func (c *college) checkSeries(t *testing.T, want expected, first, last int32) {
	var by28, by30 []dayset.Point
	for _, part := range c.parts {
		by28 = dayset.Series(by28, part, first, last, dayset.MAU28)
		by30 = dayset.Series(by30, part, first, last, dayset.MAU30)
	}
	require.Len(t, by28, len(want.DAU))
	require.Len(t, by30, len(want.MAU30))
	for i := range by28 {
		require.Equal(t, dayset.Point{DAU: want.DAU[i], WAU: want.WAU7[i], MAU: want.MAU28[i]}, by28[i])
		require.Equal(t, dayset.Point{DAU: want.DAU[i], WAU: want.WAU7[i], MAU: want.MAU30[i]}, by30[i])
	}
}

func (c *college) checkRetention(t *testing.T, want expected, first, last int32) {
	require.Equal(t, datesOf(t, want.Weeks), dayset.Week.Starts(first, last))
	for measure, retained := range map[dayset.Measure][][]int64{
		dayset.On: want.On, dayset.OnOrAfter: want.OnOrAfter,
	} {
		var table dayset.RetentionTable
		for _, part := range c.parts {
			table = dayset.Retention(table, part, dayset.RetentionQuery{
				Period: dayset.Week, Cohort: dayset.First, Measure: measure,
				From: first, To: last, Last: last, New: part.newcomers,
			})
		}
		require.Equal(t, dayset.RetentionTable{Sizes: want.Sizes, Retained: retained}, table)
	}
}

func (c *college) checkLifecycle(t *testing.T, want expected, first, last int32) {
	var flows []dayset.Flow
	for _, part := range c.parts {
		flows = dayset.Lifecycle(flows, part, part.newcomers, dayset.Week, first, last)
	}
	require.Len(t, flows, len(want.Lifecycle))
	for i, w := range want.Lifecycle {
		require.Equal(t, want.Weeks[i], w.Week)
		require.Equal(t, dayset.Flow{
			New: w.New, Returning: w.Returning, Resurrecting: w.Resurrecting, Dormant: w.Dormant,
		}, flows[i], w.Week)
	}
}

func (c *college) checkActiveDays(t *testing.T, want expected, first, last int32) {
	var counts []int64
	for _, part := range c.parts {
		counts = dayset.ActiveDays(counts, part, first, last)
	}
	got := map[string]int64{}
	for k, n := range counts {
		if n > 0 {
			got[strconv.Itoa(k)] = n
		}
	}
	require.Equal(t, want.ActiveDays, got)
}

func (c *college) checkStreaks(t *testing.T, want expected, first, last int32) {
	type named struct {
		id, longest int
	}
	var got, expect []named
	for _, pair := range want.Streaks {
		id, err := strconv.Atoi(pair[0].(string))
		require.NoError(t, err)
		expect = append(expect, named{id, int(pair[1].(float64))})
	}
	for i, part := range c.parts {
		for _, s := range dayset.Streaks(part, first, last, last, len(expect), nil) {
			id, err := strconv.Atoi(c.names[i][s.Number])
			require.NoError(t, err)
			got = append(got, named{id, s.Longest})
		}
	}
	slices.SortFunc(got, func(a, b named) int {
		return cmp.Or(cmp.Compare(b.longest, a.longest), cmp.Compare(a.id, b.id))
	})
	require.Equal(t, expect, got[:len(expect)])
}

func (c *college) checkUserDays(t *testing.T, want expected, first, last int32) {
	for name, dates := range want.UserDays {
		part, n := c.parts[partitionOf(name)], c.numbers[name]
		var days []int32
		has := func(day int32) bool {
			set := part.Set(day)
			return set != nil && set.Contains(n)
		}
		for day := first; day <= last; day++ {
			if has(day) {
				days = append(days, day)
			}
		}
		require.Equal(t, datesOf(t, dates), days, name)
		longest, run := 0, 0
		for i, day := range days {
			if run++; i > 0 && days[i-1]+1 != day {
				run = 1
			}
			longest = max(longest, run)
		}
		require.Contains(t, want.Streaks, [2]any{name, float64(longest)})
	}
}
