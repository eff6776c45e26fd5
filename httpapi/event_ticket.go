package httpapi

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/rollcall/rollcall"
)

type ticketInput struct {
	Body struct {
		Types []rollcall.EventType `json:"types,omitempty" nullable:"false" maxItems:"20" doc:"the types to show; all unless said"`
		User  string               `json:"user,omitempty" given:"filled" doc:"only events of this user"`
		Cause rollcall.Cause       `json:"cause,omitempty" given:"filled" doc:"only events with this cause"`
	} `nameHint:"EventTicketRequest"`
}

// eventTicket lets a page read events once.
type eventTicket struct {
	Ticket    string  `json:"ticket" doc:"secret; for GET /v1/events?ticket="`
	ExpiresAt instant `json:"expires_at" doc:"30 s from now; a stream that has begun goes on, as long as the key or the session of the console works that it was made with"`
}

func (s *Server) registerEventTickets() {
	create := op("POST /v1/events/tickets", "create-event-ticket", "Events", "Let a page of a browser read events once")
	create.Description = "The ticket shows what the key may see, of the events chosen here, and works once within 30 s on any server with the same secret. " +
		"Each server remembers the tickets it has taken: behind several, a ticket that is stolen within its 30 s may work once on each."
	create.DefaultStatus = http.StatusCreated
	register(s, create, s.createEventTicket)
}

func (s *Server) createEventTicket(ctx context.Context, in *ticketInput) (eventTicket, error) {
	c := callerOf(ctx)
	text, ticket, err := s.roll.NewEventTicket(rollcall.EventTicket{
		Key: c.key.ID, Console: c.pass, Role: c.role,
		Filter: rollcall.EventFilter{Types: in.Body.Types, User: in.Body.User, Cause: in.Body.Cause},
	})
	return eventTicket{Ticket: text, ExpiresAt: instantOf(ticket.ExpiresAt)}, err
}

// ticketParam is where a ticket stands in a query.
const ticketParam = "ticket"

// ticketIn returns the ticket that a request presents in place of a key.
func ticketIn(g *gate, r *http.Request) string {
	if !g.Tickets || r.Header.Get("Authorization") != "" {
		return ""
	}
	return r.URL.Query().Get(ticketParam)
}

// admitTicket lets in who holds a ticket, as the holder of the key or of the session of
// the console that it was made with.
func (s *Server) admitTicket(c *caller, r *http.Request, text string) error {
	ticket, err := s.roll.OpenEventTicket(text)
	if err != nil {
		return s.chargeFailure(c, err)
	}
	if err := s.checkMaker(c, r, &ticket); err != nil {
		return s.chargeFailure(c, err)
	}
	if err := s.streams.tickets.use(ticket.ID, s.roll.Now()); err != nil {
		return s.chargeFailure(c, err)
	}
	c.role, c.ticket = ticket.Role, &ticket
	return nil
}

// checkMaker fills in with what a ticket was made, and refuses it if that works no more.
func (s *Server) checkMaker(c *caller, r *http.Request, ticket *rollcall.EventTicket) error {
	switch {
	case ticket.Console != (rollcall.PassHash{}):
		session, err := s.roll.ConsoleSessionOf(r.Context(), ticket.Console)
		if rollcall.CodeOf(err) == rollcall.CodeUnauthenticated {
			return unauthenticated("the session of the console that this ticket was made in has ended: sign in")
		}
		c.console, c.pass, c.key = &session, ticket.Console, session.Key
		return err
	case ticket.Key != "":
		keys, err := s.roll.Keys(r.Context())
		if err != nil {
			return err
		}
		i := slices.IndexFunc(keys, func(k rollcall.APIKey) bool { return k.ID == ticket.Key })
		if i < 0 || (!keys[i].ExpiresAt.IsZero() && !s.roll.Now().Before(keys[i].ExpiresAt)) {
			return unauthenticated("the key that this ticket was made with does not work any more")
		}
		c.key = keys[i]
	case s.opts.Auth != AuthOff:
		return unauthenticated("this ticket was made while no keys were needed")
	}
	return nil
}

// usedTickets remembers the tickets that were taken, in two generations: when the
// young one is as old as a ticket can get it becomes the old one, and what was in
// that one is too old to be used again.
type usedTickets struct {
	mu         sync.Mutex
	young, old map[string]struct{}
	since      time.Time
}

// maxUsedTickets bounds the tickets that are taken in the time of one generation.
const maxUsedTickets = 100_000

// use takes a ticket, once.
func (u *usedTickets) use(id string, now time.Time) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.young == nil || now.Sub(u.since) > rollcall.EventTicketTTL {
		u.old, u.young, u.since = u.young, make(map[string]struct{}), now
	}
	_, young := u.young[id]
	_, old := u.old[id]
	switch {
	case young || old:
		return unauthenticated("this ticket was used: one is for one stream, make another")
	case len(u.young) >= maxUsedTickets:
		return &retryError{
			err:   &rollcall.Error{Code: rollcall.CodeUnavailable, Detail: "too many tickets are in use: try again after the time in Retry-After"},
			after: rollcall.EventTicketTTL,
		}
	}
	u.young[id] = struct{}{}
	return nil
}
