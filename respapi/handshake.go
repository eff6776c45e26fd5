package respapi

import (
	"fmt"
	"strings"

	"github.com/rollcall/rollcall"
)

// redisVersion is the version of Redis that clients are told. They choose by it which
// commands they send.
const redisVersion = "7.0.0"

// maxClientName bounds the name of a connection, in bytes.
const maxClientName = 128

func connectionCommands() []command {
	return []command{
		{name: "AUTH", least: 1, most: 2, stranger: true, now: true, run: cmdAuth},
		{name: "HELLO", most: 8, stranger: true, now: true, run: cmdHello},
		{name: "PING", most: 1, stranger: true, run: cmdPing},
		{name: "QUIT", most: unlimited, stranger: true, now: true, run: cmdQuit},
		{name: "RESET", now: true, run: cmdReset},
		{name: "ECHO", least: 1, most: 1, run: func(c *conn, args [][]byte) { c.bulkBytes(args[1]) }},
		{name: "SELECT", least: 1, most: 1, run: cmdSelect},
		{name: "CLIENT", least: 1, most: unlimited, run: cmdClient},
		{name: "INFO", most: unlimited, run: cmdInfo},
		{name: "COMMAND", most: unlimited, run: cmdCommand},
		{name: "CONFIG", least: 1, most: unlimited, run: cmdConfig},
		{name: "TIME", run: cmdTime},
		{name: "CLUSTER", most: unlimited, run: cmdCluster},
	}
}

func cmdPing(c *conn, args [][]byte) {
	if len(args) > 1 {
		c.bulkBytes(args[1])
		return
	}
	c.simple("PONG")
}

func cmdQuit(c *conn, _ [][]byte) {
	c.ok()
	c.finishing = true
}

// cmdReset is RESET: the connection is as at its beginning, and has to say again who it is.
func cmdReset(c *conn, _ [][]byte) {
	c.queue, c.name, c.resp = nil, "", 2
	if !c.l.opts.NoKeys {
		c.who, c.roll, c.acting = identity{}, nil, nil
		c.parser.limits = strangerBounds
		c.l.forgotten(c)
	}
	c.simple("RESET")
}

// cmdSelect is SELECT 0: there is one database.
func cmdSelect(c *conn, args [][]byte) {
	if string(args[1]) != "0" {
		c.failWith(rollcall.Invalid("SELECT", "there is database 0 only"))
		return
	}
	c.ok()
}

func cmdClient(c *conn, args [][]byte) {
	sub, rest := strings.ToUpper(clip(args[1])), args[2:]
	switch {
	case sub == "SETNAME" && len(rest) == 1:
		if c.setName(string(rest[0])) {
			c.ok()
		}
	case sub == "GETNAME" && len(rest) == 0:
		c.bulk(c.name)
	case sub == "ID" && len(rest) == 0:
		c.int(int(c.id))
	case (sub == "INFO" || sub == "LIST") && len(rest) == 0:
		c.bulk(fmt.Sprintf("id=%d addr=%s name=%s db=0 resp=%d\n", c.id, c.net.RemoteAddr(), c.name, c.resp))
	case sub == "SETINFO" && len(rest) == 2, (sub == "NO-EVICT" || sub == "NO-TOUCH") && len(rest) == 1:
		c.ok() // there is nothing that they would change
	case sub == "TRACKING" && len(rest) == 1 && is(rest[0], "OFF"), sub == "REPLY" && len(rest) == 1 && is(rest[0], "ON"):
		c.ok()
	case sub == "TRACKING":
		c.failWith(rollcall.Invalid("CLIENT TRACKING", "answers are not cached on the client's side: switch its cache off, such as DisableCache"))
	default:
		c.failWith(rollcall.Invalid("CLIENT", "'%s' is not served here: there are SETNAME, GETNAME, SETINFO, ID, INFO, TRACKING OFF, NO-EVICT and NO-TOUCH", sub))
	}
}

// setName takes a name for the connection; false if it answered that it cannot be one.
func (c *conn) setName(name string) bool {
	if len(name) > maxClientName {
		c.failWith(rollcall.Invalid("SETNAME", "has %d bytes, the limit is %d", len(name), maxClientName))
		return false
	}
	for i := range len(name) {
		if name[i] <= ' ' || name[i] >= 0x7f {
			c.failWith(rollcall.Invalid("SETNAME", "may hold printable ASCII without spaces only"))
			return false
		}
	}
	c.name = name
	return true
}

// cmdInfo says what clients ask of a server before they use it.
func cmdInfo(c *conn, _ [][]byte) {
	c.bulk(fmt.Sprintf("# Server\r\nredis_version:%s\r\nredis_mode:standalone\r\nrollcall_version:%s\r\n\r\n"+
		"# Clients\r\nconnected_clients:%d\r\nmaxclients:%d\r\n\r\n"+
		"# Persistence\r\nloading:0\r\n\r\n# Replication\r\nrole:master\r\nconnected_slaves:0\r\n\r\n# Cluster\r\ncluster_enabled:0\r\n",
		redisVersion, c.l.opts.Version, c.l.Connections(), c.l.opts.MaxConnections))
}

// cmdCommand answers COMMAND as far as clients go by it: which verbs there are, and how many.
func cmdCommand(c *conn, args [][]byte) {
	switch {
	case len(args) > 1 && is(args[1], "COUNT"):
		c.int(len(c.l.verbs.all) - 1)
	case len(args) > 1 && is(args[1], "DOCS"):
		c.mapping(0)
	case len(args) > 1 && is(args[1], "LIST"):
		c.array(len(c.l.verbs.all) - 1)
		for _, cmd := range c.l.verbs.all[1:] {
			c.bulk(strings.ToLower(cmd.name))
		}
	case len(args) > 1 && is(args[1], "INFO"):
		c.array(len(args) - 2)
		for _, name := range args[2:] {
			if n := c.l.verbs.find(name); n > 0 {
				c.describe(&c.l.verbs.all[n])
			} else {
				c.null()
			}
		}
	case len(args) > 1:
		c.failWith(rollcall.Invalid("COMMAND", "'%s' is not served here: there are COUNT, DOCS, INFO and LIST", clip(args[1])))
	default:
		c.array(len(c.l.verbs.all) - 1)
		for i := range c.l.verbs.all[1:] {
			c.describe(&c.l.verbs.all[i+1])
		}
	}
}

// describe writes a command as COMMAND does: name, arity, flags, and where its keys are.
func (c *conn) describe(cmd *command) {
	arity := cmd.least + 1
	if cmd.most != cmd.least {
		arity = -arity
	}
	c.array(6)
	c.bulk(strings.ToLower(cmd.name))
	c.int(arity)
	c.array(0)
	for range 3 {
		c.int(0)
	}
}

// cmdConfig is CONFIG GET: of what redis-benchmark asks for.
func cmdConfig(c *conn, args [][]byte) {
	if !is(args[1], "GET") || len(args) < 3 {
		c.failWith(rollcall.Invalid("CONFIG", "only CONFIG GET is served here: settings are those of \"rollcall config print\""))
		return
	}
	known := map[string]string{"save": "", "appendonly": "no", "databases": "1", "maxmemory": "0"}
	var found []string
	for _, name := range args[2:] {
		if _, ok := known[strings.ToLower(string(name))]; ok {
			found = append(found, strings.ToLower(string(name)))
		}
	}
	c.mapping(len(found))
	for _, name := range found {
		c.bulk(name)
		c.bulk(known[name])
	}
}

// cmdTime answers with the clock that decides: seconds, and microseconds in them.
func cmdTime(c *conn, _ [][]byte) {
	c.array(2)
	c.bulk(fmt.Sprint(c.now.Unix()))
	c.bulk(fmt.Sprint(c.now.Nanosecond() / 1000))
}

// cmdCluster tells clients that try a cluster first that this is none, in the words by which
// they know it.
func cmdCluster(c *conn, _ [][]byte) {
	c.failed = rollcall.CodeInvalidArgument
	c.refuse("ERR", "This instance has cluster support disabled")
}
