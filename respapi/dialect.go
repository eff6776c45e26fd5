package respapi

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/rollcall/rollcall"
)

// Dialect binds names of keys to what they mean. See [ParseDialect].
type Dialect struct {
	fixed    map[string]*binding // names without placeholders
	patterns []*binding
	all      []*binding
}

// Meaning is what a name may be bound to.
type Meaning string

// The meanings.
const (
	Presence   Meaning = "presence"   // users by when they were last seen, a sorted set
	Sessions   Meaning = "sessions"   // live sessions by login, a sorted set
	Friends    Meaning = "friends"    // the friends of a user: a set, or a sorted set by the time of friendship
	Attendance Meaning = "attendance" // the days of a user's month, a bitmap
	MinuteSet  Meaning = "minute-set" // users seen in a minute, a set
)

// binding is one line of the dialect.
type binding struct {
	text    string
	means   Meaning
	parts   []part
	unit    int64 // scores in one second: 1, or 1,000 for milliseconds
	many    bool  // sessions: members are user:session
	sorted  bool  // friends: a sorted set
	fromOne bool  // attendance: the first day has bit 1
}

// part is a piece of a pattern: literal text, or behind it a placeholder.
type part struct {
	literal string
	holder  string // user, month, kind or minute; "" at the end
}

// names is what the placeholders of a pattern stand for in a key.
type names struct{ user, month, kind, minute []byte }

// ParseDialect reads bindings, each "PATTERN = MEANING OPTION…". Patterns hold the
// placeholders {user}, {month} (2017-10), {kind} and {minute} (05, 1205 or 201710201205).
//
//	users = presence [ms]
//	online:user = sessions [ms] [many]
//	user:{user}:friends = friends [zset [ms]]
//	loginLog_{month}_{kind}_{user} = attendance [from-1]
//	active.users:{minute} = minute-set
//
// Scores count in seconds, or with ms in milliseconds. Members of sessions are users, or with
// many users and a session's own name, user:session. With from-1 the first day of a month is
// bit 1, else bit 0.
func ParseDialect(lines []string) (*Dialect, error) {
	d := &Dialect{fixed: make(map[string]*binding)}
	for _, line := range lines {
		b, err := parseBinding(line)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(d.all, func(other *binding) bool { return other.text == b.text }) {
			return nil, rollcall.Invalid("resp.dialect", "binds %q twice", b.text)
		}
		d.all = append(d.all, b)
		if len(b.parts) == 1 && b.parts[0].holder == "" {
			d.fixed[b.text] = b
		} else {
			d.patterns = append(d.patterns, b)
		}
	}
	return d, nil
}

func parseBinding(line string) (*binding, error) {
	pattern, rest, ok := strings.Cut(line, "=")
	words := strings.Fields(rest)
	if !ok || len(words) == 0 || strings.TrimSpace(pattern) == "" {
		return nil, rollcall.Invalid("resp.dialect", "holds %q: a binding is PATTERN = MEANING, such as users = presence", line)
	}
	b := &binding{text: strings.TrimSpace(pattern), means: Meaning(words[0]), unit: 1}
	holders, err := b.cut()
	if err != nil {
		return nil, err
	}
	need := map[Meaning][]string{Presence: nil, Sessions: nil, Friends: {"user"}, Attendance: {"month", "user"}, MinuteSet: {"minute"}}
	needed, known := need[b.means]
	if !known {
		return nil, rollcall.Invalid("resp.dialect", "binds %q to %q: there are presence, sessions, friends, attendance and minute-set", b.text, words[0])
	}
	for _, h := range needed {
		if !slices.Contains(holders, h) {
			return nil, rollcall.Invalid("resp.dialect", "binds %q to %s, which needs {%s} in the pattern", b.text, b.means, h)
		}
	}
	for _, h := range holders {
		if !slices.Contains(needed, h) && (b.means != Attendance || h != "kind") {
			return nil, rollcall.Invalid("resp.dialect", "binds %q to %s, which has no use for {%s}", b.text, b.means, h)
		}
	}
	for _, option := range words[1:] {
		switch {
		case option == "ms" && (b.means == Presence || b.means == Sessions || b.means == Friends):
			b.unit = 1000
		case option == "many" && b.means == Sessions:
			b.many = true
		case option == "zset" && b.means == Friends:
			b.sorted = true
		case option == "from-1" && b.means == Attendance:
			b.fromOne = true
		default:
			return nil, rollcall.Invalid("resp.dialect", "gives %q the option %q, which %s does not have", b.text, option, b.means)
		}
	}
	return b, nil
}

// cut splits the pattern at its placeholders.
func (b *binding) cut() (holders []string, err error) {
	for rest := b.text; ; {
		literal, after, found := strings.Cut(rest, "{")
		if !found {
			b.parts = append(b.parts, part{literal: literal})
			return holders, nil
		}
		holder, behind, closed := strings.Cut(after, "}")
		switch {
		case !closed || !slices.Contains([]string{"user", "month", "kind", "minute"}, holder):
			return nil, rollcall.Invalid("resp.dialect", "holds %q: placeholders are {user}, {month}, {kind} and {minute}", b.text)
		case slices.Contains(holders, holder):
			return nil, rollcall.Invalid("resp.dialect", "holds %q with {%s} twice", b.text, holder)
		case literal == "" && len(b.parts) > 0:
			return nil, rollcall.Invalid("resp.dialect", "holds %q: between two placeholders there has to be a text", b.text)
		}
		b.parts = append(b.parts, part{literal, holder})
		holders, rest = append(holders, holder), behind
	}
}

// find returns the binding of a key; nil if there is none.
func (d *Dialect) find(key []byte) (*binding, names) {
	if b := d.fixed[string(key)]; b != nil {
		return b, names{}
	}
	for _, b := range d.patterns {
		if n, ok := b.match(key); ok {
			return b, n
		}
	}
	return nil, names{}
}

// match reads a key by the pattern. A placeholder is as short as it can be.
func (b *binding) match(key []byte) (n names, ok bool) {
	for i, p := range b.parts {
		if !bytes.HasPrefix(key, []byte(p.literal)) {
			return n, false
		}
		key = key[len(p.literal):]
		if p.holder == "" {
			return n, len(key) == 0
		}
		end := len(key)
		if next := b.parts[i+1]; next.literal != "" || next.holder != "" {
			if len(key) < 2 {
				return n, false
			}
			if end = bytes.Index(key[1:], []byte(next.literal)) + 1; end == 0 {
				return n, false
			}
		}
		value := key[:end]
		if len(value) == 0 {
			return n, false
		}
		switch p.holder {
		case "user":
			n.user = value
		case "month":
			n.month = value
		case "kind":
			n.kind = value
		case "minute":
			n.minute = value
		}
		key = key[end:]
	}
	return n, len(key) == 0
}

// key writes the key that stands for some values.
func (b *binding) key(n names) string {
	var out strings.Builder
	for _, p := range b.parts {
		out.WriteString(p.literal)
		switch p.holder {
		case "user":
			out.Write(n.user)
		case "month":
			out.Write(n.month)
		case "kind":
			out.Write(n.kind)
		case "minute":
			out.Write(n.minute)
		}
	}
	return out.String()
}

// kind is what Redis calls the type of such a key.
func (b *binding) kind() string {
	switch {
	case b.means == Presence, b.means == Sessions, b.means == Friends && b.sorted:
		return "zset"
	case b.means == Attendance:
		return "string"
	default:
		return "set"
	}
}

// bound finds what a key is bound to, for a command on keys of a type. It answers itself
// if there is nothing, or something else, and returns nil.
func (c *conn) bound(key []byte, kind string) (*binding, names) {
	b, n := c.l.opts.Dialect.find(key)
	switch {
	case b == nil:
		c.unbound(key)
		return nil, n
	case b.kind() != kind:
		c.wrongType(b)
		return nil, n
	}
	return b, n
}

func (c *conn) unbound(key []byte) {
	c.failWith(&rollcall.Error{Code: rollcall.CodeNotFound, Detail: fmt.Sprintf("%s: no line of resp.dialect binds the key %q", c.l.verbs.all[c.command].name, strings.ToValidUTF8(clip(key), "?"))})
}

func (c *conn) wrongType(b *binding) {
	c.failed = rollcall.CodeInvalidArgument
	c.refuse("WRONGTYPE", fmt.Sprintf("invalid_argument %s is not for %s, which is bound to %s: %s", c.l.verbs.all[c.command].name, b.text, b.means, b.advice()))
}

// advice names the commands that a key of the binding has.
func (b *binding) advice() string {
	switch b.kind() {
	case "zset":
		return "use ZADD, ZREM, ZSCORE, ZCARD, ZCOUNT, ZRANGE, ZREVRANGE, ZRANGEBYSCORE, ZREVRANGEBYSCORE or ZREMRANGEBYSCORE"
	case "string":
		return "use SETBIT, GETBIT, BITCOUNT, BITOP or GET"
	default:
		return "use SADD, SREM, SISMEMBER, SMEMBERS, SCARD or SUNION"
	}
}

// dialectCommands are commands of Redis on the names that are bound.
func dialectCommands() []command {
	const read, write = rollcall.RoleReader, rollcall.RoleWriter
	return []command{
		{name: "ZADD", least: 3, most: unlimited, needs: write, take: takeZAdd},
		{name: "ZREM", least: 2, most: unlimited, needs: write, run: cmdZRem},
		{name: "ZSCORE", least: 2, most: 2, needs: read, run: cmdZScore},
		{name: "ZCARD", least: 1, most: 1, needs: read, run: cmdZCard},
		{name: "ZCOUNT", least: 3, most: 3, needs: read, run: cmdZCount},
		{name: "ZRANGE", least: 3, most: 10, needs: read, run: cmdZRange},
		{name: "ZREVRANGE", least: 3, most: 4, needs: read, run: cmdZRevRange},
		{name: "ZRANGEBYSCORE", least: 3, most: 7, needs: read, run: cmdZRangeByScore},
		{name: "ZREVRANGEBYSCORE", least: 3, most: 7, needs: read, run: cmdZRevRangeByScore},
		{name: "ZREMRANGEBYSCORE", least: 3, most: 3, needs: read, run: cmdZRemRangeByScore},
		{name: "SADD", least: 2, most: unlimited, needs: write, take: takeSAdd},
		{name: "SREM", least: 2, most: unlimited, needs: write, run: cmdSRem},
		{name: "SISMEMBER", least: 2, most: 2, needs: read, run: cmdSIsMember},
		{name: "SMEMBERS", least: 1, most: 1, needs: read, run: cmdSMembers},
		{name: "SCARD", least: 1, most: 1, needs: read, run: cmdSCard},
		{name: "SUNION", least: 1, most: maxUnion, needs: read, run: cmdSUnion},
		{name: "SETBIT", least: 3, most: 3, needs: write, run: cmdSetBit},
		{name: "GETBIT", least: 2, most: 2, needs: read, run: cmdGetBit},
		{name: "BITCOUNT", least: 1, most: 4, needs: read, run: cmdBitCount},
		{name: "BITOP", least: 3, most: 2 + maxBitOp, needs: read, run: cmdBitOp},
		{name: "GET", least: 1, most: 1, needs: read, run: cmdGet},
		{name: "EXPIRE", least: 2, most: 3, needs: read, run: cmdExpire},
		{name: "PEXPIRE", least: 2, most: 3, needs: read, run: cmdExpire},
		{name: "TTL", least: 1, most: 1, needs: read, run: cmdTTL},
		{name: "PTTL", least: 1, most: 1, needs: read, run: cmdTTL},
		{name: "DEL", least: 1, most: maxKeys, needs: read, run: cmdDel},
		{name: "UNLINK", least: 1, most: maxKeys, needs: read, run: cmdDel},
		{name: "EXISTS", least: 1, most: maxKeys, needs: read, run: cmdExists},
		{name: "TYPE", least: 1, most: 1, needs: read, run: cmdType},
		{name: "KEYS", least: 1, most: 1, needs: read, run: cmdKeys},
		{name: "SCAN", least: 1, most: 7, needs: read, run: cmdScan},
	}
}

// need refuses what the role does not allow on a key that is bound; false if it did.
func (c *conn) need(role rollcall.Role) bool {
	if c.who.role.Allows(role) {
		return true
	}
	c.forbid(c.l.verbs.all[c.command].name+" here", role)
	return false
}
