package local

import (
	"fmt"
	"io"
	"path"
	"slices"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
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
	r.NoError(s.eng.FinalizeFigures(ctx, "user", rollcall.DayRange{From: day, To: day}))
	maps, _, err := s.eng.ListDirty(ctx, "", 10000)
	r.NoError(err)
	_, err = s.eng.ClearDirty(ctx, maps[:len(maps)-1])
	r.NoError(err)
	_, err = s.eng.ClearDirty(ctx, maps)
	r.NoError(err)
	_, left, err := s.eng.Offload(ctx, "user", day)
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

// pass makes a link to the console.
func (s *fullStore) pass() {
	_, _, err := s.roll.NewConsoleLink(s.t.Context(), rollcall.APIKey{Role: rollcall.RoleAdmin}, rollcall.RoleAdmin)
	require.NoError(s.t, err)
}

// audit writes an entry about a user to the audit trail.
func (s *fullStore) audit() {
	ctx := rollcall.WithActor(s.t.Context(), "key:1")
	require.NoError(s.t, s.roll.Audit(ctx, rollcall.NewAuditEntry{Action: rollcall.AuditBanSet, User: "audited"}))
}

// webhook makes a webhook that has been served.
func (s *fullStore) webhook() {
	ctx, r := s.t.Context(), require.New(s.t)
	w, _, err := s.roll.CreateWebhook(ctx, rollcall.NewWebhook{URL: "https://example.com/"})
	r.NoError(err)
	now := s.clock.Now()
	ok, err := s.eng.LeaseWebhook(ctx, now, w.ID, "me", now.Add(time.Minute))
	r.NoError(err)
	r.True(ok)
	r.NoError(s.eng.SaveWebhookState(ctx, now, w.ID, "me", rollcall.WebhookState{
		FailingSince: now, Parked: []rollcall.WebhookMessage{{ID: "x", FirstAt: now, NextAt: now.Add(time.Hour)}},
	}))
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
	s.webhook()
	s.pass()
	s.audit()
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
	x := erasure{part: p.index, user: "erased", lastEvent: s.eng.events.newestSeq(), at: s.clock.Now().UnixMilli()}
	q := s.eng.partitionOf(fullUser(0))
	n, ok := q.find(fullUser(0))
	require.True(s.t, ok)
	sec := q.presence.seen.Last(n)
	for k, v := range map[string][]byte{
		string(x.key()):                            x.encode(),
		string(heardKey(q.index, n)):               stampRecord(int64(sec))[4:],
		string(silentKey(q.index)):                 stampRecord(int64(sec))[4:],
		string(quietKey(q.index, sec, 1)):          beatRecord([]uint32{n}),
		string(forgetKey(q.index, 1<<20)):          stampRecord(int64(sec))[4:],
		string(lostKey(dayID{0, 10000})):           nil,
		string(beatKey(q.index, sec)):              beatRecord([]uint32{n}),
		string(kindKey(0)):                         []byte("user"),
		string(offloadedKey(dayID{0, 12})):         nil,
		string(touchKey(q.index, 1<<20)):           {0, 2},
		string(goneKey(q.index, n)):                nil,
		string(touchedKey(q.index, 0)):             {0, 2},
		string(figuresKey(dayID{allKinds, 12345})): (&dayFigures{day: 1, week: 1, months: [3]int64{1, 1, 1}}).encode(),
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
