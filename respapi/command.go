package respapi

import (
	"fmt"
	"strings"

	"github.com/rollcall/rollcall"
)

// command is a verb that the listener knows.
type command struct {
	name string
	// least and most bound the arguments behind the verb; most is -1 for as many as
	// a command may have.
	least, most int
	needs       rollcall.Role // "" for every client that has said who it is
	stranger    bool          // works before that
	run         func(c *conn, args [][]byte)
	// take adds the command to the signs of life that wait; nil for other commands.
	take func(c *conn, args [][]byte)
	// now marks what MULTI does not queue.
	now bool
}

const unlimited = -1

// table is all verbs. The first one stands in the counts for those that are not known.
type table struct {
	all    []command
	byName map[string]int
}

func newTable() *table {
	t := &table{all: []command{{name: "unknown"}}, byName: make(map[string]int)}
	for _, group := range [][]command{connectionCommands(), ownCommands(), dialectCommands(), transactionCommands()} {
		t.all = append(t.all, group...)
	}
	for i, cmd := range t.all {
		t.byName[cmd.name] = i
	}
	return t
}

// find returns the number of a verb; 0 if it is not known.
func (t *table) find(verb []byte) int {
	var upper [24]byte
	if len(verb) > len(upper) {
		return 0
	}
	for i, b := range verb {
		if 'a' <= b && b <= 'z' {
			b -= 'a' - 'A'
		}
		upper[i] = b
	}
	return t.byName[string(upper[:len(verb)])]
}

// handle does one command; false if the connection is to end.
func (c *conn) handle(args [][]byte) bool {
	n := c.l.verbs.find(args[0])
	cmd := &c.l.verbs.all[n]
	c.command, c.failed = n, ""
	if !c.charged {
		if err := c.admit(); err != nil {
			c.settle()
			c.failWith(err)
			c.count(n, outcomeOf(c.failed), 1)
			c.spoil(cmd)
			return !c.finishing
		}
	}
	if cmd.take != nil && c.queue == nil && c.who.role.Allows(cmd.needs) && fits(cmd, args) {
		cmd.take(c, args)
		return !c.finishing
	}
	c.settle()
	if n == 0 && isHTTPWord(args[0]) {
		c.l.counts.cut.Add(1)
		return false
	}
	c.perform(cmd, args)
	c.count(n, outcomeOf(c.failed), 1)
	return !c.finishing
}

func fits(cmd *command, args [][]byte) bool {
	n := len(args) - 1
	return n >= cmd.least && (cmd.most == unlimited || n <= cmd.most)
}

// perform checks a command, and runs or queues it.
func (c *conn) perform(cmd *command, args [][]byte) {
	switch {
	case !c.who.is() && !cmd.stranger:
		c.strangers(strings.ToUpper(clip(args[0])))
	case cmd.run == nil && cmd.take == nil:
		c.unknown(args[0])
	case !fits(cmd, args):
		c.failWith(rollcall.Invalid(cmd.name, "has %d arguments: it takes %s", len(args)-1, cmd.wanted()))
	case cmd.needs != "" && !c.who.role.Allows(cmd.needs):
		c.forbid(cmd.name, cmd.needs)
	case c.queue != nil && !cmd.now:
		c.enqueue(args)
		return
	default:
		c.runNow(cmd, args)
		return
	}
	c.spoil(cmd)
}

// runNow runs a command whatever else is under way.
func (c *conn) runNow(cmd *command, args [][]byte) {
	if cmd.take != nil {
		cmd.take(c, args)
		c.settle()
		return
	}
	cmd.run(c, args)
}

func (cmd *command) wanted() string {
	switch cmd.most {
	case cmd.least:
		return fmt.Sprintf("%d", cmd.least)
	case unlimited:
		return fmt.Sprintf("%d or more", cmd.least)
	default:
		return fmt.Sprintf("%d to %d", cmd.least, cmd.most)
	}
}

func (c *conn) forbid(what string, role rollcall.Role) {
	c.failWith(&rollcall.Error{Code: rollcall.CodeForbidden, Detail: fmt.Sprintf("%s needs a key of role %s, this one is %s", what, role, c.who.role)})
}

// failWith answers with an error.
func (c *conn) failWith(err error) {
	c.failed = rollcall.CodeOf(err)
	if c.failed == rollcall.CodeInternal {
		c.l.opts.Logger.Error("a RESP command failed", "command", c.l.verbs.all[c.command].name, "error", err)
	}
	c.fail(err)
}

// unknown names a command that there is not, and says what to use.
func (c *conn) unknown(verb []byte) {
	name := strings.ToUpper(strings.ToValidUTF8(clip(verb), "?"))
	advice, ok := instead[name]
	if !ok {
		advice = "there are BEAT, TOUCH, SEEN, ONLINE.COUNT, ONLINE.LIST, FRIENDS.ONLINE and MARK, and commands of Redis on the names of resp.dialect"
	}
	c.failWith(rollcall.Invalid("command", "'%s' is not served here: %s", name, advice))
}

// instead says what to use for commands of Redis that code of this kind holds.
var instead = map[string]string{
	"EVAL": scriptAdvice, "EVALSHA": scriptAdvice, "EVAL_RO": scriptAdvice, "EVALSHA_RO": scriptAdvice, "SCRIPT": scriptAdvice, "FCALL": scriptAdvice, "FUNCTION": scriptAdvice,
	"SET": recordAdvice, "SETEX": recordAdvice, "PSETEX": recordAdvice, "SETNX": recordAdvice, "MSET": recordAdvice, "MGET": recordAdvice, "HSET": recordAdvice, "HMSET": recordAdvice, "HGET": recordAdvice, "HGETALL": recordAdvice,
	"SUBSCRIBE": eventAdvice, "PSUBSCRIBE": eventAdvice, "PUBLISH": eventAdvice, "SSUBSCRIBE": eventAdvice, "XREAD": eventAdvice, "XREADGROUP": eventAdvice, "XADD": eventAdvice,
	"PFADD": visitAdvice, "PFCOUNT": visitAdvice, "PFMERGE": visitAdvice,
	"ZINTER": unionAdvice, "ZUNION": unionAdvice, "SINTER": unionAdvice,
	"SUNIONSTORE": "SUNION answers the same without a copy",
	"SINTERSTORE": "FRIENDS.ONLINE answers which friends are online",
	"FLUSHALL":    "POST /v1/online/clear and DELETE /v1/users/{user} remove what is known of users", "FLUSHDB": "POST /v1/online/clear and DELETE /v1/users/{user} remove what is known of users",
	"WATCH": "a transaction here needs none: MULTI alone", "UNWATCH": "a transaction here needs none: MULTI alone",
	"MONITOR": "GET /metrics counts commands, and GET /v1/events tells what happened",
	"BITPOS":  "GET /v1/attendance/users/{user} lists the days", "BITFIELD": "GET /v1/attendance/users/{user} lists the days",
}

const (
	scriptAdvice = "scripts are not run: every command is atomic by itself, a login with its limits is POST /v1/sessions, and FRIENDS.ONLINE answers which friends are online"
	recordAdvice = "records are fields of a session: POST /v1/sessions takes name, app, ip and attrs, and GET /v1/sessions/{id} returns them"
	eventAdvice  = "GET /v1/events is the stream of events, and webhooks post them"
	visitAdvice  = "POST /v1/visits counts unique visitors, and GET /v1/visits returns the figure"
	unionAdvice  = "inside MULTI, ZUNIONSTORE, ZREMRANGEBYSCORE, ZINTERSTORE and ZRANGE ask who of a user's friends is online; FRIENDS.ONLINE asks it with one command"
)
