package main

import (
	"bufio"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/history"
	"github.com/rollcall/rollcall/local"
)

const (
	historyUsers = 1_000_000
	historyDays  = 400
)

// historyRow is a login of the histories that are imported. Rows at of n are in
// the order of time, or in no order.
func historyRow(rng *rand.Rand, first time.Time, at, n int, ordered bool) (when time.Time, user int) {
	seconds := rng.IntN(historyDays * 86400)
	if ordered {
		seconds = int(int64(at) * historyDays * 86400 / int64(n))
	}
	return first.Add(time.Duration(seconds) * time.Second), rng.IntN(historyUsers)
}

func historySource() *rand.Rand { return rand.New(rand.NewPCG(1, 1)) } //nolint:gosec // load, not secrets

func historyBegin() time.Time { return time.Now().AddDate(0, 0, -historyDays-1) }

// writeHistory writes n rows of RFC 3339 times and numeric users.
func writeHistory(path string, n int, ordered bool) error {
	return writeFile(path, func(w io.Writer) error {
		out := bufio.NewWriterSize(w, 1<<20)
		rng, first := historySource(), historyBegin()
		var line []byte
		for i := range n {
			at, user := historyRow(rng, first, i, n, ordered)
			line = at.UTC().AppendFormat(line[:0], time.RFC3339)
			line = append(strconv.AppendInt(append(line, ','), int64(user), 10), '\n')
			if _, err := out.Write(line); err != nil {
				return err
			}
		}
		return out.Flush()
	})
}

// packFile compresses a file.
func packFile(path, packed string) error {
	in, err := os.Open(path) //nolint:gosec // our own file
	if err != nil {
		return err
	}
	err = writeFile(packed, func(w io.Writer) error {
		zip, err := gzip.NewWriterLevel(w, gzip.BestSpeed)
		if err != nil {
			return err
		}
		_, err = io.Copy(zip, in)
		return errors.Join(err, zip.Close())
	})
	return errors.Join(err, in.Close())
}

func writeFile(path string, write func(io.Writer) error) error {
	f, err := os.Create(path) //nolint:gosec // our own file
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Close())
}

// measureImport measures the import of login histories.
func measureImport(ctx context.Context, sizes []int) (section, error) {
	s := section{
		title: "Import of login history",
		about: fmt.Sprintf("A CSV file of RFC 3339 times and users, %s users at random over %d days, into a new data directory, synced, checkpoints included; `again` imports it once more, when nothing is new. ", count(historyUsers), historyDays) +
			"Redis: one `SETBIT` of the day's bitmap a row, pipelined from memory without parsing a file, without persistence. Both: median of three.",
	}
	t := table{head: []string{"rows", "any order", "again", "in order of time", "gzip, any order", "Redis", "any order: ratio"}}
	for _, n := range sizes {
		own, err := importRates(ctx, n)
		if err != nil {
			return s, err
		}
		redis, err := redisImportRate(ctx, n)
		if err != nil {
			return s, err
		}
		row := []string{count(float64(n))}
		for _, rate := range own {
			row = append(row, count(rate)+"/s")
		}
		t.add(append(row, count(redis)+"/s", times(own[0]/redis))...)
	}
	s.tables = append(s.tables, t)
	return s, nil
}

// importRates returns the rows a second of each way of importing n rows.
func importRates(ctx context.Context, n int) (rates [4]float64, err error) {
	dir, err := os.MkdirTemp("", "rollcall-bench-history")
	if err != nil {
		return rates, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	path := func(name string) string { return filepath.Join(dir, name) }
	err = errors.Join(writeHistory(path("any.csv"), n, false), writeHistory(path("ordered.csv"), n, true))
	if err != nil {
		return rates, err
	}
	if err := packFile(path("any.csv"), path("any.csv.gz")); err != nil {
		return rates, err
	}
	var all [4][]float64
	for range runs {
		twice, err := importFiles(ctx, dir, n, path("any.csv"), path("any.csv"))
		if err != nil {
			return rates, err
		}
		all[0], all[1] = append(all[0], twice[0]), append(all[1], twice[1])
		for i, name := range []string{"ordered.csv", "any.csv.gz"} {
			one, err := importFiles(ctx, dir, n, path(name))
			if err != nil {
				return rates, err
			}
			all[2+i] = append(all[2+i], one[0])
		}
	}
	for i := range all {
		rates[i] = median(all[i])
	}
	return rates, nil
}

// importFiles imports files of n rows into one new engine, and returns the rows
// a second of each.
func importFiles(ctx context.Context, stateDir string, n int, paths ...string) ([]float64, error) {
	b, err := open(local.Options{}, rollcall.Options{})
	if err != nil {
		return nil, err
	}
	var rates []float64
	for _, path := range paths {
		rate, err := importFile(ctx, b.Roll, stateDir, n, path)
		if err != nil {
			return nil, errors.Join(err, b.close())
		}
		rates = append(rates, rate)
	}
	return rates, b.close()
}

func importFile(ctx context.Context, roll *rollcall.Roll, stateDir string, n int, path string) (float64, error) {
	s, err := history.Open(path)
	if err != nil {
		return 0, err
	}
	began := time.Now()
	summary, err := history.Import(ctx, roll, s, history.Options{StateDir: stateDir})
	elapsed := time.Since(began)
	if err == nil && summary.Accepted() != int64(n) {
		err = fmt.Errorf("%d of %d rows were taken in", summary.Accepted(), n)
	}
	return float64(n) / elapsed.Seconds(), errors.Join(err, s.Close())
}

func redisImportRate(ctx context.Context, n int) (float64, error) {
	var rates []float64
	for range runs {
		p, err := startPeer(ctx)
		if err != nil {
			return 0, err
		}
		rng, first := historySource(), historyBegin()
		began := time.Now()
		err = p.fill(n, func(i int) []string {
			at, user := historyRow(rng, first, i, n, false)
			return []string{"SETBIT", "day:" + strconv.FormatInt(at.Unix()/86400, 10), strconv.Itoa(user), "1"}
		})
		elapsed := time.Since(began)
		if err := errors.Join(err, p.stop()); err != nil {
			return 0, err
		}
		rates = append(rates, float64(n)/elapsed.Seconds())
	}
	return median(rates), nil
}
