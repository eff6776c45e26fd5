package local

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
)

// tablesOfStore reads the names of the tables in the source.
func tablesOfStore(t *testing.T) map[string]byte {
	file, err := parser.ParseFile(token.NewFileSet(), "store_keys.go", nil, 0)
	require.NoError(t, err)
	out := map[string]byte{}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || !strings.HasPrefix(spec.Names[0].Name, "tab") {
			return true
		}
		lit, ok := spec.Values[0].(*ast.BasicLit)
		require.True(t, ok, "%s is no letter", spec.Names[0].Name)
		c, err := strconv.Unquote(lit.Value)
		require.NoError(t, err)
		out[spec.Names[0].Name] = c[0]
		return true
	})
	return out
}

func TestEveryTableIsCheckedAndItsDamagedRecordIsNamedAndMended(t *testing.T) {
	tables := tablesOfStore(t)
	require.Len(t, tableInfos(), len(tables))
	sound := newFullStore(t, 60, true)
	report, err := Check(storeName, sound.options(), sound.clock.Now())
	require.NoError(t, err)
	require.Empty(t, report.Faults)
	for name, table := range tables {
		t.Run(name, func(t *testing.T) {
			info, ok := infoOf(table)
			require.True(t, ok, "%s is in no list of tables: check and repair do not know it", name)
			s := *sound
			s.t, s.fs = t, sound.copied()
			var bad []byte
			s.change(func(st *store, b *pebble.Batch) {
				k, v := s.first(st, table)
				bad = slices.Clone(k)
				require.NoError(t, b.Set(k, append(slices.Clone(v), 0x80), nil))
				long := append(slices.Clone(k), 0xff, 0xff)
				require.NoError(t, b.Set(long, v, nil))
			})
			report, err := Check(storeName, s.options(), s.clock.Now())
			require.NoError(t, err)
			require.Positive(t, report.Faulty, info.name)
			named := strings.Join(report.Faults, "\n")
			require.True(t, strings.Contains(named, fmt.Sprintf("%x", bad)) || table == tabMeta || table == tabKind || table == tabDay, "the record is not named: %s", named)

			out, err := s.repair()
			require.NoError(t, err)
			require.False(t, out.Healthy)
			require.True(t, exists(s.fs, out.Old))
			report, err = Check(storeName, s.options(), s.clock.Now())
			require.NoError(t, err)
			require.Empty(t, report.Faults)
			s.open(0)
			s.close()
		})
	}
}

// first returns a record of a table, the number of partitions for what holds for
// the whole store.
func (s *fullStore) first(st *store, table byte) (k, v []byte) {
	if table == tabMeta {
		v, ok, err := st.get(metaKey(metaPartitions))
		require.NoError(s.t, err)
		require.True(s.t, ok)
		return metaKey(metaPartitions), v
	}
	err := st.scan(uninterrupted(), key{table}, func(key, value []byte) error {
		k, v = slices.Clone(key), slices.Clone(value)
		return errStop
	})
	require.ErrorIs(s.t, err, errStop, "the store has no record of table %q", table)
	return k, v
}

func TestCheckNoticesAMissingRecordThatOthersSpeakOf(t *testing.T) {
	sound := newFullStore(t, 60, true)
	for _, table := range []byte{
		tabMeta, tabKind, tabFirst, tabHasArchived, tabDay, tabEnded, tabEndedTok, tabEndedDue, tabFriend, tabNamedBy, tabRetry, tabRetryDue,
	} {
		t.Run(string(table), func(t *testing.T) {
			s := *sound
			s.t, s.fs = t, sound.copied()
			s.change(func(st *store, b *pebble.Batch) {
				k, _ := s.first(st, table)
				require.NoError(t, b.Delete(k, nil))
			})
			report, err := Check(storeName, s.options(), s.clock.Now())
			require.NoError(t, err)
			require.Positive(t, report.Faulty)
			_, err = s.repair()
			require.NoError(t, err)
			report, err = Check(storeName, s.options(), s.clock.Now())
			require.NoError(t, err)
			require.Empty(t, report.Faults)
		})
	}
}

func TestAHealthyStoreIsLeftAsItIs(t *testing.T) {
	s := newFullStore(t, 20, false)
	before := filesOf(t, s.fs, homeDir)
	out, err := s.repair()
	require.NoError(t, err)
	require.True(t, out.Healthy)
	after := filesOf(t, s.fs, homeDir)
	delete(before, storeName+"/LOCK")
	delete(after, storeName+"/LOCK")
	require.Equal(t, before, after)
}

// TestWhatHoldsForTheWholeStoreMayBeDamagedToo damages the first block of every
// table: one of them has the keys that opening reads.
func TestWhatHoldsForTheWholeStoreMayBeDamagedToo(t *testing.T) {
	s := newFullStore(t, 20, true)
	tables := 0
	for name := range filesOf(t, s.fs, storeName) {
		if strings.HasSuffix(name, ".sst") {
			b := contentOf(t, s.fs, name)
			b[10] ^= 1
			setContent(t, s.fs, name, b)
			tables++
		}
	}
	require.Positive(t, tables)
	out, err := s.repair()
	require.NoError(t, err)
	require.NotEmpty(t, out.Losses)
	report, err := Check(storeName, s.options(), s.clock.Now())
	require.NoError(t, err)
	require.Empty(t, report.Faults)
	s.clock = rollcall.NewManualClock(s.clock.Now())
	s.open(0)
	s.compare("first blocks damaged", out.Losses)
	s.close()
}

func TestAStoreThatIsOpenIsNotRepaired(t *testing.T) {
	s := newFullStore(t, 5, true)
	s.open(0)
	defer s.close()
	_, err := s.repair()
	require.ErrorIs(t, err, ErrInUse)
}

func TestARepairIsRefusedIfThereIsNoRoomForASecondStore(t *testing.T) {
	s := newFullStore(t, 20, true)
	s.change(func(_ *store, b *pebble.Batch) { require.NoError(t, b.Set([]byte("s?"), nil, nil)) })
	disk := &smallDisk{FS: s.fs}
	disk.free.Store(1000)
	o := s.options()
	o.fs = disk
	before := filesOf(t, s.fs, homeDir)
	_, err := Repair(t.Context(), storeName, o, RepairOptions{Now: s.clock.Now()})
	require.ErrorIs(t, err, rollcall.ErrStorageFull)
	require.ErrorContains(t, err, "must be free")
	require.Len(t, filesOf(t, s.fs, homeDir), len(before))
	disk.free.Store(1 << 40)
	_, err = Repair(t.Context(), storeName, o, RepairOptions{Now: s.clock.Now()})
	require.NoError(t, err)
}

func TestACrashAtAnyStepOfARepairLeavesTheOldOrTheNewStore(t *testing.T) {
	sound := newFullStore(t, 20, false)
	sound.change(func(_ *store, b *pebble.Batch) { require.NoError(t, b.Set([]byte("s?"), nil, nil)) })
	s := *sound
	s.fs = sound.copied()
	clones := map[string]*vfs.MemFS{}
	var order []string
	_, err := Repair(t.Context(), storeName, s.options(), RepairOptions{Now: s.clock.Now(), crash: func(step string) {
		clones[step] = s.fs.CrashClone(vfs.CrashCloneCfg{})
		order = append(order, step)
	}})
	require.NoError(t, err)
	require.Len(t, order, 4)
	for i, step := range order {
		s.fs = clones[step]
		report, err := Check(storeName, s.options(), s.clock.Now())
		require.NoError(t, err, step)
		if i < 2 {
			require.Positive(t, report.Faulty, "after %q the old store is there", step)
			_, err = s.repair()
			require.NoError(t, err, step)
		} else {
			require.Empty(t, report.Faults, "after %q the new store is there", step)
		}
		s.open(0)
		s.close()
		require.False(t, exists(s.fs, storeName+repairedSuffix))
		kept := 0
		names, err := s.fs.List(homeDir)
		require.NoError(t, err)
		for _, name := range names {
			if strings.HasPrefix(name, "store"+damagedSuffix) {
				kept++
			}
		}
		require.Equal(t, 1, kept, "%s: the old store stays: %s", step, names)
	}
}

func lastOf(t testing.TB, fs vfs.FS, dir string) string {
	names, err := fs.List(dir)
	require.NoError(t, err)
	names = slices.DeleteFunc(names, func(n string) bool { return !strings.HasSuffix(n, ".journal") })
	return slices.Max(names)
}

func TestOpeningADamagedListOfTablesRemovesNone(t *testing.T) {
	s := newFullStore(t, 60, true)
	s.open(0) // releases the journal
	s.close()
	files := filesOf(t, s.fs, storeName)
	for name := range files {
		if strings.Contains(name, "MANIFEST") {
			setContent(t, s.fs, name, contentOf(t, s.fs, name)[:40])
		}
	}
	_, err := Open(storeName, s.options())
	require.Error(t, err)
	require.ErrorContains(t, err, "check --repair")
	left := filesOf(t, s.fs, storeName)
	for name := range files {
		if strings.HasSuffix(name, ".sst") {
			require.Contains(t, left, name)
		}
	}
}
