package redis

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/enginekit"
)

// snapshotOf reads what transfer_read.lua returns for one user.
func (x *partExport) snapshotOf(ctx context.Context, user string, msg rueidis.RedisMessage) (rollcall.UserSnapshot, error) {
	d := rollcall.UserSnapshot{User: user}
	f, err := msg.ToArray()
	if err != nil || (len(f) != 7 && len(f) != 11) {
		return d, damaged("the answer to an export")
	}
	d.Kind, _ = f[0].ToString() // nil if it was never set
	d.Name, _ = f[1].ToString()
	if n, _ := f[2].AsInt64(); n == 1 {
		frozen, _ := f[3].AsInt64()
		d.Invisible, d.Frozen = true, enginekit.TimeOfSecond(frozen)
	}
	if score, _ := f[4].ToString(); score != "" {
		sec, err := strconv.ParseFloat(score, 64)
		if err != nil {
			return d, damaged("a last-seen time")
		}
		d.Gone = sec < 0
		d.LastSeen = enginekit.TimeOfSecond(int64(max(sec, -sec)))
	}
	away, err := f[6].AsInt64()
	if err != nil {
		return d, damaged("where a user's marks are")
	}
	d.Archived = away == 1

	// The lists: in the answer, or to be read in steps.
	if len(f) == 7 {
		err = x.readLarge(ctx, &d)
	} else {
		err = x.readLists(&d, f)
	}
	for _, ban := range x.bans.byUser[user] {
		d.Bans = append(d.Bans, rollcall.BanSnapshot{Ban: ban, Home: uint16(rollcall.HashUser(user)), Bits: 16})
	}

	// In an order that does not depend on the engine.
	slices.SortFunc(d.Friends, func(a, b rollcall.Friend) int { return strings.Compare(a.User, b.User) })
	slices.SortFunc(d.Sessions, compareSnapshots)
	slices.SortFunc(d.Ended, compareSnapshots)
	for _, days := range d.Days {
		slices.Sort(days)
	}
	return d, err
}

// readLists reads the lists of an answer: friends, sessions, ended sessions and days.
func (x *partExport) readLists(d *rollcall.UserSnapshot, f []rueidis.RedisMessage) error {
	friends, err := f[7].AsZScores()
	if err != nil {
		return damaged("a list of friends")
	}
	for _, s := range friends {
		d.Friends = append(d.Friends, rollcall.Friend{User: s.Member, Since: enginekit.TimeOrZero(int64(s.Score))})
	}
	if d.Sessions, err = liveSnapshots(f[8]); err != nil {
		return err
	}
	if d.Ended, err = x.endedSnapshots(f[9]); err != nil {
		return err
	}
	return x.daysOf(d, f[5], f[10])
}

// sessionsOfUserStep is how many sessions of one user a script reads.
const sessionsOfUserStep = 100

// readLarge reads in steps what is too much for one script to return.
func (x *partExport) readLarge(ctx context.Context, d *rollcall.UserSnapshot) error {
	list, err := x.e.friendsOf(ctx, x.at.UnixMilli(), d.User)
	if err != nil {
		return err
	}
	d.Friends = list.friends
	for _, order := range []string{"u", "e"} {
		err := x.e.eachSessionOf(ctx, x.at.UnixMilli(), d.User, order, func(r *record) {
			if order == "e" {
				x.exported[idText(r.ID)] = true
				d.Ended = append(d.Ended, r.snapshot())
			} else {
				d.Sessions = append(d.Sessions, r.snapshot())
			}
		})
		if err != nil {
			return err
		}
	}
	days, err := x.e.daysOfUser(ctx, d.User, "", allDays)
	for _, day := range days {
		if d.Days == nil {
			d.Days = make(map[string][]rollcall.Day)
		}
		d.Days[day.Kind] = append(d.Days[day.Kind], day.Day)
	}
	return err
}

// eachSessionOf reads a user's sessions in steps and calls each: those that live (order "u") or
// those that ended ("e").
func (e *Engine) eachSessionOf(ctx context.Context, now int64, user, order string, each func(*record)) error {
	for at, behind := "", ""; ; {
		msg, err := e.one(ctx, now, partCall(e.partOf(user), &e.scripts.sessionOfUser, user, order, at, behind, strconv.Itoa(sessionsOfUserStep)))
		if err != nil {
			return err
		}
		reply, err := msg.ToArray()
		if err != nil || len(reply) < 2 {
			return damaged("a list of sessions")
		}
		at, _ = reply[0].ToString()
		behind, _ = reply[1].ToString()
		for _, m := range reply[2:] {
			r, err := unpackFound(m)
			if rollcall.CodeOf(err) == rollcall.CodeNotFound {
				continue
			}
			if err != nil {
				return err
			}
			each(&r)
		}
		if behind == "" {
			return nil
		}
	}
}

func liveSnapshots(msg rueidis.RedisMessage) ([]rollcall.SessionSnapshot, error) {
	list, err := msg.ToArray()
	if err != nil {
		return nil, damaged("a list of sessions")
	}
	var out []rollcall.SessionSnapshot
	for _, m := range list {
		r, err := unpackFound(m)
		if err != nil {
			return nil, err
		}
		out = append(out, r.snapshot())
	}
	return out, nil
}

func compareSnapshots(a, b rollcall.SessionSnapshot) int { return slices.Compare(a.ID[:], b.ID[:]) }

func (r *record) snapshot() rollcall.SessionSnapshot {
	k := rollcall.SessionSnapshot{Session: r.Session, Token: rollcall.TokenKey([]byte(r.token))}
	if r.End == nil {
		k.Idle, k.Lifetime = time.Duration(r.idle)*time.Millisecond, time.Duration(r.life)*time.Millisecond
	}
	return k
}

func (x *partExport) endedSnapshots(msg rueidis.RedisMessage) ([]rollcall.SessionSnapshot, error) {
	list, err := msg.AsStrSlice()
	if err != nil || len(list)%2 != 0 {
		return nil, damaged("a list of ended sessions")
	}
	var out []rollcall.SessionSnapshot
	for i := 0; i < len(list); i += 2 {
		r, err := unpackEnd(idOf(list[i]), list[i+1])
		if err != nil {
			return nil, err
		}
		x.exported[list[i]] = true
		out = append(out, r.snapshot())
	}
	return out, nil
}

// daysOf adds the days of a user: from the sets that were read at first, or from what the
// script returned if marks have changed since.
func (x *partExport) daysOf(d *rollcall.UserSnapshot, number, fresh rueidis.RedisMessage) error {
	fields := []string(nil)
	if fresh.IsArray() {
		var err error
		if fields, err = fresh.AsStrSlice(); err != nil {
			return damaged("the days of a user")
		}
	} else if n, err := number.AsInt64(); err == nil {
		for field, set := range x.days {
			if set.Contains(uint32(n)) {
				fields = append(fields, field)
			}
		}
	}
	for _, field := range fields {
		i := strings.LastIndexByte(field, ':')
		day, err := strconv.Atoi(field[i+1:])
		if i < 0 || err != nil {
			return damaged("the name of a day")
		}
		if d.Days == nil {
			d.Days = make(map[string][]rollcall.Day)
		}
		d.Days[field[:i]] = append(d.Days[field[:i]], rollcall.Day(day))
	}
	return nil
}
