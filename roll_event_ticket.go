package rollcall

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"time"
)

// EventTicketTTL is how long an event ticket may be used.
const EventTicketTTL = 30 * time.Second

// EventTicket lets a page that must not hold an API key read events once. It is
// sealed with the secret, so any server with the same secret can open it.
type EventTicket struct {
	ID        string   // different for each
	Key       string   // id of the API key that it was made with, "" without one
	Console   PassHash // of the session of the console that it was made in; zero without one
	Role      Role
	Filter    EventFilter
	ExpiresAt time.Time
}

// ticketPrefix begins the text of a ticket.
const ticketPrefix = "rcet_"

// ticketClaims is what stands in a sealed ticket.
type ticketClaims struct {
	ID      string      `json:"i"`
	Key     string      `json:"k,omitempty"`
	Console []byte      `json:"s,omitempty"`
	Role    Role        `json:"r"`
	Types   []EventType `json:"t,omitempty"`
	User    string      `json:"u,omitempty"`
	Cause   Cause       `json:"c,omitempty"`
	Expires int64       `json:"e"`
}

// NewEventTicket makes a ticket with the Key, Console, Role and Filter of t; the rest of
// it is filled in. Who opens the ticket makes sure that it is used once, and that the key
// or the session still works.
func (r *Roll) NewEventTicket(t EventTicket) (text string, _ EventTicket, err error) {
	if err := t.Filter.Validate(); err != nil {
		return "", t, err
	}
	var id [16]byte
	_, _ = rand.Read(id[:]) // never fails: crypto/rand ends the program instead
	t.ID, t.ExpiresAt = hex.EncodeToString(id[:]), r.clock.Now().Add(EventTicketTTL)
	claims := ticketClaims{
		ID: t.ID, Key: t.Key, Role: t.Role, Types: t.Filter.Types, User: t.Filter.User, Cause: t.Filter.Cause, Expires: t.ExpiresAt.UnixMilli(),
	}
	if t.Console != (PassHash{}) {
		claims.Console = t.Console[:]
	}
	plain, err := json.Marshal(claims)
	if err != nil {
		return "", t, err
	}
	seal, err := r.ticketSeal()
	if err != nil {
		return "", t, err
	}
	return ticketPrefix + tokenCoding.EncodeToString(seal.Seal(nil, nil, plain, nil)), t, nil
}

// OpenEventTicket reads a ticket; CodeUnauthenticated if it is none or too old.
func (r *Roll) OpenEventTicket(text string) (EventTicket, error) {
	const maxLen = 4 << 10 // more than the largest
	bad := &Error{Code: CodeUnauthenticated, Detail: "this is no ticket of this server, or it is older than 30 s: make another one"}
	if len(text) > maxLen || len(text) < len(ticketPrefix) || text[:len(ticketPrefix)] != ticketPrefix {
		return EventTicket{}, bad
	}
	sealed, err := tokenCoding.DecodeString(text[len(ticketPrefix):])
	if err != nil {
		return EventTicket{}, bad
	}
	seal, err := r.ticketSeal()
	if err != nil {
		return EventTicket{}, err
	}
	plain, err := seal.Open(nil, nil, sealed, nil)
	var c ticketClaims
	if err != nil || json.Unmarshal(plain, &c) != nil {
		return EventTicket{}, bad
	}
	t := EventTicket{
		ID: c.ID, Key: c.Key, Role: c.Role, Filter: EventFilter{Types: c.Types, User: c.User, Cause: c.Cause},
		ExpiresAt: time.UnixMilli(c.Expires).UTC(),
	}
	copy(t.Console[:], c.Console)
	if !r.clock.Now().Before(t.ExpiresAt) {
		return EventTicket{}, bad
	}
	return t, nil
}

// ticketSeal encrypts tickets, so that whoever reads an address in a log learns no
// user from it.
func (r *Roll) ticketSeal() (cipher.AEAD, error) {
	key := r.keyed("event ticket")
	block, err := aes.NewCipher(key[:])
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}
