package takeover

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/rueidis"
	"golang.org/x/time/rate"
)

// SourceOptions say how gently the old Redis is read.
type SourceOptions struct {
	// Rate is how many keys and entries are read a second at most; default 20,000.
	Rate int
	// Timeout bounds each command; default 3s.
	Timeout time.Duration
}

const (
	defaultRate    = 20_000
	maxRate        = 10_000_000
	defaultTimeout = 3 * time.Second
	// portion is how many keys or entries are asked for at a time: about a
	// millisecond of Redis.
	portion = 1000
)

// Source is a Redis on which a system was built by hand. It is read only, unless it is
// written back to.
type Source struct {
	client  rueidis.Client
	pace    *rate.Limiter
	timeout time.Duration
}

// NewSource reads by a client, which stays the caller's.
func NewSource(client rueidis.Client, o SourceOptions) (*Source, error) {
	if o.Rate == 0 {
		o.Rate = defaultRate
	}
	if o.Timeout == 0 {
		o.Timeout = defaultTimeout
	}
	switch {
	case o.Rate < 1 || o.Rate > maxRate:
		return nil, fmt.Errorf("--rate: must be between 1 and %d, is %d", maxRate, o.Rate)
	case o.Timeout < 10*time.Millisecond || o.Timeout > time.Minute:
		return nil, fmt.Errorf("timeout: must be between 10ms and 1m, is %v", o.Timeout)
	}
	return &Source{client: client, pace: rate.NewLimiter(rate.Limit(o.Rate), max(portion, o.Rate/10)), timeout: o.Timeout}, nil
}

// do asks one command that reads n entries.
func (s *Source) do(ctx context.Context, n int, c rueidis.Completed) (rueidis.RedisMessage, error) {
	return s.doOn(ctx, s.client, n, c)
}

func (s *Source) doOn(ctx context.Context, client rueidis.Client, n int, c rueidis.Completed) (rueidis.RedisMessage, error) {
	if err := s.wait(ctx, n); err != nil {
		return rueidis.RedisMessage{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	m, err := client.Do(ctx, c).ToMessage()
	return m, s.readError(err)
}

// all asks several commands at once. An answer of nil is no error.
func (s *Source) all(ctx context.Context, cmds ...rueidis.Completed) ([]rueidis.RedisMessage, error) {
	return s.ask(ctx, false, cmds)
}

// whatever is all, and gives no answer of keys that are of another type: whoever looks at a
// family of keys does not know what else has such a name.
func (s *Source) whatever(ctx context.Context, cmds ...rueidis.Completed) ([]rueidis.RedisMessage, error) {
	return s.ask(ctx, true, cmds)
}

func (s *Source) ask(ctx context.Context, anyType bool, cmds []rueidis.Completed) ([]rueidis.RedisMessage, error) {
	if len(cmds) == 0 {
		return nil, nil
	}
	if err := s.wait(ctx, len(cmds)); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	out := make([]rueidis.RedisMessage, len(cmds))
	for i, r := range s.client.DoMulti(ctx, cmds...) {
		m, err := r.ToMessage()
		if anyType && wrongType(err) {
			continue
		}
		if err := s.readError(err); err != nil {
			return nil, err
		}
		out[i] = m
	}
	return out, nil
}

// scan asks one command of the SCAN family about a key: the entries that it tells count for
// the rate, and not those that it might have told.
func (s *Source) scan(ctx context.Context, c rueidis.Completed) (rueidis.ScanEntry, error) {
	m, err := s.do(ctx, 1, c)
	if err != nil {
		return rueidis.ScanEntry{}, err
	}
	entry, err := m.AsScanEntry()
	if err != nil {
		return entry, s.readError(err)
	}
	return entry, s.wait(ctx, len(entry.Elements)-1)
}

// wait keeps to the rate. It waits until ctx ends, also where that comes before the turn:
// who set an end wants to hear of it, and not of the rate.
func (s *Source) wait(ctx context.Context, n int) error {
	for n > 0 {
		some := min(n, s.pace.Burst())
		turn := s.pace.ReserveN(time.Now(), some)
		timer := time.NewTimer(turn.Delay())
		select {
		case <-ctx.Done():
			timer.Stop()
			turn.Cancel()
			return context.Cause(ctx)
		case <-timer.C:
		}
		n -= some
	}
	return nil
}

// over reports whether ctx has ended, and waits for that if err says that its deadline is
// here: a client may notice an instant before the context does.
func over(ctx context.Context, err error) bool {
	if deadline, ok := ctx.Deadline(); ok && errors.Is(err, context.DeadlineExceeded) && time.Until(deadline) < time.Second {
		<-ctx.Done()
	}
	return ctx.Err() != nil
}

func (s *Source) readError(err error) error {
	switch {
	case err == nil || rueidis.IsRedisNil(err):
		return nil
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("the old Redis did not answer within %v: %w", s.timeout, err)
	default:
		return fmt.Errorf("ask the old Redis: %w", err)
	}
}

// masters returns the servers whose keys are to be walked, by their address.
func (s *Source) masters(ctx context.Context) (map[string]rueidis.Client, error) {
	nodes := s.client.Nodes()
	if s.client.Mode() != rueidis.ClientModeCluster {
		return map[string]rueidis.Client{"": s.client}, nil
	}
	for address, node := range nodes {
		m, err := s.doOn(ctx, node, 1, node.B().Role().Build())
		if err != nil {
			return nil, err
		}
		role, err := m.ToArray()
		if err != nil || len(role) == 0 {
			return nil, fmt.Errorf("%s does not say whether it is a master", address)
		}
		if text, _ := role[0].ToString(); text != "master" {
			delete(nodes, address)
		}
	}
	return nodes, nil
}

// runID returns what tells this run of a standalone server from the next; "" if
// that cannot be known. The positions of SCAN are good for one run.
func (s *Source) runID(ctx context.Context) string {
	if s.client.Mode() == rueidis.ClientModeCluster {
		return ""
	}
	m, err := s.do(ctx, 1, s.client.B().Info().Section("server").Build())
	if err != nil {
		return ""
	}
	text, _ := m.ToString()
	return infoField(text, "run_id")
}
