package httpapi

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/fanout"
)

// openStreams is what all streams of a server share.
type openStreams struct {
	truth, public *feed                   // by who may see what
	friends       *fanout.Hub[liveChange] // of live friends, fed by both
	credentials   *credentialWatch
	tickets       usedTickets
	metrics       *streamMetrics
	faults        *faultLog
	limits        StreamLimits
	line          turnLine
	pieces        sync.Pool     // of *piece, in which frames are put together
	pages         chan struct{} // holds an entry for each page of the log that is read
	looks         lookLine      // of lists of friends
	lookEvery     time.Duration // about how often a stream looks at its friends

	ending context.Context
	end    context.CancelFunc

	mu       sync.Mutex
	open     int
	owners   map[string]int       // streams of each key, and of each user
	streams  map[*stream]struct{} // but pages
	stopping bool                 // no more may begin
	all      sync.WaitGroup       // of those that are open
}

// StreamLimits bound the streams that are open at a time. Beyond them the answer is
// unavailable, with Retry-After. The zero value stands for the defaults.
type StreamLimits struct {
	All     int // default 20,000
	PerKey  int // of one API key; default 15,000
	PerUser int // of live friends, of one user; default 20
}

func (l *StreamLimits) fill() {
	for _, d := range []struct {
		limit *int
		value int
	}{{&l.All, 20_000}, {&l.PerKey, 15_000}, {&l.PerUser, 20}} {
		if *d.limit == 0 {
			*d.limit = d.value
		}
	}
}

// pagesAtOnce is how many readers may have the engine read the log for them at a
// time, beside the feeds: when thousands connect again at once, they take their turns.
const pagesAtOnce = 4

// streamKind names a kind of stream in metrics.
type streamKind string

const (
	eventStreams  streamKind = "events"
	friendStreams streamKind = "friends"
)

// Why streams end, but for the reader leaving.
var (
	errBehind   = errors.New("the reader fell too far behind")
	errStopping = errors.New("the server stops")
	errRevoked  = errors.New("the key, or the session of the console, does not work any more")
	errEnded    = errors.New("the session has ended")
)

func newStreams(roll, public *rollcall.Roll, limits StreamLimits, metrics *Metrics, faults *faultLog) *openStreams {
	limits.fill()
	life, end := context.WithCancel(context.Background()) //nolint:forbidigo // EndStreams ends it
	s := &openStreams{
		ending: life, end: end,
		truth: newFeed(life, roll), public: newFeed(life, public), friends: fanout.New[liveChange](maxBehind),
		credentials: newCredentialWatch(life, roll), metrics: metrics.streams, faults: faults, limits: limits,
		owners: make(map[string]int), streams: make(map[*stream]struct{}),
		pages: make(chan struct{}, pagesAtOnce), lookEvery: lookEvery,
	}
	s.truth.also, s.public.also = s.tellEnds, s.tellPresence
	s.truth.gone, s.public.gone = s.doubtFriends, s.doubtFriends
	return s
}

// feedOf is the feed of those who have a role.
func (s *openStreams) feedOf(role rollcall.Role) *feed {
	if role == rollcall.RoleAdmin {
		return s.truth
	}
	return s.public
}

// streamOwner names whose streams are counted together.
func (c *caller) streamOwner() string {
	if c.session.User != "" {
		return "user " + c.session.User
	}
	return "key " + c.keyOwner()
}

// enter makes room for a stream, until leave is called, or refuses it.
func (s *openStreams) enter(kind streamKind, owner string) (leave func(), err error) {
	most := s.limits.PerKey
	if kind == friendStreams {
		most = s.limits.PerUser
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open >= s.limits.All || s.owners[owner] >= most || s.stopping {
		s.metrics.refused.WithLabelValues(string(kind)).Inc()
		return nil, &retryError{
			err:   &rollcall.Error{Code: rollcall.CodeUnavailable, Detail: "too many streams are open: try again after the time in Retry-After"},
			after: time.Second + rand.N(9*time.Second), //nolint:gosec // spreads clients, protects nothing
		}
	}
	s.open++
	s.all.Add(1)
	s.owners[owner]++
	s.metrics.open.WithLabelValues(string(kind)).Inc()
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.open--
		if s.owners[owner]--; s.owners[owner] == 0 {
			delete(s.owners, owner)
		}
		s.metrics.open.WithLabelValues(string(kind)).Dec()
		s.all.Done()
	}, nil
}

// register has a stream end with the server.
func (s *openStreams) register(st *stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.streams[st] = struct{}{}
	if s.stopping {
		go st.end(errStopping) // it takes the lock of the stream
	}
}

func (s *openStreams) deregister(st *stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.streams, st)
}

// lifeOf returns the context of a caller who waits for a page: it ends with the
// request, with the server, and with the credential. end is called when the page is there.
func (s *openStreams) lifeOf(ctx context.Context, c *caller) (life context.Context, end context.CancelCauseFunc) {
	life, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(s.ending, func() { cancel(errStopping) })
	unwatch := s.credentials.watch(c.credential(), func() { cancel(errRevoked) })
	return life, func(cause error) {
		stop()
		unwatch()
		cancel(cause)
	}
}

// page reads a page of some families of the log, in its turn.
func (s *openStreams) page(ctx context.Context, roll *rollcall.Roll, after rollcall.EventID, limit int, families []rollcall.EventFamily) ([]rollcall.Event, error) {
	select {
	case s.pages <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-s.pages }()
	return roll.EventsAfter(ctx, after, limit, families...)
}

// EndStreams ends all streams, lets no more begin, and returns when the last has
// ended. Call it when the server that serves the API begins to shut down, as with
// http.Server.RegisterOnShutdown: http.Server knows nothing of most streams, and
// would wait for the others. Call it again before the service is closed, as
// http.Server does not wait for what is called on shutdown.
func (s *Server) EndStreams() { s.streams.endAll() }

func (s *openStreams) endAll() {
	s.mu.Lock()
	s.stopping = true
	streams := slices.Collect(maps.Keys(s.streams))
	s.mu.Unlock()
	s.end()
	for _, st := range streams {
		st.end(errStopping)
	}
	s.all.Wait()
}
