package local

import (
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"math/rand/v2"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/testbudget"
)

// fullStore is a store with records in every table, and what they say.
type fullStore struct {
	t     *testing.T
	fs    *vfs.MemFS
	clock *rollcall.ManualClock
	eng   *Engine
	roll  *rollcall.Roll

	live    map[string]string // token → user
	ended   map[string]string
	banned  map[string]bool
	friends map[string][]string
	days    map[string][]rollcall.Day
	seen    map[string]time.Time
	keys    map[string]bool // text → valid
	erased  []string
}

const homeDir, storeName = "home", "home/store"

func fullUser(i int) string { return fmt.Sprintf("u%d", i) }

// newFullStore makes one of some users. It is left as a crash leaves it, with a
// journal, unless it is to be closed.
func newFullStore(t *testing.T, users int, closed bool) *fullStore {
	s := &fullStore{
		t: t, fs: vfs.NewCrashableMem(), clock: rollcall.NewManualClock(startOfTests()),
		live: map[string]string{}, ended: map[string]string{}, banned: map[string]bool{}, friends: map[string][]string{},
		days: map[string][]rollcall.Day{}, seen: map[string]time.Time{}, keys: map[string]bool{},
	}
	require.NoError(t, makeDirs(s.fs, homeDir))
	s.open(8) // snapshots after 8 entries
	s.populate(users)
	require.NoError(t, s.roll.Tick(t.Context()))
	if closed {
		s.close()
		return s
	}
	// Some of it in tables, some in the journal alone.
	require.NoError(t, s.eng.store.checkpoint())
	for i := range users / 2 {
		s.login(fullUser(i), "")
	}
	require.NoError(t, s.eng.Flush(t.Context()))
	crashed := s.fs.CrashClone(vfs.CrashCloneCfg{})
	s.close()
	s.fs = crashed
	return s
}

func (s *fullStore) options() Options {
	return Options{fs: s.fs, ReserveBytes: -1, minDelta: 8}
}

func (s *fullStore) open(minDelta int) {
	o := s.options()
	o.minDelta = minDelta
	var err error
	s.eng, err = Open(storeName, o)
	require.NoError(s.t, err)
	s.roll, err = rollcall.New(s.eng, rollcall.Options{Clock: s.clock, Secret: make([]byte, 32), LateMarks: 1000 * 24 * time.Hour})
	require.NoError(s.t, err)
}

func (s *fullStore) close() {
	require.NoError(s.t, s.roll.Close())
	require.NoError(s.t, s.eng.Close())
}

func (s *fullStore) login(user, retry string) rollcall.LoggedIn {
	in, err := s.roll.Login(s.t.Context(), rollcall.Login{User: user, Device: "ios", RetryKey: retry})
	require.NoError(s.t, err)
	s.live[in.Token] = user
	s.seen[user] = s.clock.Now()
	if today := rollcall.DayOf(s.clock.Now(), time.UTC); !slices.Contains(s.days[user], today) {
		s.days[user] = append(s.days[user], today)
	}
	return in
}

func (s *fullStore) kick(in rollcall.LoggedIn, user string) {
	_, err := s.roll.Kick(s.t.Context(), rollcall.Kick{Session: in.Session.ID})
	require.NoError(s.t, err)
	delete(s.live, in.Token)
	s.ended[in.Token] = user
}

func (s *fullStore) populate(users int) {
	ctx, r := s.t.Context(), require.New(s.t)
	invisible := true
	s.clock.Set(startOfTests().Add(-40 * 24 * time.Hour))
	_, _, err := s.roll.Mark(ctx, s.pastMarks(users)...)
	r.NoError(err)
	s.leaveForArchive()
	s.clock.Set(startOfTests())
	for i := range users {
		user := fullUser(i)
		in := s.login(user, fmt.Sprint("key", i))
		if i%3 == 0 {
			s.kick(in, user)
		}
		if i%10 == 0 {
			_, err := s.roll.PutUser(ctx, user, rollcall.UserPatch{Invisible: &invisible})
			r.NoError(err)
		}
		friend := fullUser((i + 1) % users)
		r.NoError(s.roll.AddFriends(ctx, user, false, rollcall.Friend{User: friend}))
		s.friends[user] = append(s.friends[user], friend)
		s.clock.Advance(time.Second)
		r.NoError(s.roll.Beat(ctx, user))
		s.seen[user] = s.clock.Now()
		if i%7 == 0 {
			r.NoError(s.roll.Tick(ctx))
		}
	}
	s.others(users)
}

func (s *fullStore) pastMarks(users int) (marks []rollcall.Mark) {
	for i := range users {
		day := rollcall.DayOf(startOfTests(), time.UTC) - rollcall.Day(1+i%5) - 40
		marks = append(marks, rollcall.Mark{User: fullUser(i), Day: day})
		s.days[fullUser(i)] = append(s.days[fullUser(i)], day)
	}
	return marks
}

// leaveForArchive lets one day go, whose marks then are in an archive only.
func (s *fullStore) leaveForArchive() {
	ctx, r := s.t.Context(), require.New(s.t)
	day := rollcall.DayOf(startOfTests(), time.UTC) - 45
	r.NoError(s.eng.Conclude(ctx, "user", day))
	maps, _, err := s.eng.Changed(ctx, "", 10000)
	r.NoError(err)
	_, err = s.eng.Settle(ctx, maps[:len(maps)-1])
	r.NoError(err)
	_, err = s.eng.Settle(ctx, maps)
	r.NoError(err)
	_, left, err := s.eng.Depart(ctx, "user", day)
	r.NoError(err)
	r.True(left)
	for user, days := range s.days {
		s.days[user] = slices.DeleteFunc(days, func(d rollcall.Day) bool { return d == day })
	}
	// A map that the archive has not been told of.
	day += 2
	_, _, err = s.roll.Mark(ctx, rollcall.Mark{User: fullUser(1), Day: day})
	r.NoError(err)
	s.days[fullUser(1)] = append(s.days[fullUser(1)], day)
}

// others makes records of the rarer tables.
func (s *fullStore) others(users int) {
	ctx, r := s.t.Context(), require.New(s.t)
	for i := range 3 {
		user := fmt.Sprint("banned", i)
		_, err := s.roll.Ban(ctx, user, 1000*time.Hour, "test", "me")
		r.NoError(err)
		s.banned[user] = true
		r.NoError(s.roll.Visit(ctx, fmt.Sprint("page", i), numbers(i, 10)...))
		key, text, err := s.roll.CreateKey(ctx, rollcall.NewKey{Role: rollcall.RoleReader})
		r.NoError(err)
		s.keys[text] = i > 0
		if i == 0 {
			r.NoError(s.roll.RevokeKey(ctx, key.ID))
		}
	}
	// Last-seen times that are forgotten.
	gone := s.login("forgotten", "")
	s.kick(gone, "forgotten")
	for i := range users {
		_, err := s.roll.Kick(ctx, rollcall.Kick{User: fullUser(i)})
		r.NoError(err)
	}
	for text, user := range s.live {
		delete(s.live, text)
		s.ended[text] = user
	}
	s.clock.Advance(time.Hour)
	for i := range users { // in time, and others than those who fell silent
		if i%2 == 0 {
			r.NoError(s.roll.Beat(ctx, fullUser(i)))
			s.seen[fullUser(i)] = s.clock.Now()
		}
	}
	r.NoError(s.roll.Tick(ctx))
	_, err := s.roll.ClearPresence(ctx, 30*time.Minute)
	r.NoError(err)
	for user, at := range s.seen {
		if at.Before(s.clock.Now().Add(-30 * time.Minute)) {
			delete(s.seen, user)
		}
	}
	r.NoError(s.roll.Tick(ctx))
	for i := range users {
		in := s.login(fullUser(i), fmt.Sprint("again", i))
		if i%4 == 0 {
			s.kick(in, fullUser(i))
		}
	}
	s.clock.Advance(time.Second)
	for text, user := range s.live {
		_, err = s.roll.Touch(ctx, rollcall.SessionRef{Token: text})
		r.NoError(err)
		s.seen[user] = s.clock.Now()
	}
	r.NoError(s.roll.Tick(ctx))
	s.clock.Advance(time.Second)
	s.touchSome(users)
	s.erasedUser()
	s.byHand()
}

// touchSome touches a few sessions, whose touches stand behind the snapshot.
func (s *fullStore) touchSome(users int) {
	for text, user := range s.live {
		if user != fullUser(users-1) && user != fullUser(users-2) {
			continue
		}
		_, err := s.roll.Touch(s.t.Context(), rollcall.SessionRef{Token: text})
		require.NoError(s.t, err)
		s.seen[user] = s.clock.Now()
	}
	require.NoError(s.t, s.eng.Flush(s.t.Context()))
}

func (s *fullStore) erasedUser() {
	in := s.login("erased", "")
	require.NoError(s.t, s.roll.Erase(s.t.Context(), "erased"))
	delete(s.live, in.Token)
	s.ended[in.Token] = "erased"
	delete(s.days, "erased")
	delete(s.seen, "erased")
	s.erased = append(s.erased, "erased")
}

// byHand puts records of tables that are empty most of the time.
func (s *fullStore) byHand() {
	b := s.eng.store.newBatch()
	p := s.eng.partitionOf("erased")
	x := erasure{part: p.index, user: "erased", last: s.eng.events.newest(), at: s.clock.Now().UnixMilli()}
	q := s.eng.partitionOf(fullUser(0))
	n, ok := q.find(fullUser(0))
	require.True(s.t, ok)
	sec := q.presence.seen.Last(n)
	for k, v := range map[string][]byte{
		string(x.key()):                           x.encode(),
		string(heardKey(q.index, n)):              stampRecord(int64(sec))[4:],
		string(silentKey(q.index)):                stampRecord(int64(sec))[4:],
		string(quietKey(q.index, sec, 1)):         beatRecord([]uint32{n}),
		string(forgetKey(q.index, 1<<20)):         stampRecord(int64(sec))[4:],
		string(lostKey(dayID{0, 10000})):          nil,
		string(beatKey(q.index, sec)):             beatRecord([]uint32{n}),
		string(kindKey(0)):                        []byte("user"),
		string(departedKey(dayID{0, 12})):         nil,
		string(touchKey(q.index, 1<<20)):          {0, 2},
		string(goneKey(q.index, n)):               nil,
		string(touchedKey(q.index)):               {0, 2},
		string(closedKey(dayID{allKinds, 12345})): (&closedFigures{day: 1, week: 1, months: [3]int64{1, 1, 1}}).encode(),
	} {
		require.NoError(s.t, b.Set([]byte(k), v, nil))
	}
	require.NoError(s.t, s.eng.store.write(b))
}

// copied returns another file system with the same files.
func (s *fullStore) copied() *vfs.MemFS { return s.fs.CrashClone(vfs.CrashCloneCfg{}) }

func (s *fullStore) repair() (Repaired, error) {
	return Repair(s.t.Context(), storeName, s.options(), RepairOptions{Now: s.clock.Now()})
}

// filesOf lists the files of a directory and those below, with their sizes.
func filesOf(t testing.TB, fs vfs.FS, dir string) map[string]int64 {
	out := map[string]int64{}
	names, err := fs.List(dir)
	require.NoError(t, err)
	for _, name := range names {
		full := path.Join(dir, name)
		info, err := fs.Stat(full)
		require.NoError(t, err)
		if info.IsDir() {
			for name, size := range filesOf(t, fs, full) {
				out[name] = size
			}
			continue
		}
		out[full] = info.Size()
	}
	return out
}

func contentOf(t testing.TB, fs vfs.FS, name string) []byte {
	f, err := fs.Open(name)
	require.NoError(t, err)
	b, err := io.ReadAll(f)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	return b
}

func setContent(t testing.TB, fs vfs.FS, name string, b []byte) {
	f, err := fs.Create(name, vfs.WriteCategoryUnspecified)
	require.NoError(t, err)
	_, err = f.Write(slices.Clone(b))
	require.NoError(t, err)
	require.NoError(t, f.Sync())
	require.NoError(t, f.Close())
}

// change changes records of the store by hand.
func (s *fullStore) change(fn func(st *store, b *pebble.Batch)) {
	o := s.options()
	require.NoError(s.t, o.fill())
	st, err := openStore(storeName, &o, nil)
	require.NoError(s.t, err)
	b := st.newBatch()
	fn(st, b)
	require.NoError(s.t, st.write(b))
	require.NoError(s.t, st.close())
}

// tablesOfStore reads the names of the tables in the source.
func tablesOfStore(t *testing.T) map[string]byte {
	file, err := parser.ParseFile(token.NewFileSet(), "keys.go", nil, 0)
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
	err := st.scan(uninterrupted{}, key{table}, func(key, value []byte) error {
		k, v = slices.Clone(key), slices.Clone(value)
		return errStop
	})
	require.ErrorIs(s.t, err, errStop, "the store has no record of table %q", table)
	return k, v
}

func TestCheckNoticesAMissingRecordThatOthersSpeakOf(t *testing.T) {
	sound := newFullStore(t, 60, true)
	for _, table := range []byte{
		tabMeta, tabKind, tabFirst, tabAway, tabDay, tabEnded, tabEndedTok, tabEndedDue, tabFriend, tabNamedBy, tabRetry, tabRetryDue,
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
	s.open(0) // lets go of the journal
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

func TestAHoleInTheJournalRevivesNobodyAndUndoesNoBan(t *testing.T) {
	s := newFullStore(t, 20, true)
	ctx := t.Context()
	s.open(0)
	early := s.login("early", "")
	kicked := s.login("kicked", "")
	require.NoError(t, s.eng.store.journal.Sync())
	hole := s.eng.store.journal.Last()
	s.kick(kicked, "kicked")
	_, err := s.roll.Ban(ctx, "late", time.Hour*1000, "", "")
	require.NoError(t, err)
	s.banned["late"] = true
	require.NoError(t, s.roll.Erase(ctx, fullUser(3)))
	_, _, err = s.roll.Mark(ctx, rollcall.Mark{User: "late2", Day: rollcall.DayOf(s.clock.Now(), time.UTC)})
	require.NoError(t, err)
	crashed := s.fs.CrashClone(vfs.CrashCloneCfg{})
	s.close()
	s.fs = crashed
	s.damageRecord(hole + 1)

	_, err = Open(storeName, s.options())
	require.ErrorContains(t, err, "rollcall check")
	out, err := s.repair()
	require.NoError(t, err)
	require.Contains(t, fmt.Sprint(out.Losses), "commands in the journal")
	require.Contains(t, fmt.Sprint(out.Losses), "every live session has ended")
	s.open(0)
	defer s.close()
	for _, in := range []rollcall.LoggedIn{early, kicked} {
		_, err = s.roll.Verify(ctx, rollcall.SessionRef{Token: in.Token})
		require.Equal(t, rollcall.CodeSessionEnded, rollcall.CodeOf(err))
	}
	_, err = s.roll.Login(ctx, rollcall.Login{User: "late"})
	require.Equal(t, rollcall.CodeUserBanned, rollcall.CodeOf(err), "a ban behind the hole holds")
	require.False(t, s.eng.known(fullUser(3)), "an erasure behind the hole is carried out")
	_, err = s.roll.Login(ctx, rollcall.Login{User: "kicked"})
	require.NoError(t, err)
}

// damageRecord flips a byte of the group that holds a record of the journal.
func (s *fullStore) damageRecord(n uint64) {
	dir := storeName + "/journal"
	name := dir + "/" + lastOf(s.t, s.fs, dir)
	b := contentOf(s.t, s.fs, name)
	for i := range b {
		if string(b[i:min(len(b), i+4)]) == "grp1" && be64(b[i+8:]) <= n && n < be64(b[i+8:])+uint64(be32(b[i+16:])) {
			b[i+40] ^= 0x10
			setContent(s.t, s.fs, name, b)
			return
		}
	}
	s.t.Fatalf("record %d is not in %s", n, name)
}

func TestAStoreWhoseClockRanAheadIsBroughtBack(t *testing.T) {
	s := newFullStore(t, 30, true)
	ctx, present := t.Context(), s.clock.Now()
	before := map[string]string{}
	for text, user := range s.live {
		before[text] = user
	}
	s.clock.Set(present.Add(20 * time.Second)) // the server stood for no longer
	s.open(0)
	require.NoError(t, s.roll.Tick(ctx))
	s.clock.Set(present.Add(365 * 24 * time.Hour))
	future := s.login("future", "retry")
	_, err := s.roll.Ban(ctx, "banned-then", time.Hour, "", "")
	require.NoError(t, err)
	require.NoError(t, s.roll.Visit(ctx, "then", "v"))
	_, _, err = s.roll.Mark(ctx, rollcall.Mark{User: fullUser(2), Day: rollcall.DayOf(s.clock.Now(), time.UTC)})
	require.NoError(t, err)
	require.NoError(t, s.roll.Beat(ctx, "beat-then"))
	for text := range before {
		if _, err := s.roll.Touch(ctx, rollcall.SessionRef{Token: text}); err != nil {
			require.NoError(t, err, "the leap is an outage, and ends nobody")
		}
	}
	require.NoError(t, s.eng.Flush(ctx))
	s.close()

	s.clock.Set(present.Add(time.Minute))
	_, err = rollcall.New(s.mustOpen(), rollcall.Options{Clock: s.clock, Secret: make([]byte, 32)})
	require.ErrorContains(t, err, "check --repair")
	require.NoError(t, s.eng.Close())
	report, err := Check(storeName, s.options(), s.clock.Now())
	require.NoError(t, err)
	require.True(t, report.Ahead)
	out, err := s.repair()
	require.NoError(t, err)
	require.Contains(t, fmt.Sprint(out.Losses), "live sessions that began in the future")
	require.Contains(t, fmt.Sprint(out.Notes), "were set back")

	s.open(0)
	defer s.close()
	require.NoError(t, s.roll.Ready(ctx))
	_, err = s.roll.Verify(ctx, rollcall.SessionRef{Token: future.Token})
	require.Error(t, err)
	for text, user := range before {
		in, err := s.roll.Verify(ctx, rollcall.SessionRef{Token: text})
		require.NoError(t, err, user)
		require.False(t, in.SeenAt.After(s.clock.Now()))
	}
	delete(s.live, future.Token)
	delete(s.days, "future")
	s.compare("a clock that ran ahead", nil)
	in, err := s.roll.Login(ctx, rollcall.Login{User: "future"})
	require.NoError(t, err)
	_, err = s.roll.Verify(ctx, rollcall.SessionRef{Token: in.Token})
	require.NoError(t, err)
	_, err = s.roll.Login(ctx, rollcall.Login{User: "banned-then"})
	require.Equal(t, rollcall.CodeUserBanned, rollcall.CodeOf(err))
	s.clock.Advance(61 * time.Minute)
	_, err = s.roll.Login(ctx, rollcall.Login{User: "banned-then"})
	require.NoError(t, err, "a ban of an hour lasts an hour")
}

func (s *fullStore) mustOpen() *Engine {
	var err error
	s.eng, err = Open(storeName, s.options())
	require.NoError(s.t, err)
	return s.eng
}

// compare holds what the store answers to what is true: nothing may be there that
// is not true, and everything must be that no loss speaks of.
func (s *fullStore) compare(what string, losses []Loss) {
	ctx, r := context.Background(), require.New(s.t)
	lost := func(tables ...byte) bool {
		text := fmt.Sprint(losses)
		for _, t := range tables {
			if strings.Contains(text, fmt.Sprintf("(%c)", t)) {
				return true
			}
		}
		return strings.Contains(text, "commands in the journal")
	}
	for text, user := range s.live {
		if _, err := s.roll.Verify(ctx, rollcall.SessionRef{Token: text}); err != nil {
			r.True(lost(tabSession, tabTouch, tabTouched, tabMeta), "%s: the session of %s is lost: %v\n%v", what, user, err, losses)
			r.Contains([]rollcall.Code{rollcall.CodeUnauthenticated, rollcall.CodeSessionEnded}, rollcall.CodeOf(err))
		}
	}
	for text, user := range s.ended {
		_, err := s.roll.Verify(ctx, rollcall.SessionRef{Token: text})
		r.Error(err, "%s: an ended session of %s lives", what, user)
	}
	page, err := s.roll.Sessions(ctx, rollcall.SessionQuery{Page: rollcall.PageRequest{Limit: 1}})
	r.NoError(err)
	r.LessOrEqual(page.Total, len(s.live), what)
	s.compareDays(what, lost(tabDay, tabBlock, tabID, tabKind))
	for user := range s.friends {
		got, err := s.roll.Friends(ctx, user, rollcall.PageRequest{Limit: 100})
		r.NoError(err)
		for _, f := range got.Items {
			r.Contains(s.friends[user], f.User, what)
		}
		if !lost(tabFriend, tabBlock, tabID) {
			r.Len(got.Items, len(s.friends[user]), what)
		}
	}
	for i := range 3 {
		user := fmt.Sprint("banned", i)
		_, err := s.roll.Login(ctx, rollcall.Login{User: user})
		r.True(err != nil || lost(tabBan), "%s: the ban of %s is lost, and nothing says so", what, user)
	}
	for text, valid := range s.keys {
		_, err := s.roll.Authenticate(ctx, text)
		r.True(valid || err != nil, "%s: a revoked key is valid", what)
		r.True(!valid || err == nil || lost(tabKey), "%s: a key is lost, and nothing says so", what)
	}
	s.compareSeen(what, lost(tabSeen, tabBeat, tabForgot, tabBlock, tabID, tabSession, tabTouch, tabTouched, tabHeard, tabGone))
}

func (s *fullStore) compareDays(what string, lost bool) {
	r := require.New(s.t)
	first := rollcall.DayOf(startOfTests(), time.UTC) - 44
	last := rollcall.DayOf(s.clock.Now(), time.UTC)
	truth := map[rollcall.Day]int{}
	for user, days := range s.days {
		got, err := s.eng.daysOf(user, first, last)
		r.NoError(err)
		for _, d := range got {
			r.Contains(days, d, "%s: %s was not there", what, user)
		}
		for _, d := range days {
			truth[d]++
			r.True(lost || slices.Contains(got, d), "%s: the mark of %s on %v is lost, and nothing says so", what, user, d)
		}
	}
	for day := first; day <= last; day++ {
		n := 0
		for _, p := range s.eng.parts {
			for id, set := range p.days.sets {
				if rollcall.Day(id.day) == day {
					n += int(set.GetCardinality())
				}
			}
		}
		r.LessOrEqual(n, truth[day], "%s: %v", what, day)
	}
	for _, user := range s.erased {
		r.False(s.eng.known(user), "%s: %s was erased", what, user)
	}
}

// daysOf reads the hot days of a user.
func (e *Engine) daysOf(user string, from, to rollcall.Day) (out []rollcall.Day, err error) {
	p := e.partitionOf(user)
	n, ok := p.find(user)
	if !ok {
		return nil, nil
	}
	for id, set := range p.days.sets {
		if rollcall.Day(id.day) >= from && rollcall.Day(id.day) <= to && set.Contains(n) {
			out = append(out, rollcall.Day(id.day))
		}
	}
	return out, nil
}

func (s *fullStore) compareSeen(what string, lost bool) {
	r := require.New(s.t)
	for _, p := range s.eng.parts {
		for n := range p.dir.Limit() {
			if !p.dir.Has(n) {
				continue
			}
			user, last := p.dir.ID(n), p.presence.seen.Last(n)
			if last == 0 || strings.HasSuffix(user, "-then") || strings.HasPrefix(user, "banned") {
				continue
			}
			at, ok := s.seen[user]
			r.True(ok, "%s: %s was forgotten, and is remembered", what, user)
			r.LessOrEqual(int64(last), max(at.Unix(), s.clock.Now().Unix()), what)
		}
	}
	for user := range s.seen {
		p := s.eng.partitionOf(user)
		n, ok := p.find(user)
		r.True(lost || ok && p.presence.seen.Last(n) != 0, "%s: when %s was seen is lost, and nothing says so", what, user)
	}
}

func TestRandomDamageIsRepairedAndNoAnswerIsWrong(t *testing.T) {
	for _, closed := range []bool{true, false} {
		t.Run(fmt.Sprint("closed: ", closed), func(t *testing.T) {
			t.Parallel()
			sound := newFullStore(t, 120, closed)
			sound.asItIs()
			rng := rand.New(rand.NewPCG(7, 1)) //nolint:gosec // chance, not secrets
			var names []string
			for name := range filesOf(t, sound.fs, storeName) {
				names = append(names, name)
			}
			slices.Sort(names)
			repaired := 0
			for round := range testbudget.Rounds(t, testbudget.Budget{Least: 25, Time: 4 * time.Second}) {
				s := *sound
				s.t, s.fs = t, sound.copied()
				var did []string
				for range 1 + rng.IntN(3) {
					did = append(did, s.harm(rng, names))
				}
				what := fmt.Sprintf("round %d: %s", round, strings.Join(did, ", "))
				out, err := s.repair()
				if err != nil { // only if nobody can tell which tables count
					require.ErrorContains(t, err, "MANIFEST", what)
					continue
				}
				if out.Healthy { // bytes that mean nothing
					continue
				}
				repaired++
				report, err := Check(storeName, s.options(), s.clock.Now())
				require.NoError(t, err, what)
				require.Empty(t, report.Faults, what)
				s.clock = rollcall.NewManualClock(s.clock.Now())
				s.open(0)
				s.compare(what, out.Losses)
				s.close()
			}
			require.Positive(t, repaired)
		})
	}
}

// asItIs makes sure that the undamaged store says what is true.
func (s *fullStore) asItIs() {
	copied := *s
	copied.fs, copied.clock = s.copied(), rollcall.NewManualClock(s.clock.Now())
	copied.open(0)
	copied.compare("undamaged", nil)
	copied.close()
}

// harm damages one file.
func (s *fullStore) harm(rng *rand.Rand, names []string) string {
	for {
		name := names[rng.IntN(len(names))]
		b := []byte(nil)
		if exists(s.fs, name) {
			b = contentOf(s.t, s.fs, name)
		}
		used := len(b)
		if strings.Contains(name, "/journal/") { // most of it is zeros
			used = min(used, 24<<10)
		}
		if used == 0 || strings.HasSuffix(name, "LOCK") {
			continue
		}
		at := rng.IntN(used)
		switch rng.IntN(10) {
		case 0:
			require.NoError(s.t, s.fs.Remove(name))
			d, err := s.fs.OpenDir(path.Dir(name))
			require.NoError(s.t, err)
			require.NoError(s.t, d.Sync())
			require.NoError(s.t, d.Close())
			return name + " removed"
		case 1, 2:
			setContent(s.t, s.fs, name, b[:at])
			return fmt.Sprintf("%s cut at %d of %d", name, at, len(b))
		default:
			b[at] ^= 1 << rng.IntN(8)
			setContent(s.t, s.fs, name, b)
			return fmt.Sprintf("%s flipped at %d of %d", name, at, len(b))
		}
	}
}
