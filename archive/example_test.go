package archive_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/archive"
	"github.com/rollcall/rollcall/local"
)

func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "rollcall")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	db, err := archive.Open(ctx, "sqlite:"+filepath.Join(dir, "archive.db"), archive.Options{})
	if err != nil {
		panic(err)
	}
	defer db.Close()
	log, err := archive.OpenOffloadLog(filepath.Join(dir, "offloaded"))
	if err != nil {
		panic(err)
	}
	engine, err := local.Open(dir, local.Options{InMemory: true})
	if err != nil {
		panic(err)
	}
	defer engine.Close()
	clock := rollcall.NewManualClock(time.Date(2026, 2, 3, 12, 0, 0, 0, time.UTC))
	roll, err := rollcall.New(engine, rollcall.Options{Clock: clock, Archive: &archive.Adapter{DB: db, OffloadLog: log}})
	if err != nil {
		panic(err)
	}
	defer roll.Close()

	long := rollcall.DateOf(2017, 10, 31)
	if _, _, err := roll.ImportMarks(ctx, rollcall.Mark{User: "alice", Day: long}, rollcall.Mark{User: "alice", Day: roll.Today()}); err != nil {
		panic(err)
	}
	runner, err := archive.NewRunner(db, engine, archive.RunnerOptions{Clock: clock, OffloadLog: log})
	if err != nil {
		panic(err)
	}
	run, err := runner.Run(ctx)
	if err != nil {
		panic(err)
	}
	fmt.Println(run.RowsWritten, "user-months copied,", run.DaysOffloaded, "day left")
	alice, err := roll.Attended(ctx, "alice", "", rollcall.DayRange{From: long, To: roll.Today()})
	if err != nil {
		panic(err)
	}
	fmt.Println(alice.Days)
	// Output:
	// 2 user-months copied, 1 day left
	// [2017-10-31 2026-02-03]
}
