package respapi

import (
	"slices"
	"strings"
	"time"

	"github.com/rollcall/rollcall"
)

// A transaction that copies presence, cuts what is old, and intersects the rest with a user's
// friends asks who of the friends is online. It is answered from the friends outward:
// nothing is copied.
//
//	ZUNIONSTORE       copy 1 last.seen               copy: all users known
//	ZREMRANGEBYSCORE  copy -inf cutoff               copy: those seen since
//	ZINTERSTORE       online 2 copy user:42:friends  online: the friends among them
//	ZRANGE            online 0 -1
//	DEL               copy online

// temps are the keys that a transaction has made, by name. They end with it.
type temps map[string]*temp

// temp is a copy of presence that nobody makes, or a set that has been read.
type temp struct {
	presence presenceSet
	since    int64 // seconds; of presence
	set      memorySet
	read     bool
}

// maxTemps is how many keys a transaction may make.
const maxTemps = 16

func unionCommands() []command {
	const read = rollcall.RoleReader
	return []command{
		{name: "ZUNIONSTORE", least: 3, most: 8, needs: read, run: cmdZUnionStore},
		{name: "ZINTERSTORE", least: 4, most: 9, needs: read, run: cmdZInterStore},
	}
}

// temporary returns a key of the transaction that is being done; nil if there is none.
func (c *conn) temporary(key []byte) sortedSet {
	t := c.temps[string(key)]
	switch {
	case t == nil:
		return nil
	case t.read:
		return t.set
	default:
		return cutPresence{t.presence, t.since}
	}
}

// cutPresence is presence from a second on.
type cutPresence struct {
	presenceSet
	since int64
}

func (s cutPresence) cut(r scores) scores {
	return scores{max(r.least, s.since*s.b.unit), r.most}
}

func (s cutPresence) count(r scores) (int, error) { return countIn(s.presenceSet, s.cut(r)) }

func (s cutPresence) list(r scores, rev bool, from, n int) ([]entry, error) {
	return s.presenceSet.list(s.cut(r), rev, from, n)
}

func (s cutPresence) score(member string) (float64, bool, error) {
	v, ok, err := s.presenceSet.score(member)
	return v, ok && s.cut(allScores).holds(v), err
}

// inTransaction refuses what has a meaning inside MULTI only.
func (c *conn) inTransaction() bool {
	if c.temps != nil {
		return true
	}
	c.failWith(rollcall.Invalid("command", "'%s' is not served here: %s", c.l.verbs.all[c.command].name, unionAdvice))
	return false
}

func (c *conn) makeTemp(key []byte, t *temp) bool {
	if b, _ := c.l.opts.Dialect.find(key); b != nil {
		c.failWith(rollcall.Invalid("destination", "is bound: a copy needs a name that is bound to nothing"))
		return false
	}
	if len(c.temps) >= maxTemps {
		c.failWith(&rollcall.Error{Code: rollcall.CodeTooLarge, Detail: "a transaction makes 16 keys at most"})
		return false
	}
	c.temps[string(key)] = t
	return true
}

// cmdZUnionStore is ZUNIONSTORE copy 1 presence, a copy to be cut.
func cmdZUnionStore(c *conn, args [][]byte) {
	if !c.inTransaction() {
		return
	}
	b, _ := c.l.opts.Dialect.find(args[3])
	if string(args[2]) != "1" || b == nil || b.means != Presence {
		c.failWith(rollcall.Invalid("ZUNIONSTORE", "copies one key that is bound to presence: %s", unionAdvice))
		return
	}
	w, err := readWeights(args[4:], 1)
	if err == nil && w.of[0] != 1 {
		err = rollcall.Invalid("WEIGHTS", "of a copy must be 1")
	}
	t := &temp{presence: presenceSet{c, b}, since: -maxScore}
	n := 0
	if err == nil {
		n, err = t.presence.count(allScores)
	}
	if err != nil {
		c.failWith(err)
		return
	}
	if c.makeTemp(args[1], t) {
		c.int(n)
	}
}

// cutTemporary is ZREMRANGEBYSCORE on a copy; false if the key is none.
func (c *conn) cutTemporary(key []byte, r scores) bool {
	t := c.temps[string(key)]
	if t == nil {
		return false
	}
	if t.read {
		before := len(t.set)
		t.set = slices.DeleteFunc(t.set, func(e entry) bool { return r.holds(e.score) })
		c.int(before - len(t.set))
		return true
	}
	if r.least > 0 {
		c.failWith(rollcall.Invalid("min", "must be 0 or -inf: only those who were seen longest ago can be cut from a copy of presence"))
		return true
	}
	before, err := cutPresence{t.presence, t.since}.count(allScores)
	var after int
	if err == nil {
		t.since = max(t.since, floorDiv(r.most+1, t.presence.b.unit))
		after, err = cutPresence{t.presence, t.since}.count(allScores)
	}
	if err != nil {
		c.failWith(err)
		return true
	}
	c.int(max(0, before-after))
	return true
}

// weights are how ZINTERSTORE makes one score of two.
type weights struct {
	of        []float64
	aggregate string
}

func readWeights(words [][]byte, n int) (weights, error) {
	w := weights{of: slices.Repeat([]float64{1}, n), aggregate: "SUM"}
	for i := 0; i < len(words); i++ {
		switch {
		case is(words[i], "WEIGHTS") && i+n < len(words):
			for k := range n {
				v, ok := parseScore(words[i+1+k])
				if !ok {
					return w, rollcall.Invalid("WEIGHTS", "are not numbers")
				}
				w.of[k] = v
			}
			i += n
		case is(words[i], "AGGREGATE") && i+1 < len(words) && (is(words[i+1], "SUM") || is(words[i+1], "MIN") || is(words[i+1], "MAX")):
			w.aggregate = strings.ToUpper(string(words[i+1]))
			i++
		default:
			return w, rollcall.Invalid("option", "%q is not served here: there are WEIGHTS and AGGREGATE", clip(words[i]))
		}
	}
	return w, nil
}

func (w *weights) combine(a, b float64) float64 {
	a, b = a*w.of[0], b*w.of[1]
	switch w.aggregate {
	case "MIN":
		return min(a, b)
	case "MAX":
		return max(a, b)
	default:
		return a + b
	}
}

// cmdZInterStore is ZINTERSTORE online 2 copy friends, in any order.
func cmdZInterStore(c *conn, args [][]byte) {
	if !c.inTransaction() {
		return
	}
	if string(args[2]) != "2" {
		c.failWith(rollcall.Invalid("ZINTERSTORE", "takes a copy of presence and a key of friends"))
		return
	}
	w, err := readWeights(args[5:], 2)
	if err != nil {
		c.failWith(err)
		return
	}
	copyKey, friendsKey := args[3], args[4]
	if _, ok := c.presenceOf(copyKey); !ok { // the other way round
		copyKey, friendsKey = friendsKey, copyKey
		w.of[0], w.of[1] = w.of[1], w.of[0]
	}
	seen, ok := c.presenceOf(copyKey)
	b, n := c.l.opts.Dialect.find(friendsKey)
	if !ok || b == nil || b.means != Friends {
		c.failWith(rollcall.Invalid("ZINTERSTORE", "takes a copy of presence and a key of friends"))
		return
	}
	set, err := c.friendsSince(seen, b, string(n.user), &w)
	if err != nil {
		c.failWith(err)
		return
	}
	if c.makeTemp(args[1], &temp{set: set, read: true}) {
		c.int(len(set))
	}
}

// presenceOf returns presence, cut or whole, that a key stands for.
func (c *conn) presenceOf(key []byte) (cutPresence, bool) {
	if t := c.temps[string(key)]; t != nil {
		return cutPresence{t.presence, t.since}, !t.read
	}
	if b, _ := c.l.opts.Dialect.find(key); b != nil && b.means == Presence {
		return cutPresence{presenceSet{c, b}, -maxScore}, true
	}
	return cutPresence{}, false
}

// friendsSince returns the friends of a user who were seen since a second.
func (c *conn) friendsSince(seen cutPresence, b *binding, user string, w *weights) (memorySet, error) {
	window := time.Duration(max(1, min(c.now.Unix()-seen.since, int64(c.l.opts.Retention/time.Second)))) * time.Second
	friends, err := c.onlineFriends(user, window)
	if err != nil {
		return nil, err
	}
	var out memorySet
	for _, f := range friends {
		at := f.LastSeen.Unix()
		if at < seen.since {
			continue
		}
		since := 1.0 // what a member of a plain set counts
		if b.sorted {
			since = float64(f.Since.UnixMilli() / (1000 / b.unit))
		}
		out = append(out, entry{f.User, w.combine(float64(at*seen.b.unit), since)})
	}
	slices.SortFunc(out, compareEntries)
	return out, nil
}
