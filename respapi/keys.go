package respapi

import (
	"slices"
	"strconv"
	"strings"

	"github.com/rollcall/rollcall"
)

const (
	// maxKeys is how many keys one command names.
	maxKeys = 1000
	// keysPages and scanPages are how many pages of names, of a thousand each, KEYS and SCAN
	// look at: most of them may not match.
	keysPages = 1000
	scanPages = 10
)

// exists reports whether there is anything under a key.
func (c *conn) exists(key []byte) (bool, *binding, error) {
	b, n := c.l.opts.Dialect.find(key)
	if b == nil {
		set, ok := c.l.scratch.get(c.scratchKey(key), c.now)
		return ok && set != 0, nil, nil
	}
	var total int
	var err error
	switch b.means {
	case Presence:
		total, err = c.roll.KnownCount(c.ctx)
	case Sessions:
		total, err = sessionSet{c, b}.count(allScores)
	case Friends:
		total, err = c.friendCount(string(n.user))
	case MinuteSet:
		var second int64
		if second, err = c.sinceOne(n); err == nil {
			total, err = c.everyone().since(second)
		} else if _, bad := c.minute(n.minute); bad == nil {
			err = nil // a minute that is over has nothing of its own
		}
	case Attendance:
		var k monthKey
		if k, err = c.monthKey(b, n); err == nil {
			var set uint64
			set, err = c.monthBits(k)
			total = int(min(set, 1)) //nolint:gosec // 0 or 1
		}
	}
	return total > 0, b, err
}

func cmdExists(c *conn, args [][]byte) {
	n := 0
	for _, key := range args[1:] {
		there, _, err := c.exists(key)
		if err != nil {
			c.failWith(err)
			return
		}
		if there {
			n++
		}
	}
	c.int(n)
}

func cmdType(c *conn, args [][]byte) {
	there, b, err := c.exists(args[1])
	switch {
	case err != nil:
		c.failWith(err)
	case !there:
		c.simple("none")
	case b == nil:
		c.simple("string")
	default:
		c.simple(b.kind())
	}
}

// cmdExpire is EXPIRE and PEXPIRE. What is kept goes by the retention of the configuration, so
// the time that is asked for changes nothing. Friends do not go by themselves.
func cmdExpire(c *conn, args [][]byte) {
	if _, ok := c.temps[string(args[1])]; ok {
		c.int(1)
		return
	}
	there, b, err := c.exists(args[1])
	_, notNumber := strconv.ParseInt(string(args[2]), 10, 64)
	switch {
	case notNumber != nil:
		c.failWith(rollcall.Invalid("seconds", "is not a whole number: %q", clip(args[2])))
	case err != nil:
		c.failWith(err)
	case b != nil && b.means == Friends:
		c.failWith(rollcall.Invalid("EXPIRE", "friends stay until they are removed: SREM or ZREM"))
	default:
		c.bool(there)
	}
}

// cmdTTL is TTL and PTTL: -1 for what is there, as no key has a time of its own to go.
func cmdTTL(c *conn, args [][]byte) {
	there, _, err := c.exists(args[1])
	switch {
	case err != nil:
		c.failWith(err)
	case there:
		c.int(-1)
	default:
		c.int(-2)
	}
}

// cmdDel is DEL and UNLINK: of friends, of the days of a month, and of results.
func cmdDel(c *conn, args [][]byte) {
	n := 0
	for _, key := range args[1:] {
		removed, err := c.del(key)
		if err != nil {
			c.failWith(err)
			return
		}
		if removed {
			n++
		}
	}
	c.int(n)
}

func (c *conn) del(key []byte) (bool, error) {
	if _, ok := c.temps[string(key)]; ok {
		delete(c.temps, string(key))
		return true, nil
	}
	b, n := c.l.opts.Dialect.find(key)
	if b == nil {
		return c.l.scratch.remove(c.scratchKey(key)), nil
	}
	if !c.who.role.Allows(rollcall.RoleWriter) {
		return false, &rollcall.Error{Code: rollcall.CodeForbidden, Detail: "DEL here needs a key of role writer"}
	}
	switch b.means {
	case Friends:
		total, err := c.friendCount(string(n.user))
		if err != nil || total == 0 {
			return false, err
		}
		return true, c.l.roll.ReplaceFriends(c.ctx, string(n.user), nil)
	case Attendance:
		return c.delMonth(b, n)
	default:
		return false, rollcall.Invalid("DEL", "would forget everybody: ZREMRANGEBYSCORE says from when to when, and POST /v1/online/clear and POST /v1/kicks do the same")
	}
}

func (c *conn) delMonth(b *binding, n names) (bool, error) {
	k, err := c.monthKey(b, n)
	if err != nil {
		return false, err
	}
	// A key without a kind is about all kinds.
	kinds := []string{k.kind}
	if k.kind == "" {
		if kinds, err = c.kinds(); err != nil {
			return false, err
		}
	}
	var marks []rollcall.Mark
	for _, kind := range kinds {
		a, err := c.roll.Attended(c.ctx, k.user, kind, k.month.Range())
		if err != nil {
			return false, err
		}
		for _, d := range a.Days {
			marks = append(marks, rollcall.Mark{User: k.user, Kind: kind, Day: d})
		}
	}
	if len(marks) == 0 {
		return false, nil
	}
	removed, err := c.l.roll.Unmark(c.acting, c.who.role == rollcall.RoleAdmin, marks...)
	return removed > 0, err
}

// glob matches as Redis does: *, ?, [a-z], [^a] and \ before a sign.
func glob(pattern, text string) bool {
	// At a star the place is kept: what does not match from there is tried again one
	// further. An earlier star need not be tried again.
	star, mark := -1, 0
	p, t := 0, 0
	for t < len(text) {
		if p < len(pattern) && pattern[p] == '*' {
			star, mark = p, t
			p++
			continue
		}
		if width, ok := globOne(pattern[p:], text[t]); ok {
			p += width
			t++
			continue
		}
		if star < 0 {
			return false
		}
		mark++
		p, t = star+1, mark
	}
	return strings.Trim(pattern[p:], "*") == ""
}

// globOne matches one sign, and says how much of the pattern stands for it.
func globOne(pattern string, c byte) (width int, ok bool) {
	switch {
	case pattern == "":
		return 0, false
	case pattern[0] == '?':
		return 1, true
	case pattern[0] == '\\' && len(pattern) > 1:
		return 2, pattern[1] == c
	case pattern[0] != '[':
		return 1, pattern[0] == c
	}
	i, not := 1, false
	if i < len(pattern) && pattern[i] == '^' {
		not = true
		i++
	}
	found := false
	for ; i < len(pattern) && pattern[i] != ']'; i++ {
		if i+2 < len(pattern) && pattern[i+1] == '-' {
			low, high := min(pattern[i], pattern[i+2]), max(pattern[i], pattern[i+2])
			found = found || low <= c && c <= high
			i += 2
			continue
		}
		if pattern[i] == '\\' && i+1 < len(pattern) {
			i++
		}
		found = found || pattern[i] == c
	}
	return min(i+1, len(pattern)), found != not
}

// literal is what a pattern begins with before anything that stands for more.
func literal(pattern string) string {
	if i := strings.IndexAny(pattern, `*?[\`); i >= 0 {
		return pattern[:i]
	}
	return pattern
}

// mayMatch reports whether keys that begin with a text can match a pattern.
func mayMatch(pattern, start string) bool {
	l := literal(pattern)
	n := min(len(l), len(start))
	return l[:n] == start[:n]
}

// section is keys that are listed one page after another: a fixed name, or the users of a kind
// in a month.
type section struct {
	name  string // of a fixed one
	b     *binding
	month rollcall.Month // of attendance
	kind  string
}

func (s *section) fixed() bool { return s.name != "" }

// sections returns what KEYS and SCAN go through for a pattern. Names of friends are not
// listed: nothing has all users who have any.
func (c *conn) sections(pattern string) ([]section, error) {
	var out []section
	for _, b := range c.l.opts.Dialect.all {
		switch b.means {
		case Presence, Sessions:
			out = append(out, section{name: b.text, b: b})
		case Attendance:
			months, err := c.months(b, pattern)
			if err != nil {
				return nil, err
			}
			out = append(out, months...)
		case MinuteSet:
			at := c.now.In(c.l.roll.Timezone())
			for _, layout := range []string{"04", "1504", "200601021504"} {
				out = append(out, section{name: b.key(names{minute: []byte(at.Format(layout))}), b: b})
			}
		case Friends:
		}
	}
	return out, nil
}

func (c *conn) months(b *binding, pattern string) ([]section, error) {
	span, some, err := c.roll.AttendanceSpan(c.ctx, "")
	if err != nil || !some {
		return nil, err
	}
	kinds := []string{""}
	if slices.ContainsFunc(b.parts, func(p part) bool { return p.holder == "kind" }) {
		if kinds, err = c.kinds(); err != nil {
			return nil, err
		}
	}
	var out []section
	for m := rollcall.MonthOf(span.From); m <= rollcall.MonthOf(span.To); m = m.Next() {
		for _, kind := range kinds {
			s := section{b: b, month: m, kind: kind}
			if mayMatch(pattern, literal(strings.ReplaceAll(s.key("*"), `\`, "*"))) {
				out = append(out, s)
			}
		}
	}
	return out, nil
}

// kinds returns all kinds there are.
func (c *conn) kinds() ([]string, error) {
	uses, err := c.roll.Kinds(c.ctx)
	all := make([]string, len(uses))
	for i := range uses {
		all[i] = uses[i].Kind
	}
	return all, err
}

func (s *section) key(user string) string {
	month := s.month.Day(1).String()[:7]
	return s.b.key(names{user: []byte(user), month: []byte(month), kind: []byte(s.kind)})
}

// page returns a page of the keys of a section that match, and whether more follow.
func (c *conn) page(s *section, pattern string, page int) (keys []string, more bool, err error) {
	if s.fixed() {
		if page > 1 || !glob(pattern, s.name) {
			return nil, false, nil
		}
		there, _, err := c.exists([]byte(s.name))
		if there {
			keys = append(keys, s.name)
		}
		return keys, false, err
	}
	users, err := c.roll.Active(c.ctx, rollcall.ActiveQuery{
		Range: s.month.Range(), Kind: s.kind, Page: rollcall.PageRequest{Limit: rollcall.MaxLimit, Number: page},
	})
	for _, user := range users.Items {
		if key := s.key(user); glob(pattern, key) {
			keys = append(keys, key)
		}
	}
	return keys, users.Next != "", err
}

// cmdKeys is KEYS pattern.
func cmdKeys(c *conn, args [][]byte) {
	pattern := string(args[1])
	sections, err := c.sections(pattern)
	var out []string
	looked := 0
	for i := range sections {
		for page, more := 1, true; more && err == nil; page++ {
			if looked++; looked > keysPages {
				err = &rollcall.Error{Code: rollcall.CodeTooLarge, Detail: "KEYS looks at a million names at most: SCAN goes on in pages"}
				break
			}
			var keys []string
			keys, more, err = c.page(&sections[i], pattern, page)
			if out = append(out, keys...); len(out) > maxReply && err == nil {
				err = &rollcall.Error{Code: rollcall.CodeTooLarge, Detail: "more than 100,000 keys match: SCAN lists them in pages, and GET /v1/attendance/active the users"}
			}
		}
	}
	if err == nil && c.hasFriends(pattern) {
		err = rollcall.Invalid("KEYS", "keys of friends are not listed: ask for a user's with EXISTS, or \"rollcall export\" for all")
	}
	if err != nil {
		c.failWith(err)
		return
	}
	c.array(len(out))
	for _, key := range out {
		c.bulk(key)
	}
}

// hasFriends reports whether a pattern asks for keys of friends, and not for others too.
func (c *conn) hasFriends(pattern string) bool {
	return literal(pattern) != "" && slices.ContainsFunc(c.l.opts.Dialect.all, func(b *binding) bool {
		return b.means == Friends && b.parts[0].literal != "" && strings.HasPrefix(literal(pattern), b.parts[0].literal)
	})
}

// cmdScan is SCAN cursor [MATCH pattern] [COUNT n] [TYPE type]. A cursor is the section, and the
// page in it.
func cmdScan(c *conn, args [][]byte) {
	cursor, err := strconv.ParseUint(string(args[1]), 10, 64)
	pattern, kind := "*", ""
	for i := 2; i < len(args); i += 2 {
		switch {
		case err != nil || i+1 >= len(args):
			err = rollcall.Invalid("SCAN", "takes a cursor, MATCH, COUNT and TYPE")
		case is(args[i], "MATCH"):
			pattern = string(args[i+1])
		case is(args[i], "TYPE"):
			kind = strings.ToLower(string(args[i+1]))
		case !is(args[i], "COUNT"):
			err = rollcall.Invalid("SCAN", "does not know the option %q", clip(args[i]))
		}
	}
	var sections []section
	if err == nil {
		sections, err = c.sections(pattern)
	} else {
		err = rollcall.Invalid("SCAN", "takes a cursor, MATCH, COUNT and TYPE")
	}
	at, page := int(cursor>>32), int(cursor&(1<<32-1)) //nolint:gosec // a number that leads nowhere ends the scan
	var out []string
	for looked := 0; err == nil && at < len(sections) && len(out) == 0 && looked < scanPages; looked++ {
		var keys []string
		var more bool
		s := &sections[at]
		if kind == "" || kind == s.b.kind() {
			keys, more, err = c.page(s, pattern, page+1)
		}
		out = append(out, keys...)
		if page++; !more {
			at, page = at+1, 0
		}
	}
	if err != nil {
		c.failWith(err)
		return
	}
	next := uint64(at)<<32 | uint64(page) //nolint:gosec // not negative
	if at >= len(sections) {
		next = 0
	}
	c.array(2)
	c.bulk(strconv.FormatUint(next, 10))
	c.array(len(out))
	for _, key := range out {
		c.bulk(key)
	}
}
