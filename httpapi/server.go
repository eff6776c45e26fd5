package httpapi

import (
	"errors"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"

	"github.com/danielgtaylor/huma/v2"

	"github.com/rollcall/rollcall"
)

// Server serves the API. It holds goroutines only while there are streams, which
// EndStreams ends.
type Server struct {
	roll   *rollcall.Roll // sees the truth
	public *rollcall.Roll // as those see it who are not administrators
	opts   Options

	mux   *http.ServeMux
	api   huma.API
	gates map[string]*gate       // by pattern
	spec  func() ([]byte, error) // the OpenAPI document, written when it is first asked for

	perKey      *keyLimiter
	perSession  *sessionLimiter
	failures    *addressLimiter
	crossOrigin *http.CrossOriginProtection // lets CORSOrigins through
	pageOrigin  *http.CrossOriginProtection // lets the server's own pages through only
	security    *securityLog
	faults      *faultLog
	page        *metricsPage
	badge       badge
	streams     *openStreams

	draining atomic.Bool
	engine   atomic.Pointer[string] // its name, once it was asked
}

// New returns a server over roll. It fails with CodeInvalidArgument, naming
// the option at fault.
func New(roll *rollcall.Roll, o Options) (*Server, error) {
	if roll == nil {
		return nil, errors.New("httpapi: no roll to serve")
	}
	if err := o.fill(); err != nil {
		return nil, err
	}
	s := &Server{
		roll:        roll.As(rollcall.ViewerAdmin),
		public:      roll.As(rollcall.ViewerPublic),
		opts:        o,
		mux:         http.NewServeMux(),
		gates:       make(map[string]*gate),
		perKey:      newLimiter[string](o.RateLimits.Key),
		perSession:  newLimiter[[sessionHashSize]byte](o.RateLimits.Session),
		failures:    newLimiter[netip.Prefix](o.RateLimits.Failures),
		crossOrigin: http.NewCrossOriginProtection(),
		pageOrigin:  http.NewCrossOriginProtection(),
		security:    newSecurityLog(o.Logger, o.Metrics),
		faults:      newFaultLog(o.Logger),
		page:        newMetricsPage(),
	}
	s.streams = newStreams(s.roll, s.public, o.Streams, o.Metrics, s.faults)
	for _, origin := range o.CORSOrigins {
		if err := s.crossOrigin.AddTrustedOrigin(origin); err != nil {
			return nil, rollcall.Invalid("cors_origins", "%q: %v", origin, err)
		}
	}
	for _, route := range Routes() {
		s.gates[route.Pattern()] = &gate{Route: route}
	}
	s.spec = sync.OnceValues(s.writeSpec)
	s.api = s.newAPI()
	s.registerAll()
	s.mux.HandleFunc("/", s.notFound)
	for _, op := range operations(s.api.OpenAPI()) {
		s.gateOf(op.Method + " " + op.Path).learn(op)
	}
	s.document()
	return s, nil
}

func (s *Server) registerAll() {
	s.registerLogin()
	s.registerSessions()
	s.registerKicks()
	s.registerTouch()
	s.registerVerify()
	s.registerMe()
	s.registerLiveFriends()
	s.registerBeats()
	s.registerSessionCounts()
	s.registerPresence()
	s.registerSamples()
	s.registerBadge()
	s.registerUsers()
	s.registerTimeline()
	s.registerBans()
	s.registerFriends()
	s.registerMarks()
	s.registerAttended()
	s.registerFigures()
	s.registerCohorts()
	s.registerVisits()
	s.registerKinds()
	s.registerVisitNames()
	s.registerEvents()
	s.registerKeys()
	s.registerConsole()
	s.registerWebhooks()
	s.registerArchive()
	s.registerBackup()
	s.registerAudit()
	s.registerStats()
	s.registerHealth()
	s.registerMetrics()
	s.registerDocs()
	s.registerLLMs()
	s.registerPresenceScript()
}

// SetReady says whether /readyz may answer that the server is ready. It starts
// true; set it false before shutting down, so that balancers send their
// requests elsewhere while those under way are answered.
func (s *Server) SetReady(ready bool) { s.draining.Store(!ready) }

// OpenAPI returns the OpenAPI 3.1 document of the API as JSON. The first call writes
// it, and an error would be a fault of the document itself.
func (s *Server) OpenAPI() ([]byte, error) { return s.spec() }

// gateOf returns the gate of a pattern; one that is not in the table lets
// nobody through.
func (s *Server) gateOf(pattern string) *gate {
	if g, ok := s.gates[pattern]; ok {
		return g
	}
	g := &gate{}
	s.gates[pattern] = g
	return g
}

// gated is the mux as those see it who register handlers: whatever they add
// stands behind its gate.
type gated struct{ *Server }

func (m gated) HandleFunc(pattern string, handler func(http.ResponseWriter, *http.Request)) {
	m.mux.HandleFunc(pattern, m.guard(m.gateOf(pattern), handler))
}
