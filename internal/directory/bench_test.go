package directory_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/rollcall/rollcall/internal/directory"
)

// batch is what one directory is asked at once.
type batch struct {
	d      *directory.Directory
	hashes []uint64
	ids    []string
}

const (
	benchDirectories = 64
	benchBatch       = 512
	benchRounds      = 32
)

func numberID(i int) string { return strconv.Itoa(10_000_000 + i) }

func textID(i int) string { return fmt.Sprintf("user-%011d", i) }

// batches asks each of many directories in turn for ids spread at random over
// all that exist, so that hardly a line is in the cache when it is needed.
func batches(b *testing.B, count int, name func(int) string) []batch {
	b.Helper()
	h, all := fleet(b, benchDirectories, count, name)
	rng := rand.New(rand.NewPCG(7, 8))
	result := make([]batch, benchRounds*benchDirectories)
	for missing := len(result); missing > 0; {
		id := name(rng.IntN(count))
		hash := h.of(id)
		home := int(hash % benchDirectories)
		for at := home; at < len(result); at += benchDirectories {
			to := &result[at]
			if len(to.ids) == benchBatch {
				continue
			}
			to.d = all[home]
			to.hashes = append(to.hashes, hash)
			to.ids = append(to.ids, id)
			if len(to.ids) == benchBatch {
				missing--
			}
			break
		}
	}
	for i := range result {
		side(result[i].ids)
	}
	return result
}

// side copies ids to lie side by side, as those of one request do.
func side(ids []string) {
	text := strings.Join(ids, "")
	for i, id := range ids {
		ids[i], text = text[:len(id)], text[len(id):]
	}
}

func BenchmarkFind(b *testing.B) {
	for _, c := range []struct {
		name  string
		count int
		id    func(int) string
	}{
		{"numbers=1M", 1_000_000, numberID},
		{"numbers=10M", 10_000_000, numberID},
		{"texts=1M", 1_000_000, textID},
	} {
		b.Run(c.name, func(b *testing.B) {
			all := batches(b, c.count, c.id)
			out := make([]uint32, benchBatch)
			perID := func(b *testing.B, work func(batch)) {
				i := 0
				b.ReportAllocs()
				for b.Loop() {
					work(all[i%len(all)])
					i++
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*benchBatch), "ns/id")
			}
			b.Run("all", func(b *testing.B) {
				perID(b, func(q batch) { q.d.FindAll(q.hashes, q.ids, out) })
			})
			b.Run("one", func(b *testing.B) {
				perID(b, func(q batch) {
					for i, id := range q.ids {
						out[i], _ = q.d.Find(q.hashes[i], id)
					}
				})
			})
			b.Run("known", func(b *testing.B) {
				perID(b, func(q batch) {
					if err := q.d.InsertAll(q.hashes, q.ids, out, nil); err != nil {
						b.Fatal(err)
					}
				})
			})
		})
	}
}

func BenchmarkInsertAll(b *testing.B) {
	for _, c := range []struct {
		name string
		id   func(int) string
	}{
		{"numbers", numberID},
		{"texts", textID},
	} {
		b.Run(c.name, func(b *testing.B) {
			const count = 1 << 17
			h := newHasher()
			ids, hashes, out := make([]string, count), make([]uint64, count), make([]uint32, count)
			for i := range ids {
				ids[i] = c.id(i)
				hashes[i] = h.of(ids[i])
			}
			b.ReportAllocs()
			for b.Loop() {
				if err := h.directory().InsertAll(hashes, ids, out, nil); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*count), "ns/id")
		})
	}
}

func BenchmarkRemoveInsert(b *testing.B) {
	h := newHasher()
	d := h.directory()
	const count = 100_000
	for i := range count {
		id := numberID(i)
		if _, _, err := d.Insert(h.of(id), id); err != nil {
			b.Fatal(err)
		}
	}
	n := uint32(0)
	var id []byte
	for b.Loop() {
		id = d.AppendID(id[:0], n)
		d.Remove(n)
		if _, _, err := d.Insert(h.of(string(id)), string(id)); err != nil {
			b.Fatal(err)
		}
		n = (n + 7919) % count
	}
}
