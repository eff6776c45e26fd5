package history_test

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/history"
	"github.com/rollcall/rollcall/local"
)

func ExampleImport() {
	dir, err := os.MkdirTemp("", "rollcall")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	engine, err := local.Open(dir, local.Options{})
	if err != nil {
		panic(err)
	}
	defer engine.Close()
	roll, err := rollcall.New(engine, rollcall.Options{})
	if err != nil {
		panic(err)
	}
	defer roll.Close()

	logins := strings.NewReader(`time,user,kind
2017-10-06T08:15:00Z,bob
2017-10-05,alice,staff
1507190400,bob
yesterday,carol
`)
	summary, err := history.Import(context.Background(), roll, history.Stream(logins), history.Options{})
	if err != nil {
		panic(err)
	}
	fmt.Println(summary.String())
	for _, r := range summary.FirstRejected {
		fmt.Printf("line %d, %q: %s\n", r.Line, r.Text, r.Reason)
	}
	bob, err := roll.Attended(context.Background(), "bob", "", rollcall.DayRange{From: *summary.FirstDay, To: *summary.LastDay})
	if err != nil {
		panic(err)
	}
	fmt.Println(bob.Days, "longest streak", bob.Streak.Longest)
	// Output:
	// 4 rows: 3 new marks, 0 known, 1 rejected
	// line 5, "yesterday,carol": the time is not RFC 3339, unix seconds or milliseconds, or a date
	// [2017-10-05 2017-10-06] longest streak 2
}
