package httpapi

import (
	"context"
	"encoding/hex"
	"fmt"
	"net/http"

	"github.com/rollcall/rollcall"
)

type loginRequest struct {
	User      string            `json:"user" doc:"1–128 bytes of UTF-8, no control characters"`
	Kind      string            `json:"kind,omitempty" doc:"the user's own unless said; ≤ 32 of a-z 0-9 _ -"`
	Name      string            `json:"name,omitempty" doc:"the user's own unless said; ≤ 128 bytes"`
	App       string            `json:"app,omitempty" doc:"≤ 64 bytes"`
	Device    string            `json:"device,omitempty" doc:"the class of device: web, ios, android, …; ≤ 32 bytes"`
	DeviceID  string            `json:"device_id,omitempty" doc:"one physical device: its earlier session is replaced; ≤ 128 bytes"`
	IP        string            `json:"ip,omitempty" doc:"the end user's address, as the application sees it"`
	UserAgent string            `json:"user_agent,omitempty" doc:"≤ 1024 bytes"`
	Attrs     map[string]string `json:"attrs,omitempty" doc:"up to 16; keys ≤ 32, values ≤ 256 bytes, 2 KiB in all"`
	Evict     []string          `json:"evict,omitempty" nullable:"false" maxItems:"50" doc:"ids of sessions of this user that end (replaced) if the login succeeds, such as some of the conflicts of a login that was refused with session_limit; others are ignored"`
}

type loginInput struct {
	IdempotencyKey string `header:"Idempotency-Key" doc:"makes a retry safe for 10 minutes: the same key and body give the same session and token"`
	Body           loginRequest
}

// loggedIn is a login's outcome. Token and BeatKey are shown here only.
type loggedIn struct {
	Session session       `json:"session"`
	Token   string        `json:"token" doc:"secret; shown once"`
	BeatKey string        `json:"beat_key" doc:"secret: 32 bytes in hex, the key of the session's UDP beats"`
	Ended   []endedByName `json:"ended" nullable:"false" doc:"sessions that made room"`
}

type endedByName struct {
	ID    rollcall.SessionID `json:"id"`
	Cause rollcall.Cause     `json:"cause"`
}

func (s *Server) registerLogin() {
	login := op("POST /v1/sessions", "login", "Sessions", "Log a user in")
	login.DefaultStatus = http.StatusCreated
	login.Description = "Where the policy rejects a login past its limit, the answer is session_limit (409) with the sessions in the way as conflicts; " +
		"the same login with evict ends the chosen ones in the same step, and nothing if it is refused again."
	register(s, login, s.login)
}

func (s *Server) login(ctx context.Context, in *loginInput) (loggedIn, error) {
	b := in.Body
	addr, err := parseAddr("ip", b.IP)
	if err != nil {
		return loggedIn{}, err
	}
	evict := make([]rollcall.SessionID, len(b.Evict))
	for i, text := range b.Evict {
		if evict[i], err = rollcall.ParseSessionID(text); err != nil {
			return loggedIn{}, rollcall.Invalid(fmt.Sprintf("evict[%d]", i), "%.40q is not a session id: one has 26 characters", text)
		}
	}
	res, err := s.view(ctx).Login(ctx, rollcall.Login{
		User: b.User, Kind: b.Kind, Name: b.Name, App: b.App, Device: b.Device, DeviceID: b.DeviceID,
		IP: addr, UserAgent: b.UserAgent, Attrs: b.Attrs, Evict: evict,
		RetryKey: in.IdempotencyKey, RetryScope: callerOf(ctx).key.ID,
	})
	if err != nil {
		return loggedIn{}, err
	}
	return loggedIn{
		Session: sessionOf(res.Session), Token: res.Token, BeatKey: hex.EncodeToString(res.BeatKey[:]),
		Ended: each(res.Ended, func(e rollcall.Ended) endedByName { return endedByName(e) }),
	}, nil
}
