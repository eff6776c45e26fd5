package respapi

import "github.com/rollcall/rollcall"

const (
	// maxQueued and maxQueuedBytes bound what MULTI holds until EXEC.
	maxQueued      = 1_000
	maxQueuedBytes = 1 << 20
	// argumentCost is what an argument takes beside its bytes.
	argumentCost = 32
)

// transaction is what MULTI gathers.
type transaction struct {
	queued  [][][]byte
	bytes   int
	spoiled bool // a command was refused: EXEC does nothing
}

func transactionCommands() []command {
	return append(unionCommands(), []command{
		{name: "MULTI", now: true, run: cmdMulti},
		{name: "EXEC", now: true, run: cmdExec},
		{name: "DISCARD", now: true, run: cmdDiscard},
	}...)
}

func cmdMulti(c *conn, _ [][]byte) {
	if c.queue != nil {
		c.queue.spoiled = true
		c.failWith(rollcall.Invalid("MULTI", "stands in a transaction already"))
		return
	}
	c.queue = &transaction{}
	c.ok()
}

func cmdDiscard(c *conn, _ [][]byte) {
	if c.queue == nil {
		c.failWith(rollcall.Invalid("DISCARD", "has no MULTI before it"))
		return
	}
	c.queue = nil
	c.ok()
}

// spoil notes that a command of a transaction was refused. One that would have ended it has
// ended it.
func (c *conn) spoil(cmd *command) {
	switch {
	case c.queue == nil:
	case cmd.name == "EXEC" || cmd.name == "DISCARD":
		c.queue = nil
	default:
		c.queue.spoiled = true
	}
}

// enqueue keeps a command for EXEC.
func (c *conn) enqueue(args [][]byte) {
	q := c.queue
	kept := make([][]byte, len(args))
	for i, arg := range args {
		kept[i] = append([]byte(nil), arg...)
		q.bytes += len(arg) + argumentCost
	}
	if len(q.queued) >= maxQueued || q.bytes > maxQueuedBytes {
		q.spoiled = true
		c.failWith(&rollcall.Error{Code: rollcall.CodeTooLarge, Detail: "a transaction holds 1,000 commands and 1 MiB at most"})
		return
	}
	q.queued = append(q.queued, kept)
	c.simple("QUEUED")
}

// cmdExec does what was queued, in order. Other clients' commands may come between: each
// command is atomic by itself.
func cmdExec(c *conn, _ [][]byte) {
	q := c.queue
	if q == nil {
		c.failWith(rollcall.Invalid("EXEC", "has no MULTI before it"))
		return
	}
	c.queue = nil
	if q.spoiled {
		c.failed = rollcall.CodeInvalidArgument
		c.refuse("EXECABORT", "invalid_argument nothing was done, as a command of the transaction was refused")
		return
	}
	for _, args := range q.queued { // the key may be another one by now
		if cmd := &c.l.verbs.all[c.l.verbs.find(args[0])]; cmd.needs != "" && !c.who.role.Allows(cmd.needs) {
			c.failed = rollcall.CodeForbidden
			c.refuse("EXECABORT", "forbidden nothing was done, as "+cmd.name+" needs a key of role "+string(cmd.needs)+", and this one is "+string(c.who.role))
			return
		}
	}
	exec := c.command
	c.temps = make(temps)
	defer func() { c.temps = nil }()
	c.array(len(q.queued))
	for _, args := range q.queued {
		c.command, c.failed = c.l.verbs.find(args[0]), ""
		cmd := &c.l.verbs.all[c.command]
		if len(c.out) > maxPending {
			c.failWith(&rollcall.Error{Code: rollcall.CodeTooLarge, Detail: "this was not done, as the answers of the transaction so far have more than 64 MiB"})
			c.count(c.command, outcomeOf(c.failed), 1)
			continue
		}
		c.runNow(cmd, args)
		if cmd.take == nil { // those have been counted
			c.count(c.command, outcomeOf(c.failed), 1)
		}
	}
	c.command, c.failed = exec, ""
}
