package redis

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/redis/rueidis"

	"github.com/rollcall/rollcall"
)

// Calls, and answers that are lost.
//
// The problem: a connection may break after a command was sent, a master may die before it
// answers, and a slot may move to another server. Then nobody knows whether the command was
// carried out.
//
// The invariant: a command that returns no error was carried out once.
//
// Every call has an outcome, and is sent again until the timeout if that allows it:
//
// | outcome | what happened | what the engine does |
// | --- | --- | --- |
// | failed | Redis refused it, and would again | returns the error |
// | refused | Redis did not carry it out: it loads its data, has no quorum, or moves the slot | sends it again |
// | noScript | the server does not know the script | gives it the scripts, sends it again |
// | lost | no answer: it was carried out or not | sends it again, unless the call says otherwise |
//
// What a script that was carried out finds the second time:
//
// | script | the second run |
// | --- | --- |
// | keeps its answer (script.keeps) | the first answer, under the id of the request: see done in env.lua |
// | a login with a retry key | the session of the first, under that key |
// | a login without one | is not sent again: the caller hears that the answer was lost |
// | any other | does nothing that the first run has not done, but counts its beats again |
//
// Moved slots: all keys of a partition share a slot. While the slot moves, some of its keys
// are on one server and some on the other, and a script must not run on half of them. So
// each script declares two keys, one of which never exists: both servers miss a key then,
// and refuse with TRYAGAIN. The client follows MOVED and ASK by itself.

// call is one command on its way: a script in a partition, or anything else
// that goes to one slot.
type call struct {
	script *script
	part   int      // the partition of the script, or -1 for a script of another key
	key    string   // the key of a script that is not of a partition
	args   []string // of the script
	plain  func() rueidis.Completed
	// id names the request to a script that keeps its answer, so that it can be
	// sent again without being carried out twice.
	id string
	// noRepeat says that the command must not be sent again when it is not known
	// whether it was carried out.
	noRepeat bool
}

// writes reports whether an answer proves that the partition takes writes.
func (c *call) writes() bool { return c.script != nil && c.script.writes }

// partCall calls a script of a partition.
func partCall(part int, s *script, args ...string) call {
	return call{script: s, part: part, args: args}
}

// keyCall calls a script of one key that belongs to no partition, or stands for itself.
func keyCall(key string, s *script, args ...string) call {
	return call{script: s, part: -1, key: key, args: args}
}

// plainCall calls a command of Redis that may be repeated.
func plainCall(build func() rueidis.Completed) call { return call{part: -1, plain: build} }

// backoff returns how long to wait before the next attempt.
func backoff(attempt int) time.Duration {
	d := min(5*time.Millisecond<<min(attempt, 6), 250*time.Millisecond)
	return d/2 + rand.N(d) //nolint:gosec // spreads retries, protects nothing
}

// command builds a call. The environment is made anew for each attempt, as what
// was heard meanwhile belongs to it.
func (e *Engine) command(c *call, now int64) rueidis.Completed {
	if c.plain != nil {
		return c.plain()
	}
	b := e.client.B().Evalsha().Sha1(c.script.sha)
	if c.part < 0 {
		return b.Numkeys(1).Key(c.key).Arg(c.args...).Build()
	}
	return b.Numkeys(2).Key(e.keyPrefixes[c.part], e.states[c.part]).Arg(e.env(c.part, now) + c.id).Arg(c.args...).Build()
}

// nameRequest gives a call an id if its script keeps its answer. All attempts at the
// call bear the same.
func (e *Engine) nameRequest(c *call) {
	if c.script != nil && c.script.keeps && c.id == "" {
		var p packer
		p.b = append(p.b, e.server[:]...)
		p.u64(e.requests.Add(1))
		c.id = p.text()
	}
}

// do carries out calls, pipelined, and returns their answers in the same order. Each call
// is repeated within the timeout as its outcome allows; large commands are sent in rounds
// (call_flow.go). With an error, the calls that were answered have their messages, and the
// others are empty.
func (e *Engine) do(ctx context.Context, now int64, calls ...call) ([]rueidis.RedisMessage, error) {
	if err := e.checkOpen(); err != nil || len(calls) == 0 {
		return nil, err
	}
	for i := range calls {
		e.nameRequest(&calls[i])
	}
	if isLarge(calls) {
		return e.doInRounds(ctx, now, calls)
	}
	return e.sendUntilAnswered(ctx, now, calls, false)
}

// sendUntilAnswered carries out calls that are sent together. If the caller is patient,
// calls are sent again after the timeout too, as long as Redis answers others.
func (e *Engine) sendUntilAnswered(ctx context.Context, now int64, calls []call, patient bool) ([]rueidis.RedisMessage, error) {
	out := make([]rueidis.RedisMessage, len(calls))
	left := make([]int, len(calls))
	for i := range left {
		left[i] = i
	}
	for most := len(left); len(left) > 0; {
		some := left[:min(most, len(left))]
		rest, err := e.withinTimeout(ctx, now, calls, some, out)
		if err != nil && (len(rest) == 0 || !patient || ctx.Err() != nil || e.flow.silent(2*e.opts.Timeout)) {
			return out, err
		}
		if err != nil {
			most = max(1, most/2) // Redis is busy: less at a time
		}
		left = append(slices.Clone(rest), left[len(some):]...)
	}
	return out, nil
}

// withinTimeout sends calls until all are answered or the timeout has passed. With the
// error of the timeout it returns the calls that may be sent again; with another error
// none.
func (e *Engine) withinTimeout(ctx context.Context, now int64, calls []call, left []int, out []rueidis.RedisMessage) ([]int, error) {
	ctx, cancel := context.WithTimeout(ctx, e.opts.Timeout)
	defer cancel()
	for attempt := 0; ; attempt++ {
		var err error
		if left, err = e.sendOnce(ctx, now, calls, left, out); err != nil || len(left) == 0 {
			return left, err
		}
		if err := pause(ctx, backoff(attempt)); err != nil {
			return left, unavailable(err)
		}
	}
}

// one carries out one call.
func (e *Engine) one(ctx context.Context, now int64, c call) (rueidis.RedisMessage, error) {
	out, err := e.do(ctx, now, c)
	if err != nil {
		return rueidis.RedisMessage{}, err
	}
	return out[0], nil
}

// sendOnce sends the calls that are left, and returns those that are to be sent again. With
// an error it returns them only if the time is up.
func (e *Engine) sendOnce(ctx context.Context, now int64, calls []call, left []int, out []rueidis.RedisMessage) ([]int, error) {
	commands := make(rueidis.Commands, len(left))
	for i, c := range left {
		commands[i] = e.command(&calls[c], now)
	}

	// Sort the answers: done, to be sent again, or failed for good.
	var again []int
	var timedOut, hard error
	missing := false
	for i, result := range e.send(ctx, commands) {
		c := left[i]
		msg, err := result.ToMessage()
		if err == nil || rueidis.IsRedisNil(err) {
			out[c] = msg
			e.flow.answered()
			e.life.noteAnswer(calls[c].part, now, calls[c].writes())
			e.news.noteCommand(&calls[c])
			continue
		}
		what := outcomeOf(err)
		missing = missing || what == noScript
		e.life.noteFailure(calls[c].part, err, what)
		if what == failed || (what == lost && calls[c].noRepeat) {
			hard = cmp.Or(hard, errorOf(err)) // what was answered behind it counts
			continue
		}
		if ctx.Err() != nil && timedOut == nil {
			timedOut = errorOf(err)
		}
		again = append(again, c)
	}
	if hard != nil {
		return nil, hard
	}

	// A server lacked a script: give it all before the next attempt.
	if missing && timedOut == nil {
		switch err := e.loadScripts(ctx); {
		case err != nil && outcomeOf(err) == failed:
			return nil, err // and would be so the next time
		case err != nil && ctx.Err() != nil:
			timedOut = err
		}
	}
	return again, timedOut
}

func (e *Engine) send(ctx context.Context, commands rueidis.Commands) []rueidis.RedisResult {
	if len(commands) == 1 {
		return []rueidis.RedisResult{e.client.Do(ctx, commands[0])}
	}
	return e.client.DoMulti(ctx, commands...)
}

// pause waits, unless the context ends first.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// oneConfirmed carries out a call and, if Options.Wait says so, waits until that many
// replicas have it. It takes a connection of its own, as Redis waits for the writes of one
// connection.
func (e *Engine) oneConfirmed(ctx context.Context, now int64, c call) (rueidis.RedisMessage, error) {
	if e.opts.Wait == 0 {
		return e.one(ctx, now, c)
	}
	if err := e.checkOpen(); err != nil {
		return rueidis.RedisMessage{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, e.opts.Timeout)
	defer cancel()
	var out rueidis.RedisMessage
	e.nameRequest(&c)
	for attempt := 0; ; attempt++ {
		var again bool
		err := e.client.Dedicated(func(conn rueidis.DedicatedClient) error {
			var err error
			out, again, err = e.sendConfirmed(ctx, conn, now, &c)
			return err
		})
		if err != nil || !again {
			return out, err
		}
		if err := pause(ctx, backoff(attempt)); err != nil {
			return out, unavailable(err)
		}
	}
}

// sendConfirmed sends a call once and waits for the replicas; again says that it is to be
// sent again.
func (e *Engine) sendConfirmed(ctx context.Context, conn rueidis.DedicatedClient, now int64, c *call) (out rueidis.RedisMessage, again bool, err error) {
	out, err = conn.Do(ctx, e.command(c, now)).ToMessage()
	if err != nil && !rueidis.IsRedisNil(err) {
		switch what := outcomeOf(err); {
		case what == noScript:
			return out, true, e.loadScripts(ctx)
		case what == refused && ctx.Err() == nil:
			e.life.noteFailure(c.part, err, what)
			return out, true, nil
		case what == lost && !c.noRepeat && ctx.Err() == nil:
			e.life.noteFailure(c.part, err, what)
			return out, true, nil
		default:
			e.life.noteFailure(c.part, err, what)
			return out, false, errorOf(err)
		}
	}
	e.life.noteAnswer(c.part, now, c.writes())
	e.news.noteCommand(c)

	// The master has it. Wait for the replicas as long as the caller's time allows.
	left := e.opts.Timeout
	if deadline, ok := ctx.Deadline(); ok {
		left = max(time.Until(deadline)-50*time.Millisecond, time.Millisecond)
	}
	n, err := conn.Do(ctx, conn.B().Wait().Numreplicas(int64(e.opts.Wait)).Timeout(left.Milliseconds()).Build()).AsInt64()
	if err != nil {
		return out, false, errorOf(err)
	}
	if n < int64(e.opts.Wait) {
		return out, false, &rollcall.Error{
			Code:   rollcall.CodeUnavailable,
			Detail: "done on the master, but not confirmed by as many replicas as redis.wait asks for",
		}
	}
	return out, false, nil
}
