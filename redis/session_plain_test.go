package redis

import (
	"crypto/sha1" //nolint:gosec // the name Redis gives a script, no protection
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/testbudget"
)

// useScripts gives an engine other scripts, by their names.
func useScripts(t *testing.T, e *Engine, texts map[string]string) {
	t.Helper()
	edited := *e.scripts
	for name, text := range texts {
		s := edited.named()[name]
		*s = script{name: name}
		require.NoError(t, s.assemble(text))
		sum := sha1.Sum([]byte(s.text)) //nolint:gosec // the name Redis gives a script
		s.sha = hex.EncodeToString(sum[:])
		edited.all = append(slices.Clone(edited.all), s)
	}
	edited.classify()
	e.scripts = &edited
}

// splitAtPart returns the text of a script before and behind the line by which it takes a part.
func splitAtPart(t *testing.T, name, part string) (before, behind string) {
	t.Helper()
	source, err := sources.ReadFile("lua/" + name + ".lua")
	require.NoError(t, err)
	before, behind, found := strings.Cut(string(source), "-- needs: "+part+"\n")
	require.True(t, found)
	return before, behind
}

// TestPlainPagesAndLooksAreWhatAnyOtherIs has two servers live the same life, one of them without
// what answers plain pages and looks at sessions by itself, and compares what they answer.
func TestPlainPagesAndLooksAreWhatAnyOtherIs(t *testing.T) {
	t.Parallel()
	policies, err := rollcall.NewPolicies(
		rollcall.Policy{IdleTimeout: 30 * time.Second},
		rollcall.Policy{App: "bank", IdleTimeout: 20 * time.Second, Lifetime: 40 * time.Second},
	)
	require.NoError(t, err)
	o := rollcall.Options{Policies: policies}
	plain, other := newRig(t, 2, o), newRig(t, 2, o)
	pageBefore, pageBehind := splitAtPart(t, "list_page", "list_page_plain")
	lookBefore, lookBehind := splitAtPart(t, "session_lookup", "session_lookup_plain")
	useScripts(t, other.e, map[string]string{"list_page": pageBefore + pageBehind, "session_lookup": lookBefore + lookBehind})
	other.clock.Set(plain.clock.Now())
	rng := rand.New(rand.NewPCG(9, 9)) //nolint:gosec // a test's choice
	one := func(of ...string) string { return of[rng.IntN(len(of))] }
	var refs []rollcall.Ref
	for step := range testbudget.Rounds(t, testbudget.Budget{Least: 200, Most: 600, Time: time.Second}) {
		user, at := fmt.Sprint("user", rng.IntN(30)), plain.clock.Now()
		b := rollcall.StartSession{
			Session: rollcall.Session{User: user, App: one("", "shop", "bank")}, Random: uint64(step), Policies: policies,
		}
		if step%100 < 40 {
			b.Session.Kind = "staff"
		}
		b.Token.Home = uint16(rollcall.HashUser(user))
		copy(b.Token.Sum[:], fmt.Sprintf("%016d", step))
		refs = append(refs, rollcall.Ref{Token: &b.Token})
		action, pass := rng.IntN(12), time.Duration(max(0, rng.IntN(12000)-8000))*time.Millisecond
		if rng.IntN(30) == 0 {
			pass = time.Duration(6+rng.IntN(45)) * time.Second // an outage, in which no server ticks
		}
		invisible := rng.IntN(4) == 0 && step%200 < 100
		ref := refs[max(0, len(refs)-1-rng.IntN(80))]
		viewer := []rollcall.Viewer{rollcall.ViewerAdmin, rollcall.ViewerPublic}[rng.IntN(2)]
		q := rollcall.SessionQuery{
			Sort:   []rollcall.SessionSort{rollcall.NewestLogin, rollcall.OldestLogin}[rng.IntN(2)],
			Filter: rollcall.SessionFilter{App: one("", "", "bank")}, Page: rollcall.PageRequest{Limit: []int{0, 3, 500}[rng.IntN(3)]}, Viewer: viewer,
		}
		lookFirst := rng.IntN(2) == 0
		var answers [2][]any
		for i, r := range []*rig{plain, other} {
			say := func(answer any, err error) { answers[i] = append(answers[i], answer, err) }
			switch action {
			case 0:
				say(r.roll.Kick(t.Context(), rollcall.Kick{User: user}))
			case 1:
				say(r.roll.PutUser(t.Context(), user, rollcall.UserPatch{Invisible: &invisible}))
			case 2, 3:
				say(nil, r.roll.Tick(t.Context()))
			case 4:
				say(r.e.Touch(t.Context(), at, []rollcall.Ref{ref}, policies))
			default:
				say(r.e.StartSession(t.Context(), at, b))
			}
			r.clock.Advance(pass)
			if lookFirst {
				say(r.e.Lookup(t.Context(), r.clock.Now(), ref, viewer))
			}
			say(r.e.List(t.Context(), r.clock.Now(), q))
			say(r.e.Lookup(t.Context(), r.clock.Now(), ref, viewer))
			say(r.e.List(t.Context(), r.clock.Now(), q))
		}
		require.Equal(t, answers[1], answers[0], "step %d", step)
	}
}

// TestPlainPartsAnswerPagesAndLooks takes all from these scripts but the parts for what is plain.
func TestPlainPartsAnswerPagesAndLooks(t *testing.T) {
	t.Parallel()
	r := newRig(t, 2, rollcall.Options{})
	var in rollcall.LoggedIn
	for i := range 10 {
		var err error
		in, err = r.roll.Login(t.Context(), rollcall.Login{User: fmt.Sprint("user", i)})
		require.NoError(t, err)
	}
	page, _ := splitAtPart(t, "list_page", "list_page_plain")
	look, _ := splitAtPart(t, "session_lookup", "session_lookup_plain")
	useScripts(t, r.e, map[string]string{
		"list_page":      page + "-- needs: list_page_plain\nerror('not plain')\n",
		"session_lookup": look + "-- needs: session_lookup_plain\nerror('not plain')\n",
	})
	for _, viewer := range []rollcall.Viewer{rollcall.ViewerAdmin, rollcall.ViewerPublic} {
		page, err := r.roll.As(viewer).Sessions(t.Context(), rollcall.SessionQuery{Page: rollcall.PageRequest{Limit: 4}})
		require.NoError(t, err)
		require.Equal(t, 10, page.Total)
		require.Len(t, page.Items, 4)
	}
	_, err := r.roll.Verify(t.Context(), rollcall.SessionRef{Token: in.Token})
	require.NoError(t, err)
}

// TestPlainLoginsAndBeatsWriteWhatAnyOtherDoes has two servers carry out the same commands, one
// of them without what answers plain logins and beats by itself, and compares all that they hold.
func TestPlainLoginsAndBeatsWriteWhatAnyOtherDoes(t *testing.T) {
	t.Parallel()
	policies, err := rollcall.NewPolicies(
		rollcall.Policy{App: "bank", IdleTimeout: 20 * time.Second, Lifetime: time.Minute, MaxSessions: 2},
		rollcall.Policy{Device: "ios", IdleTimeout: 40 * time.Second, MaxPerDevice: 1, Overflow: rollcall.Reject},
		rollcall.Policy{App: "bank", Device: "web", IdleTimeout: 10 * time.Second},
	)
	require.NoError(t, err)
	plain, other := newRig(t, 1, rollcall.Options{}), newRig(t, 1, rollcall.Options{})
	before, behind := splitAtPart(t, "session_start", "session_start_plain")
	useScripts(t, other.e, map[string]string{
		"session_start": before + behind,
		"presence_beat": "-- needs: env bytes invisible event presence\nrecordBeat(argumentsFrom(2))\nreturn done(1)\n",
	})
	other.clock.Set(plain.clock.Now())

	// Users come, go, and come back, with every setting that a login may have.
	rng := rand.New(rand.NewPCG(7, 7)) //nolint:gosec // a test's choice
	one := func(of ...string) string { return of[rng.IntN(len(of))] }
	var started rollcall.TokenHash // of a login before
	for step := range testbudget.Rounds(t, testbudget.Budget{Least: 300, Most: 1_000, Time: time.Second}) {
		user, at := fmt.Sprint("user", rng.IntN(16)), plain.clock.Now()
		b := rollcall.StartSession{
			Session: rollcall.Session{
				User: user, Kind: one("", "", "staff", "guest"), Name: one("", "Anna"), App: one("", "shop", "bank"), Device: one("", "ios", "web"),
				DeviceID: one("", "", "a", "b"), UserAgent: one("", "Browser/1"), Attrs: map[string]string{"city": one("Ulm", "Bern")},
			},
			Random: rng.Uint64N(8), Policies: policies, MarkToday: rng.IntN(8) > 0, Today: rollcall.DayOf(at, time.UTC) - rollcall.Day(rng.IntN(3)),
		}
		if rng.IntN(2) == 0 {
			b.Session.IP = netip.AddrFrom4([4]byte{10, 0, 0, byte(rng.IntN(4))})
		}
		if len(user) == len("user0") && user < "user4" { // sessions of one timeout alone
			b.Session.App, b.Session.Device, b.Session.DeviceID = "bank", "web", ""
		}
		b.Token.Home = uint16(rollcall.HashUser(user))
		copy(b.Token.Sum[:], fmt.Sprintf("%016d", step))
		copy(b.BanKey[:], user)
		action, pass := rng.IntN(40), time.Duration(max(0, rng.IntN(6000)-2000))*time.Millisecond
		invisible, beside := step%3 == 0, fmt.Sprint("user", rng.IntN(40))
		var answers [2]string
		for i, r := range []*rig{plain, other} {
			var answer any
			var err error
			switch action {
			case 0:
				answer, err = r.roll.Kick(t.Context(), rollcall.Kick{User: user})
			case 1, 3, 4:
				var left rollcall.Session
				left, err = r.e.Leave(t.Context(), at, rollcall.Ref{Token: &started})
				if end := left.End; end != nil { // it stands there by its address
					left.End = nil
					answer = []any{left, *end}
				} else {
					answer = left
				}
			case 2:
				err = r.roll.Tick(t.Context())
			case 5, 7, 8, 9:
				err = r.roll.Beat(t.Context(), user, beside, "user1")
			case 6:
				_, err = r.roll.PutUser(t.Context(), user, rollcall.UserPatch{Invisible: &invisible})
			default:
				answer, err = r.e.StartSession(t.Context(), at, b)
			}
			answers[i] = fmt.Sprint(answer, err)
			r.clock.Advance(pass)
		}
		require.Equal(t, answers[1], answers[0], "step %d", step)
		if step%4 == 0 {
			started = b.Token
		}
		if step%100 == 99 {
			require.Equal(t, other.contents(t, 0), plain.contents(t, 0), "after step %d", step)
		}
	}

	// The part answers a first login and the next ones by itself.
	useScripts(t, plain.e, map[string]string{"session_start": before + "-- needs: session_start_plain\nreturn {'conflict'}\n"})
	for range 3 {
		_, err := plain.roll.Login(t.Context(), rollcall.Login{User: "somebody", App: "shop"})
		require.NoError(t, err)
	}
}

// ownValues are fields of a partition's state whose values no other server has: places of
// events, stamps, and who holds the lease.
var ownValues = map[string]bool{"lastevent": true, "lastpublic": true, "markchange": true, "eventfloor": true, "leaseholder": true, "leaseuntil": true}

// contents returns what a partition holds: texts by key. Of events it leaves out the places, of
// the rest what no other server has.
func (r *rig) contents(t *testing.T, p int) map[string]string {
	t.Helper()
	ctx, c := t.Context(), r.e.client
	keys, err := c.Do(ctx, c.B().Keys().Pattern(r.e.keyPrefixes[p]+":*").Build()).AsStrSlice()
	require.NoError(t, err)
	out := make(map[string]string)
	for _, key := range keys {
		if name := strings.TrimPrefix(key, r.e.keyPrefixes[p]+":"); strings.HasPrefix(name, "answer:") || strings.HasPrefix(name, "tally:") {
			continue
		}
		kind, err := c.Do(ctx, c.B().Type().Key(key).Build()).ToString()
		require.NoError(t, err)
		switch kind {
		case "string":
			out[key], err = c.Do(ctx, c.B().Get().Key(key).Build()).ToString()
		case "hash":
			var fields map[string]string
			fields, err = c.Do(ctx, c.B().Hgetall().Key(key).Build()).AsStrMap()
			for field := range ownValues {
				if _, has := fields[field]; has && strings.HasSuffix(key, ":part") {
					fields[field] = "some"
				}
			}
			out[key] = fmt.Sprintf("%q", fields) // by field
		case "set":
			var members []string
			members, err = c.Do(ctx, c.B().Smembers().Key(key).Build()).AsStrSlice()
			slices.Sort(members)
			out[key] = fmt.Sprintf("%q", members)
		case "zset":
			var members []rueidis.ZScore
			members, err = c.Do(ctx, c.B().Zrange().Key(key).Min("0").Max("-1").Withscores().Build()).AsZScores()
			out[key] = fmt.Sprintf("%v", members)
		case "stream":
			var entries []rueidis.XRangeEntry
			entries, err = c.Do(ctx, c.B().Xrange().Key(key).Start("-").End("+").Build()).AsXRange()
			for _, entry := range entries {
				out[key] += fmt.Sprintf("%q", entry.FieldValues)
			}
		default:
			require.Fail(t, "a key of an unknown type", "%s %s", key, kind)
		}
		require.NoError(t, err)
	}
	return out
}
