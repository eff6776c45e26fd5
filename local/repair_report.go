package local

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/rollcall/rollcall"
)

// namedUsers bounds the users that a loss names.
const namedUsers = 50

func (r *repair) addLoss(what, advice string) {
	info, _ := infoOf(tabMeta)
	r.out.Losses = append(r.out.Losses, Loss{What: what, Tables: titled(info), Records: 1, Advice: advice})
}

// reportAhead says what a clock that ran ahead cost.
func (r *repair) reportAhead(b *backSetter, latest time.Time) {
	r.out.Notes = append(r.out.Notes, fmt.Sprintf("A clock that ran ahead had written %s: %d records were set back to %s.",
		latest.UTC().Format(time.RFC3339), b.set, r.ro.Now.UTC().Format(time.RFC3339)))
	advice := map[string]string{
		"live sessions that began in the future":  "Their users have to log in again.",
		"ended sessions that began in the future": "Their clients are told that they are not logged in, instead of why.",
		"marks of days in the future":             "Nobody can tell of which days they are.",
	}
	for _, what := range slices.Sorted(maps.Keys(b.counts)) {
		r.out.Losses = append(r.out.Losses, Loss{What: what, Records: b.counts[what], Advice: advice[what]})
	}
}

// reportLosses says what is lost.
func (r *repair) reportLosses() error {
	c := newChecker(r.target, Report{})
	c.allIDs()
	missing, err := r.namedInEvents(c)
	if err != nil {
		return err
	}
	for i := range r.kept {
		r.out.Losses = append(r.out.Losses, r.lossOf(&r.kept[i], c, missing))
	}
	m := r.mend
	for _, info := range tableInfos() {
		d := m.dropped[info.table]
		if d == nil {
			continue
		}
		loss := Loss{What: info.name + " that contradict the rest, or cannot be read", Tables: titled(info), Records: d.n, Advice: adviceOn(info.table)}
		for i, k := range d.keys {
			loss.Keys = append(loss.Keys, fmt.Sprintf("%x: %s", k, d.why[i]))
		}
		r.out.Losses = append(r.out.Losses, loss)
	}
	if m.undated > 0 {
		r.out.Losses = append(r.out.Losses, Loss{What: "since when users are friends: they are, and the date is that of the repair", Tables: "friends (f)", Records: m.undated})
	}
	if m.guessed > 0 {
		r.out.Losses = append(r.out.Losses, Loss{
			What: "first days of users whose earlier marks are in the archive: they are new on the first day that is here", Tables: "first days (F)", Records: m.guessed,
		})
	}
	slices.Sort(m.kinds)
	for _, kind := range slices.Compact(m.kinds) {
		r.out.Losses = append(r.out.Losses, Loss{What: fmt.Sprintf("the name of a kind of users: it is %q now", lostKind(kind)), Tables: "kinds of users (c)", Records: 1})
	}
	return nil
}

func titled(info tableInfo) string { return fmt.Sprintf("%s (%c)", info.name, info.table) }

// lossOf describes what a damaged table file costs.
func (r *repair) lossOf(d *damagedFile, c *checker, missing map[byte][]string) Loss {
	loss := Loss{What: fmt.Sprintf("what stood in %s, at offset %d: %s", d.name, d.offset, plain(d.err)), Records: d.unread, Tables: tablesIn(d.keys)}
	if d.offset == 0 {
		loss.What = fmt.Sprintf("what stood in %s: %s", d.name, plain(d.err))
	}
	for _, k := range d.keys[:min(len(d.keys), namedDrops)] {
		loss.Keys = append(loss.Keys, fmt.Sprintf("%x … %x", k.from, k.to))
	}
	for _, info := range tableInfos() {
		if a := adviceOn(info.table); a != "" && lostRanges(d.keys).overlap(key{info.table}) {
			loss.Advice += a + " "
		}
	}
	loss.Users = usersIn(d.keys, c, missing)
	loss.Days = daysIn(d.keys)
	return loss
}

// usersIn names the users of whom records are in ranges of keys; none if they are too many. missing has,
// by table, users whose records the events prove to be lost.
func usersIn(ranges lostRanges, c *checker, missing map[byte][]string) []string {
	users := make(map[string]bool)
	for _, info := range tableInfos() {
		if !ranges.overlap(key{info.table}) {
			continue
		}
		for _, user := range missing[info.table] {
			users[user] = true
		}

		// Of tables by number, but for those in which nearly all users have no record.
		if !info.number || info.table == tabNamedBy || info.table == tabForgot || info.table == tabGone {
			continue
		}
		for n, id := range c.ids {
			if len(users) <= namedUsers && ranges.has(newKey(info.table, 5).u8(n.part()).u24(n.number())) {
				users[id] = true
			}
		}
	}
	if len(users) > namedUsers {
		return nil
	}
	return slices.Sorted(maps.Keys(users))
}

// daysIn names the days of attendance that ranges of keys may hold: from one to another, or "any".
func daysIn(ranges []keyRange) string {
	from, to := int32(math.MaxInt32), int32(math.MinInt32)
	for _, r := range ranges {
		if !(lostRanges{r}).overlap(key{tabDay}) {
			continue
		}
		if len(r.from) < 7 || len(r.to) < 7 || r.from[0] != tabDay || r.to[0] != tabDay || string(r.from[:3]) != string(r.to[:3]) {
			return "any"
		}
		from, to = min(from, dayOfKey(r.from).day), max(to, dayOfKey(r.to).day)
	}
	if from > to {
		return ""
	}
	return fmt.Sprintf("%v to %v", rollcall.Day(from), rollcall.Day(to))
}

// namedInEvents finds, by table, users who have a live session or a ban by the events, and none in
// the store.
func (r *repair) namedInEvents(c *checker) (map[byte][]string, error) {
	begun, banned := make(map[rollcall.SessionID]string), make(map[string]bool)
	err := r.target.scan(r.ctx, newKey(tabEvent, 1), func(k, v []byte) error {
		events, err := decodeEvents(sessionFamily, k, v)
		if err != nil {
			return nil //nolint:nilerr // there is none: it was checked
		}
		switch e := events[0]; e.Type {
		case rollcall.SessionStarted:
			begun[e.Session] = e.User
		case rollcall.SessionEnded:
			delete(begun, e.Session)
		case rollcall.UserBanned:
			banned[e.User] = true
		case rollcall.UserUnbanned:
			delete(banned, e.User)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	err = r.target.scan(r.ctx, newKey(tabBan, 1), func(k, v []byte) error {
		if ban, err := decodeBan(rollcall.BanKey(k[2:]), v); err == nil {
			delete(banned, ban.User)
		}
		return nil
	})
	out := make(map[byte][]string)
	for id, user := range begun {
		p := uint8(rollcall.HashUser(user) & uint64(c.parts-1))
		if k := sessionKey(p, id); r.mend.lost.has(k) && !r.holds(k) && !r.holds(endedKey(p, id)) {
			out[tabSession] = append(out[tabSession], user)
		}
	}
	for user := range banned {
		if p := uint8(rollcall.HashUser(user) & uint64(c.parts-1)); r.mend.lost.overlap(newKey(tabBan, 2).u8(p)) {
			out[tabBan] = append(out[tabBan], user)
		}
	}
	return out, err
}

// adviceOn says what to do about lost records of a table.
func adviceOn(table byte) string {
	switch table {
	case tabBan:
		return "Bans may be lost: ban again whom you banned."
	case tabErasure:
		return "Erasures that were not finished may be lost: erase again whom you erased last."
	case tabKey:
		return "API keys may be lost: make them anew (rollcall key list)."
	case tabPass:
		return "Who was signed in to the console signs in again."
	case tabWebhook:
		return "Webhooks may be lost: make them anew (rollcall webhooks list)."
	case tabAudit:
		return "Entries of the audit trail may be lost: rollcall audit verify names the first that is missing."
	case tabAuditSalt:
		return "Of users whose salt is lost, older entries of the audit trail are found no more by their id."
	case tabHookState:
		return "Webhooks whose state is lost begin anew where they were made: receivers get events again, or a reset."
	case tabBlock, tabID:
		return "Of users whose ids are lost, all that stood under their numbers is lost too."
	case tabUser:
		return "Settings of users may be lost: kind, name, and that they are invisible."
	case tabSession:
		return "Users whose sessions are lost have to log in again."
	case tabDay:
		return "Marks may be lost: counts of these days are less than they were."
	case tabForgot:
		return "Last-seen times of the users there are forgotten, as some of them had to be."
	case tabGone:
		return "Users there who have no session are offline until they are heard."
	case tabTouch, tabTouched:
		return "Sessions whose last touches are lost end earlier."
	case tabEvent, tabPresEvent:
		return "Events are lost: readers are told to begin anew."
	default:
		return ""
	}
}
