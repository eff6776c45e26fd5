package redis

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/rollcall/rollcall"
)

// dossier reads what dossier.lua tells of one user.
func (x *exporting) dossier(user string, msg rueidis.RedisMessage) (rollcall.Dossier, error) {
	d := rollcall.Dossier{User: user}
	f, err := msg.ToArray()
	if err != nil || len(f) != 11 {
		return d, damaged("the answer to an export")
	}
	d.Kind, _ = f[0].ToString() // nil if it was never set
	d.Name, _ = f[1].ToString()
	if n, _ := f[2].AsInt64(); n == 1 {
		frozen, _ := f[3].AsInt64()
		d.Invisible, d.Frozen = true, timeOfSec(frozen)
	}
	if score, _ := f[4].ToString(); score != "" {
		sec, err := strconv.ParseFloat(score, 64)
		if err != nil {
			return d, damaged("a last-seen time")
		}
		d.Gone = sec < 0
		d.LastSeen = timeOfSec(int64(max(sec, -sec)))
	}
	friends, err := f[6].AsZScores()
	if err != nil {
		return d, damaged("a list of friends")
	}
	for _, s := range friends {
		d.Friends = append(d.Friends, rollcall.Friend{User: s.Member, Since: timeOf(int64(s.Score))})
	}
	slices.SortFunc(d.Friends, func(a, b rollcall.Friend) int { return strings.Compare(a.User, b.User) })
	if d.Sessions, err = liveOf(f[7]); err != nil {
		return d, err
	}
	if d.Ended, err = x.endedOf(f[8]); err != nil {
		return d, err
	}
	away, err := f[10].AsInt64()
	if err != nil {
		return d, damaged("where a user's marks are")
	}
	d.Archived = away == 1
	err = x.daysOf(&d, f[5], f[9])
	return d, err
}

func liveOf(msg rueidis.RedisMessage) ([]rollcall.KeptSession, error) {
	list, err := msg.ToArray()
	if err != nil {
		return nil, damaged("a list of sessions")
	}
	var out []rollcall.KeptSession
	for _, m := range list {
		r, err := unpackFound(m)
		if err != nil {
			return nil, err
		}
		out = append(out, r.kept())
	}
	slices.SortFunc(out, compareKept)
	return out, nil
}

func compareKept(a, b rollcall.KeptSession) int { return slices.Compare(a.ID[:], b.ID[:]) }

func (r *record) kept() rollcall.KeptSession {
	k := rollcall.KeptSession{Session: r.Session, Token: rollcall.TokenKey([]byte(r.token))}
	if r.End == nil {
		k.Idle, k.Lifetime = time.Duration(r.idle)*time.Millisecond, time.Duration(r.life)*time.Millisecond
	}
	return k
}

func (x *exporting) endedOf(msg rueidis.RedisMessage) ([]rollcall.KeptSession, error) {
	list, err := msg.AsStrSlice()
	if err != nil || len(list)%2 != 0 {
		return nil, damaged("a list of ended sessions")
	}
	var out []rollcall.KeptSession
	for i := 0; i < len(list); i += 2 {
		r, err := unpackEnd(idOf(list[i]), list[i+1])
		if err != nil {
			return nil, err
		}
		x.met[list[i]] = true
		out = append(out, r.kept())
	}
	slices.SortFunc(out, compareKept)
	return out, nil
}

// daysOf fills in the marks: from the sets that were read, or from what the
// script found if marks changed since.
func (x *exporting) daysOf(d *rollcall.Dossier, number, fresh rueidis.RedisMessage) error {
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
	for _, days := range d.Days {
		slices.Sort(days)
	}
	return nil
}
