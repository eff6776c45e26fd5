package redis

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/redis/rueidis"

	"github.com/rollcall/rollcall"
)

// loader lets one goroutine at a time give the servers their scripts.
type loader struct {
	mu sync.Mutex
}

// loadScripts gives every server the scripts that it lacks. A server that does not answer, or
// does not let the engine in, may lack scripts as long as another server has all: it gets them
// when it says that it lacks one. If a server refuses a script, that is an error: the commands
// that need the script would never work.
func (e *Engine) loadScripts(ctx context.Context) error {
	e.loader.mu.Lock()
	defer e.loader.mu.Unlock()
	var away error
	whole := 0
	for _, node := range e.client.Nodes() {
		err := e.loadInto(ctx, node)
		switch {
		case err == nil:
			whole++
		case outcomeOf(err) == failed && !refusesUser(err):
			return err
		case away == nil:
			away = err
		}
	}
	if whole > 0 {
		return nil
	}
	return away
}

// loadInto gives one server the scripts that it lacks. Usually it has all, from another engine
// or an earlier start.
func (e *Engine) loadInto(ctx context.Context, node rueidis.Client) error {
	lacks := e.lacking(ctx, node)
	if len(lacks) == 0 {
		return nil
	}
	commands := make(rueidis.Commands, 0, len(lacks))
	for _, s := range lacks {
		commands = append(commands, e.client.B().ScriptLoad().Script(s.text).Build())
	}
	for i, r := range node.DoMulti(ctx, commands...) {
		if err := r.Error(); err != nil {
			return notLoaded(lacks[i], err)
		}
	}
	return nil
}

// lacking returns the scripts that a server does not have; all, if it does not say.
func (e *Engine) lacking(ctx context.Context, node rueidis.Client) []*script {
	names := make([]string, len(e.scripts.all))
	for i, s := range e.scripts.all {
		names[i] = s.sha
	}
	has, err := node.Do(ctx, e.client.B().ScriptExists().Sha1(names...).Build()).AsIntSlice()
	if err != nil || len(has) != len(names) {
		return e.scripts.all
	}
	var lacks []*script
	for i, s := range e.scripts.all {
		if has[i] == 0 {
			lacks = append(lacks, s)
		}
	}
	return lacks
}

// notLoaded is the error of a server that did not take a script.
func notLoaded(s *script, err error) error {
	var re *rueidis.RedisError
	if !errors.As(err, &re) || outcomeOf(err) != failed {
		return errorOf(err)
	}
	if strings.HasPrefix(re.Error(), "Error compiling") { // the client has cut off ERR
		return &rollcall.Error{Code: rollcall.CodeInternal, Detail: fmt.Sprintf("Redis cannot compile the script %q", s.name), Err: err}
	}
	switch code, _, _ := strings.Cut(re.Error(), " "); code {
	case "OOM", "MISCONF", "NOAUTH", "WRONGPASS", "NOPERM":
		return errorOf(err)
	default:
		return &rollcall.Error{Code: rollcall.CodeUnavailable, Detail: fmt.Sprintf("Redis refuses the script %q", s.name), Err: err}
	}
}

// refusesUser reports whether a server does not accept the engine's user: it says so of every
// command of the connection.
func refusesUser(err error) bool {
	var re *rueidis.RedisError
	if !errors.As(err, &re) {
		return false
	}
	code, _, _ := strings.Cut(re.Error(), " ")
	return code == "NOAUTH" || code == "WRONGPASS"
}
