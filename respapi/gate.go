package respapi

import (
	"bytes"
	"time"

	"github.com/rollcall/rollcall"
)

// identity is who a connection speaks for.
type identity struct {
	role    rollcall.Role // "" for a stranger
	key     rollcall.APIKey
	text    string    // the key itself, to ask for it again
	checked time.Time // when the key was last found to work
}

func (i *identity) is() bool { return i.role != "" }

// actor names the client in what is remembered of an end.
func (i *identity) actor() string {
	switch {
	case i.key.Name != "":
		return i.key.Name
	case i.key.ID != "":
		return "key " + i.key.ID
	default:
		return "local"
	}
}

// become gives the connection the rights of who it speaks for.
func (c *conn) become(who identity) {
	c.who = who
	c.roll, c.parser.limits = c.l.public, callerBounds
	if who.role == rollcall.RoleAdmin {
		c.roll = c.l.roll
	}
	actor := "local"
	if who.key.ID != "" {
		actor = "key:" + who.key.ID
	}
	c.acting = rollcall.WithActor(c.ctx, actor)
}

// authenticate takes an API key: as a password, whatever the user name. It answers
// itself if the key does not work, and is false then.
func (c *conn) authenticate(text []byte) bool {
	if c.l.opts.NoKeys {
		return true // there is nothing to be known
	}
	key, err := c.l.roll.Authenticate(c.ctx, string(text))
	if err == nil {
		c.become(identity{role: key.Role, key: key, text: string(text), checked: c.now})
		c.l.introduced(c)
		_ = c.net.SetReadDeadline(time.Time{}) // that of strangers; a write tells if it fails
		return true
	}
	if rollcall.CodeOf(err) != rollcall.CodeUnauthenticated {
		c.failWith(err)
		return false
	}
	c.failed = rollcall.CodeUnauthenticated
	if _, ok := c.l.failures.take(addressOf(c.net.RemoteAddr()), time.Now(), 0); !ok {
		c.failWith(&rollcall.Error{Code: rollcall.CodeRateLimited, Detail: "too many API keys that do not work: slow down"})
		c.finishing = true
		return false
	}
	c.l.refusedKey(c)
	_, detail := explain(err)
	c.refuse("WRONGPASS", "unauthenticated "+detail)
	return false
}

// admit decides whether what came together may be done: the key still has to work, and
// to have some of its allowance left. It is asked once for each read: a transaction is
// not to lose its beginning.
func (c *conn) admit() error {
	if c.refusal == nil {
		c.refusal = c.charge()
	}
	return c.refusal
}

func (c *conn) charge() error {
	c.now = c.l.roll.Now()
	if c.charged || !c.who.is() || c.who.key.ID == "" {
		return nil
	}
	if age := c.now.Sub(c.who.checked); age >= keyKept || age < 0 {
		key, err := c.l.roll.Authenticate(c.ctx, c.who.text)
		if err != nil {
			c.finishing = rollcall.CodeOf(err) == rollcall.CodeUnauthenticated
			return err
		}
		if key.Role != c.who.role {
			c.become(identity{role: key.Role, key: key, text: c.who.text})
		}
		c.who.checked = c.now
	}
	wait, ok := c.l.perKey.take(c.who.key.ID, time.Now(), throttleTime)
	if !ok {
		return &rollcall.Error{Code: rollcall.CodeRateLimited, Detail: "too many commands with this API key: slow down, or send them together"}
	}
	if wait > 0 && !c.pause(wait) {
		c.finishing = true
		return &rollcall.Error{Code: rollcall.CodeUnavailable, Detail: "the server is stopping"}
	}
	c.charged = true
	return nil
}

// pause holds the connection up for its key's allowance.
func (c *conn) pause(wait time.Duration) bool {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-c.l.shut:
		return false
	case <-timer.C:
		c.now = c.l.roll.Now()
		return true
	}
}

// refusalLines is how far lines of the log on refused keys are apart.
const refusalLines = 10 * time.Second

// refusals are API keys that did not work, since there was a line on them.
type refusals struct {
	n    int
	said time.Time
}

// refusedKey writes a line on keys that do not work, unless there was one just now.
func (l *Listener) refusedKey(c *conn) {
	l.mu.Lock()
	l.refusals.n++
	n, now := l.refusals.n, time.Now()
	due := l.refusals.said.IsZero() || now.Sub(l.refusals.said) >= refusalLines
	if due {
		l.refusals.n, l.refusals.said = 0, now
	}
	l.mu.Unlock()
	if due {
		l.opts.Logger.Warn("security", "event", "authentication_failed", "door", "resp", "times", n, "last_address", c.net.RemoteAddr().String())
	}
}

// cmdAuth is AUTH [user] key. The user says nothing: it may be the key's id.
func cmdAuth(c *conn, args [][]byte) {
	if c.authenticate(args[len(args)-1]) {
		c.ok()
	}
}

// cmdHello is HELLO [2|3 [AUTH user key] [SETNAME name]].
func cmdHello(c *conn, args [][]byte) {
	version := c.resp
	if len(args) > 1 {
		switch string(args[1]) {
		case "2", "3":
			version = int(args[1][0] - '0')
		default:
			c.failed = rollcall.CodeInvalidArgument
			c.refuse("NOPROTO", "unsupported protocol version: there are 2 and 3")
			return
		}
	}
	name, named := c.name, false
	for i := 2; i < len(args); i++ {
		switch {
		case is(args[i], "AUTH") && i+2 < len(args):
			if !c.authenticate(args[i+2]) {
				return
			}
			i += 2
		case is(args[i], "SETNAME") && i+1 < len(args):
			name, named = string(args[i+1]), true
			i++
		default:
			c.failWith(rollcall.Invalid("HELLO", "does not know the option %q", clip(args[i])))
			return
		}
	}
	if !c.who.is() {
		c.strangers("HELLO")
		return
	}
	if named && !c.setName(name) {
		return
	}
	c.resp = version
	c.greet()
}

// greet answers HELLO.
func (c *conn) greet() {
	c.mapping(8)
	for _, f := range [...][2]string{{"server", "rollcall"}, {"version", redisVersion}, {"rollcall_version", c.l.opts.Version}} {
		c.bulk(f[0])
		c.bulk(f[1])
	}
	c.bulk("proto")
	c.int(c.resp)
	c.bulk("id")
	c.int(int(c.id))
	c.bulk("mode")
	c.bulk("standalone")
	c.bulk("role")
	c.bulk("master")
	c.bulk("modules")
	c.array(0)
}

// strangers refuses what works only after AUTH.
func (c *conn) strangers(what string) {
	c.failed = rollcall.CodeUnauthenticated
	c.refuse("NOAUTH", "unauthenticated "+what+" needs an API key: AUTH user key, or HELLO 3 AUTH user key")
}

// is compares a word of a command, of which case does not matter.
func is(word []byte, with string) bool {
	return len(word) == len(with) && bytes.EqualFold(word, []byte(with))
}

// clip keeps what a client sent short enough to be quoted.
func clip(text []byte) string {
	const limit = 64
	if len(text) <= limit {
		return string(text)
	}
	return string(text[:limit]) + "…"
}
