package local

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/casefold"
	"github.com/rollcall/rollcall/internal/testbudget"
)

// filterWorld is a service with sessions of few partitions, so that each has many.
type filterWorld struct {
	*require.Assertions
	t     *testing.T
	rng   *rand.Rand
	clock *rollcall.ManualClock
	roll  *rollcall.Roll
	users []string
}

func newFilterWorld(t *testing.T) *filterWorld {
	w := &filterWorld{
		Assertions: require.New(t), t: t, rng: rand.New(rand.NewPCG(5, 6)),
		clock: rollcall.NewManualClock(startOfTests()),
	}
	eng, err := Open("", Options{InMemory: true})
	w.NoError(err)
	w.roll, err = rollcall.New(eng, rollcall.Options{Clock: w.clock})
	w.NoError(err)
	t.Cleanup(func() { w.NoError(w.roll.Close()); w.NoError(eng.Close()) })
	for i := 0; len(w.users) < 200; i++ {
		if u := strconv.Itoa(i); eng.partitionOf(u).index < 2 {
			w.users = append(w.users, u)
		}
	}
	return w
}

func oneOf[T any](w *filterWorld, of ...T) T { return of[w.rng.IntN(len(of))] }

// name draws names that many sessions share, names of one session, and names that only
// folding makes alike.
func (w *filterWorld) name() string {
	return oneOf(w, "", "Anna", "ANNABEL", "anna lee", "Ölaf", "ölga", "K", "\u212aelvin", "kelvin", "ſam", "Sam",
		fmt.Sprintf("Anna %d", w.rng.IntN(1<<30)), fmt.Sprintf("Ö%d", w.rng.IntN(1<<30)), strings.Repeat("long ", w.rng.IntN(20)))
}

func (w *filterWorld) attrs() map[string]string {
	out := make(map[string]string)
	for range w.rng.IntN(rollcall.MaxAttrs) {
		key, value := w.attr()
		out[key] = value
	}
	return out
}

func (w *filterWorld) attr() (key, value string) {
	key = oneOf(w, "city", "plan", "trace", "plan\u2011b", "k"+strconv.Itoa(w.rng.IntN(12)))
	return key, oneOf(w, "", "plan", "city", "v"+strconv.Itoa(w.rng.IntN(5)), fmt.Sprintf("%08x", w.rng.Uint32()), fmt.Sprintf("%08x", w.rng.IntN(20)))
}

func (w *filterWorld) ip() netip.Addr {
	b := byte(w.rng.IntN(4))
	return oneOf(w, netip.Addr{}, netip.AddrFrom4([4]byte{10, b, byte(w.rng.IntN(3)), byte(w.rng.IntN(256))}),
		netip.AddrFrom4([4]byte{0, 0, 0, b}), netip.AddrFrom4([4]byte{0x20, 0x01, 0x0d, 0xb8}),
		netip.MustParseAddr(fmt.Sprintf("2001:db8:%x::%x", b, w.rng.IntN(300))), netip.MustParseAddr(fmt.Sprintf("a0%d:0::1", b)))
}

// live lets some time pass, in which sessions begin, change, are touched and end.
func (w *filterWorld) live() {
	ctx := w.t.Context()
	for range 150 {
		w.clock.Advance(time.Duration(w.rng.IntN(3)) * time.Second)
		in, err := w.roll.Login(ctx, rollcall.Login{
			User: oneOf(w, w.users...), Kind: oneOf(w, "", "staff"), App: oneOf(w, "", "shop", "chat"), Device: oneOf(w, "", "web", "ios"),
			Name: w.name(), IP: w.ip(), UserAgent: oneOf(w, "", "curl"), DeviceID: oneOf(w, "", "", "d1"), Attrs: w.attrs(),
		})
		w.NoError(err)
		id := in.Session.ID
		switch w.rng.IntN(6) {
		case 0:
			_, err = w.roll.Kick(ctx, rollcall.Kick{Session: id})
		case 1:
			name, attrs := w.name(), w.attrs()
			_, err = w.roll.UpdateSession(ctx, id, rollcall.SessionPatch{Name: &name, Attrs: &attrs})
		case 2:
			hide := w.rng.IntN(2) == 0
			_, err = w.roll.PutUser(ctx, oneOf(w, w.users...), rollcall.UserPatch{Invisible: &hide})
		case 3:
			_, err = w.roll.Kick(ctx, rollcall.Kick{User: oneOf(w, w.users...)})
		}
		w.NoError(err)
	}
}

// filter draws conditions, some of which no session meets.
func (w *filterWorld) filter() rollcall.SessionFilter {
	var f rollcall.SessionFilter
	for range 1 + w.rng.IntN(2) {
		switch w.rng.IntN(8) {
		case 0, 1:
			f.Name = oneOf(w, "a", "Anna", "anna ", "ANNAB", "ö", "Ö1", "k", "\u212a", "kel", "s", "long long", "none", w.name())
		case 2, 3:
			f.Attrs = make(map[string]string)
			for range 1 + w.rng.IntN(2) {
				key, value := w.attr()
				f.Attrs[key] = value
			}
		case 4, 5:
			addr := oneOf(w, netip.MustParseAddr("10.1.1.7"), netip.MustParseAddr("0.0.0.1"), netip.MustParseAddr("2001:db8:1::5"), netip.MustParseAddr("32.1.13.184"))
			f.IP = netip.PrefixFrom(addr, w.rng.IntN(addr.BitLen()+1)).Masked()
		case 6:
			f.SeenWithin = time.Duration(1+w.rng.IntN(300)) * time.Second
		default:
			f.Kind, f.App, f.Device = oneOf(w, "", "staff"), oneOf(w, "", "shop"), oneOf(w, "", "web")
			f.LoginAfter = w.clock.Now().Add(-time.Duration(w.rng.IntN(600)) * time.Second)
		}
	}
	return f
}

// meets says what the filter means for one session.
func meets(f *rollcall.SessionFilter, s *rollcall.Session, now time.Time) bool {
	for key, want := range f.Attrs {
		if value, has := s.Attrs[key]; !has || value != want {
			return false
		}
	}
	return (f.Kind == "" || s.Kind == f.Kind) && (f.App == "" || s.App == f.App) && (f.Device == "" || s.Device == f.Device) &&
		strings.HasPrefix(casefold.Fold(s.Name), casefold.Fold(f.Name)) && (!f.IP.IsValid() || f.IP.Contains(s.IP)) &&
		(f.LoginAfter.IsZero() || !s.LoginAt.Before(f.LoginAfter)) && (f.SeenWithin == 0 || !s.SeenAt.Before(now.Add(-f.SeenWithin)))
}

// all returns the sessions of a query, page by page.
func (w *filterWorld) all(view *rollcall.Roll, q rollcall.SessionQuery) (out []rollcall.Session, total int) {
	q.Page = rollcall.PageRequest{Limit: rollcall.MaxLimit}
	for {
		page, err := view.Sessions(w.t.Context(), q)
		w.NoError(err)
		out, total = append(out, page.Items...), page.Total
		if q.Page.Cursor = page.Next; page.Next == "" {
			return out, total
		}
	}
}

func TestFilteredListsAreThoseOfAPlainScan(t *testing.T) {
	w := newFilterWorld(t)
	found := 0
	for range testbudget.Rounds(t, testbudget.Budget{Least: 6, Most: 60, Time: 2 * time.Second}) {
		w.live()
		for _, viewer := range []rollcall.Viewer{rollcall.ViewerAdmin, rollcall.ViewerPublic} {
			view := w.roll.As(viewer)
			every, total := w.all(view, rollcall.SessionQuery{})
			w.Len(every, total)
			for range 40 {
				f := w.filter()
				want := slices.DeleteFunc(slices.Clone(every), func(s rollcall.Session) bool { return !meets(&f, &s, w.clock.Now()) })
				found += len(want)
				got, total := w.all(view, rollcall.SessionQuery{Filter: f})
				w.Equal(len(want), total, "%+v", f)
				w.Equal(idsOf(want), idsOf(got), "%+v", f)
				seen, total := w.all(view, rollcall.SessionQuery{Filter: f, Sort: rollcall.NewestSeen})
				w.Equal(len(want), total, "%+v", f)
				w.Equal(sortedIDs(want), sortedIDs(seen), "%+v", f)
			}
		}
	}
	w.Positive(found)
}

func idsOf(sessions []rollcall.Session) []rollcall.SessionID {
	out := make([]rollcall.SessionID, len(sessions))
	for i, s := range sessions {
		out[i] = s.ID
	}
	return out
}

func sortedIDs(sessions []rollcall.Session) []rollcall.SessionID {
	out := idsOf(sessions)
	slices.SortFunc(out, func(a, b rollcall.SessionID) int { return bytes.Compare(a[:], b[:]) })
	return out
}

// TestFewSessionsHaveTheSignOfAnAttributeThatTheyHaveNot: a scan reads the texts of each.
func TestFewSessionsHaveTheSignOfAnAttributeThatTheyHaveNot(t *testing.T) {
	const sessions = 20_000
	wanted, inVain := attrSign("trace", "wanted"), 0
	for i := range sessions {
		sign := attrsSignOf(map[string]string{
			"city": fmt.Sprint("city ", i%1000), "plan": fmt.Sprint("plan ", i%10), "ref": fmt.Sprint("ref ", i*7%1000),
			"ver": fmt.Sprint("2.", i%100), "req": fmt.Sprintf("%08x", i), "trace": fmt.Sprintf("%08x", ^i),
		})
		if sign&wanted == wanted {
			inVain++
		}
	}
	require.Less(t, inVain, sessions*15/1000, "of %d sessions", sessions)
}
