package respapi

import (
	"strings"
	"time"

	"github.com/rollcall/rollcall"
)

// beats are signs of life that stand next to each other in what a client sent. They wait
// until a command of another kind comes, or nothing more, and then go to the engine in one
// call: a beat costs the less, the more go together.
type beats struct {
	users   []string
	text    strings.Builder
	waiting []waiting
	asks    bool // an answer depends on when its users were seen before
	mixed   bool // and not all answers count the same
}

// waiting is a command whose answer waits. Its users are those from the end of the one before.
type waiting struct {
	command int
	end     int
	answer  answer
}

// answer says which of its users a command counts in its answer.
type answer uint8

const (
	allUsers      answer = iota // all
	newUsers                    // those without a last-seen time
	movedUsers                  // those not seen in this second
	minuteUsers                 // those not seen in this minute
	textChunk     = 16 << 10
	statusAtOnce  = rollcall.MaxQueryUsers
	beatsAtOnce   = rollcall.MaxBeatUsers
	keptBeatUsers = 16 << 10 // how much of the lists a connection keeps for the next batch
)

// keep copies a user's id out of the buffer. Ids share memory that is never written again,
// so an engine may hold on to one, and a beat allocates nothing but its share of that.
func (b *beats) keep(user []byte) string {
	if b.text.Cap()-b.text.Len() < len(user) {
		b.text = strings.Builder{}
		b.text.Grow(max(textChunk, len(user)))
	}
	at := b.text.Len()
	b.text.Write(user)
	return b.text.String()[at:]
}

// beatRoom makes sure that n more users fit into the batch.
func (c *conn) beatRoom(n int, a answer) {
	most := beatsAtOnce
	if c.beats.asks || a != allUsers {
		most = statusAtOnce
	}
	if len(c.beats.waiting) > 0 && len(c.beats.users)+n > most {
		c.settle()
	}
}

// await notes how the command at hand, whose users have been kept, is answered.
func (c *conn) await(a answer) {
	b := &c.beats
	b.asks = b.asks || a != allUsers
	b.mixed = b.mixed || len(b.waiting) > 0 && b.waiting[0].answer != a
	b.waiting = append(b.waiting, waiting{c.command, len(b.users), a})
}

// takeBeat is BEAT user [user …].
func takeBeat(c *conn, args [][]byte) {
	c.beatRoom(len(args)-1, allUsers)
	for _, user := range args[1:] {
		c.beats.users = append(c.beats.users, c.beats.keep(user))
	}
	c.await(allUsers)
}

// settle gives the signs of life that wait to the engine, and writes their answers.
func (c *conn) settle() {
	b := &c.beats
	if len(b.waiting) == 0 {
		return
	}
	command, failed := c.command, c.failed
	if len(b.waiting) == 1 {
		c.settleOne(0, 0)
	} else if answers, err := c.beat(b.users, b.asks); err == nil {
		answers.mixed = b.mixed
		from := 0
		for _, w := range b.waiting {
			c.int(answers.count(w.answer, from, w.end))
			c.count(w.command, Answered, 1)
			from = w.end
		}
	} else {
		// One of them cannot be. Each has its own answer then, as if they had come alone.
		from := 0
		for i, w := range b.waiting {
			c.settleOne(i, from)
			from = w.end
		}
	}
	c.command, c.failed = command, failed
	clear(b.users) // the text can go
	b.users, b.waiting, b.asks, b.mixed = b.users[:0], b.waiting[:0], false, false
	if cap(b.users) > keptBeatUsers {
		b.users = nil
	}
	if cap(b.waiting) > keptBeatUsers {
		b.waiting = nil
	}
}

// settleOne settles one of the commands that wait by itself.
func (c *conn) settleOne(i, from int) {
	w := c.beats.waiting[i]
	c.command, c.failed = w.command, ""
	answers, err := c.beat(c.beats.users[from:w.end], w.answer != allUsers)
	if err != nil {
		c.failWith(err)
	} else {
		c.int(answers.count(w.answer, 0, w.end-from))
	}
	c.count(w.command, outcomeOf(c.failed), 1)
}

// before is when users were seen before a batch, as far as an answer needs it.
type before struct {
	seen  []rollcall.Status
	mixed bool
	heard map[string]bool // those that counted already; if mixed, all so far
	now   time.Time
}

// beat is a sign of life of users. What it writes depends on nobody's view.
func (c *conn) beat(users []string, asks bool) (before, error) {
	out := before{now: c.now}
	if asks {
		var err error
		if out.seen, err = c.lookAt(users); err != nil {
			return out, err
		}
	}
	return out, c.l.roll.Beat(c.ctx, users...)
}

// lookAt returns the status of users, of any number. To one who may write it is the truth.
func (c *conn) lookAt(users []string) ([]rollcall.Status, error) {
	if len(users) <= statusAtOnce {
		return c.l.roll.Status(c.ctx, users...)
	}
	var out []rollcall.Status
	for len(users) > 0 {
		n := min(len(users), statusAtOnce)
		some, err := c.l.roll.Status(c.ctx, users[:n]...)
		if err != nil {
			return nil, err
		}
		out, users = append(out, some...), users[n:]
	}
	return out, nil
}

// count says how many of the users from one place to another an answer counts. One who is
// named twice counts once. It is asked for the commands of a batch in their order.
func (b *before) count(a answer, from, to int) int {
	since := b.now.Truncate(time.Second)
	if a == minuteUsers {
		since = b.now.Truncate(time.Minute)
	}
	n := 0
	for i := from; i < to && b.seen != nil; i++ {
		s := &b.seen[i]
		counts := !b.heard[s.User] && (s.LastSeen.IsZero() || a != newUsers && s.LastSeen.Before(since))
		if counts {
			n++
		}
		if counts || b.mixed {
			b.hear(s.User)
		}
	}
	if a == allUsers {
		return to - from
	}
	return n
}

func (b *before) hear(user string) {
	if b.heard == nil {
		b.heard = make(map[string]bool)
	}
	b.heard[user] = true
}
