package respapi

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/rollcall/rollcall"
)

// maxReply is how many members one answer may have.
const maxReply = 100_000

// maxPending is how many bytes the answers of a transaction may have for its next command to be
// done: they are sent together.
const maxPending = 64 << 20

// entry is a member of a sorted set.
type entry struct {
	member string
	score  float64
}

func compareEntries(a, b entry) int {
	return cmp.Or(cmp.Compare(a.score, b.score), cmp.Compare(a.member, b.member))
}

// sortedSet is what a key of type zset is read by.
type sortedSet interface {
	// count says how many members have a score of the range.
	count(r scores) (int, error)
	// list returns n of those members from a place on, by score, ties by member; rev
	// from the other end. n is within what count said.
	list(r scores, rev bool, from, n int) ([]entry, error)
	// score is false for one who is no member.
	score(member string) (float64, bool, error)
}

// sortedSetOf returns what a key stands for; nil if it answered that there is no such set.
func (c *conn) sortedSetOf(key []byte) sortedSet {
	if set := c.temporary(key); set != nil {
		return set
	}
	b, n := c.bound(key, "zset")
	switch {
	case b == nil:
		return nil
	case b.means == Presence:
		return presenceSet{c, b}
	case b.means == Sessions:
		return sessionSet{c, b}
	default:
		return friendSet{c, b, string(n.user)}
	}
}

func cmdZCard(c *conn, args [][]byte) { c.zcount(args[1], allScores) }

func cmdZCount(c *conn, args [][]byte) {
	r, err := parseRange(args[2], args[3])
	if err != nil {
		c.failWith(err)
		return
	}
	c.zcount(args[1], r)
}

func (c *conn) zcount(key []byte, r scores) {
	set := c.sortedSetOf(key)
	if set == nil {
		return
	}
	n, err := countIn(set, r)
	if err != nil {
		c.failWith(err)
		return
	}
	c.int(n)
}

func countIn(set sortedSet, r scores) (int, error) {
	if r.empty() {
		return 0, nil
	}
	return set.count(r)
}

func cmdZScore(c *conn, args [][]byte) {
	if b, _ := c.l.opts.Dialect.find(args[1]); b != nil && b.means == Presence && c.temps == nil {
		c.lastSeen(b, args[2])
		return
	}
	set := c.sortedSetOf(args[1])
	if set == nil {
		return
	}
	v, ok, err := set.score(string(args[2]))
	switch {
	case err != nil:
		c.failWith(err)
	case !ok:
		c.null()
	default:
		c.reply.score(v)
	}
}

// rangeQuery is what the commands that list a sorted set ask.
type rangeQuery struct {
	byScore    bool
	rev        bool
	withScores bool
	from, to   []byte // ranks, or ends of a range of scores: the lower one first
	offset     int
	limit      int // negative for all
}

func cmdZRevRange(c *conn, args [][]byte) {
	c.zrange(args[1], rangeQuery{rev: true, from: args[2], to: args[3], limit: -1}, args[4:])
}

func cmdZRangeByScore(c *conn, args [][]byte) {
	c.zrange(args[1], rangeQuery{byScore: true, from: args[2], to: args[3], limit: -1}, args[4:])
}

func cmdZRevRangeByScore(c *conn, args [][]byte) {
	c.zrange(args[1], rangeQuery{byScore: true, rev: true, from: args[3], to: args[2], limit: -1}, args[4:])
}

// cmdZRange is ZRANGE key from to [BYSCORE] [REV] [LIMIT offset n] [WITHSCORES].
func cmdZRange(c *conn, args [][]byte) {
	q := rangeQuery{from: args[2], to: args[3], limit: -1}
	rest := args[4:]
	for len(rest) > 0 && (is(rest[0], "BYSCORE") || is(rest[0], "REV")) {
		q.byScore = q.byScore || is(rest[0], "BYSCORE")
		q.rev = q.rev || is(rest[0], "REV")
		rest = rest[1:]
	}
	if q.byScore && q.rev {
		q.from, q.to = q.to, q.from
	}
	c.zrange(args[1], q, rest)
}

// options reads WITHSCORES and LIMIT.
func (q *rangeQuery) options(words [][]byte) error {
	limited := false
	for i := 0; i < len(words); i++ {
		switch {
		case is(words[i], "WITHSCORES"):
			q.withScores = true
		case is(words[i], "LIMIT") && i+2 < len(words):
			var errs [2]error
			q.offset, errs[0] = strconv.Atoi(string(words[i+1]))
			q.limit, errs[1] = strconv.Atoi(string(words[i+2]))
			if errs[0] != nil || errs[1] != nil {
				return rollcall.Invalid("LIMIT", "takes two whole numbers")
			}
			limited = true
			i += 2
		case is(words[i], "REV"):
			return rollcall.Invalid("REV", "stands before LIMIT and WITHSCORES here, behind BYSCORE")
		default:
			return rollcall.Invalid("option", "%q is not served here: there are BYSCORE, REV, LIMIT and WITHSCORES", clip(words[i]))
		}
	}
	if limited && !q.byScore {
		return rollcall.Invalid("LIMIT", "goes with BYSCORE only")
	}
	return nil
}

func (c *conn) zrange(key []byte, q rangeQuery, options [][]byte) {
	if err := q.options(options); err != nil {
		c.failWith(err)
		return
	}
	set := c.sortedSetOf(key)
	if set == nil {
		return
	}
	entries, err := q.read(set)
	if err != nil {
		c.failWith(err)
		return
	}
	c.entries(entries, q.withScores)
}

// read returns the members that are asked for.
func (q *rangeQuery) read(set sortedSet) ([]entry, error) {
	r := allScores
	if q.byScore {
		var err error
		if r, err = parseRange(q.from, q.to); err != nil || q.offset < 0 {
			return nil, err
		}
	}
	total, err := countIn(set, r)
	if err != nil {
		return nil, err
	}
	first, n := q.offset, total-q.offset
	if q.byScore {
		if q.limit >= 0 {
			n = min(n, q.limit)
		}
	} else if first, n, err = ranks(q.from, q.to, total); err != nil {
		return nil, err
	}
	if n <= 0 {
		return nil, nil
	}
	if n > maxReply {
		return nil, tooMany(n)
	}
	return set.list(r, q.rev, first, n)
}

// ranks reads the first and last place, negative ones from the end, as ZRANGE does.
func ranks(from, to []byte, total int) (first, n int, err error) {
	first, errFrom := strconv.Atoi(string(from))
	last, errTo := strconv.Atoi(string(to))
	if errFrom != nil || errTo != nil {
		return 0, 0, rollcall.Invalid("start or stop", "is not a whole number: %q, %q", clip(from), clip(to))
	}
	if first < 0 {
		first = max(0, first+total)
	}
	if last < 0 {
		last += total
	}
	// Both are brought near the list first: the largest numbers there are would run over.
	first, last = min(first, total), min(max(last, -1), total-1)
	return first, last - first + 1, nil
}

func tooMany(n int) error {
	return &rollcall.Error{Code: rollcall.CodeTooLarge, Detail: "this answer would have " + strconv.Itoa(n) + " members, and 100,000 is the limit: page with LIMIT, or by the cursor of GET /v1/online and GET /v1/sessions"}
}

// entries writes members, with scores in pairs in version 3.
func (c *conn) entries(all []entry, withScores bool) {
	if !withScores {
		c.array(len(all))
		for _, e := range all {
			c.bulk(e.member)
		}
		return
	}
	c.pairs(len(all))
	for _, e := range all {
		if c.resp == 3 {
			c.array(2)
		}
		c.bulk(e.member)
		c.reply.score(e.score)
	}
}

// arrange puts what was read into the order of Redis.
func arrange(entries []entry, rev bool) []entry {
	slices.SortFunc(entries, compareEntries)
	if rev {
		slices.Reverse(entries)
	}
	return entries
}

// memorySet is a sorted set that has been read whole, in order.
type memorySet []entry

func (s memorySet) within(r scores) []entry {
	var out []entry
	for _, e := range s {
		if r.holds(e.score) {
			out = append(out, e)
		}
	}
	return out
}

func (s memorySet) count(r scores) (int, error) { return len(s.within(r)), nil }

func (s memorySet) list(r scores, rev bool, from, n int) ([]entry, error) {
	all := s.within(r)
	if rev {
		slices.Reverse(all)
	}
	return all[from : from+n], nil
}

func (s memorySet) score(member string) (float64, bool, error) {
	for _, e := range s {
		if e.member == member {
			return e.score, true, nil
		}
	}
	return 0, false, nil
}

// addOptions are those of ZADD that make sense here.
type addOptions struct{ changed, later bool }

// pairsOf returns the scores and members of ZADD.
func pairsOf(args [][]byte) (pairs [][]byte, o addOptions, err error) {
	rest := args[2:]
	for len(rest) > 0 {
		switch {
		case is(rest[0], "CH"):
			o.changed = true
		case is(rest[0], "GT"): // no sign of life moves backwards anyway
			o.later = true
		case is(rest[0], "NX"), is(rest[0], "XX"), is(rest[0], "LT"), is(rest[0], "INCR"):
			return nil, o, rollcall.Invalid("ZADD", "the option %s is not served here: a sign of life counts whoever was there before", clip(rest[0]))
		default:
			if len(rest)%2 != 0 {
				return nil, o, rollcall.Invalid("ZADD", "needs a member for each score")
			}
			return rest, o, nil
		}
		rest = rest[1:]
	}
	return nil, o, rollcall.Invalid("ZADD", "names no member")
}

// takeZAdd is ZADD key [CH] [GT] score member [score member …]. On presence it is a sign of
// life that may wait for others.
func takeZAdd(c *conn, args [][]byte) {
	b, n := c.l.opts.Dialect.find(args[1])
	pairs, o, err := pairsOf(args)
	if b != nil && b.means == Presence && err == nil {
		for i := 0; i < len(pairs) && err == nil; i += 2 {
			err = c.checkNow(b, pairs[i])
		}
		if err == nil {
			c.beatPairs(pairs, o)
			return
		}
	}
	c.alone(func() {
		switch {
		case b == nil:
			c.unbound(args[1])
		case b.kind() != "zset":
			c.wrongType(b)
		case err != nil:
			c.failWith(err)
		case b.means == Sessions:
			c.login(b, pairs)
		default:
			c.addFriends(b, string(n.user), pairs, o)
		}
	})
}

func (c *conn) beatPairs(pairs [][]byte, o addOptions) {
	a := newUsers
	if o.changed {
		a = movedUsers
	}
	c.beatRoom(len(pairs)/2, a)
	for i := 1; i < len(pairs); i += 2 {
		c.beats.users = append(c.beats.users, c.beats.keep(pairs[i]))
	}
	c.await(a)
}

// alone does what turned out to be no sign of life, behind those that wait.
func (c *conn) alone(do func()) {
	c.settle()
	c.failed = ""
	do()
	c.count(c.command, outcomeOf(c.failed), 1)
}

func cmdZRem(c *conn, args [][]byte) {
	b, n := c.bound(args[1], "zset")
	switch {
	case b == nil:
	case b.means == Presence:
		c.failWith(rollcall.Invalid("ZREM", "presence ends by silence, or with the user's last session: DELETE /v1/sessions/{id}, or ZREM on a key that is bound to sessions"))
	case b.means == Sessions:
		c.endSessions(b, args[2:])
	default:
		c.removeFriends(string(n.user), args[2:])
	}
}

func cmdZRemRangeByScore(c *conn, args [][]byte) {
	r, err := parseRange(args[2], args[3])
	if err != nil {
		c.failWith(err)
		return
	}
	if c.cutTemporary(args[1], r) {
		return
	}
	b, _ := c.bound(args[1], "zset")
	switch {
	case b == nil || !c.need(rollcall.RoleAdmin):
	case b.means == Presence:
		c.clearPresence(b, r)
	case b.means == Sessions:
		c.endLogins(b, r)
	default:
		c.failWith(rollcall.Invalid("ZREMRANGEBYSCORE", "friends are removed by name: ZREM"))
	}
}
