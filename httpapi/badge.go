package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/rollcall/rollcall"
)

const (
	svgType      = "image/svg+xml"
	badgeFor     = 30 * time.Second // how long a count is shown
	badgeRetry   = time.Second      // how long an error is
	badgeTimeout = 5 * time.Second  // of the count
)

// badge is the count that strangers are shown. It is counted once in a while, however many
// ask.
type badge struct {
	mu    sync.Mutex
	at    time.Time // when it was counted last, by the time of the server
	count int
	err   error
}

// badgeCount is the count as JSON.
type badgeCount struct {
	Count int `json:"count" doc:"users online, rounded to two digits: exact below 100"`
}

func (s *Server) registerBadge() {
	badge := op("GET /v1/online/badge", "online-badge", "Presence", "How many users are online, for everyone to see")
	badge.Description = "Only if the configuration says `badge: on`. The count is rounded to two digits and up to 30 s old. " +
		"`format=svg`, or `Accept: image/svg+xml`, answers with a picture for a page."
	badge.Parameters = []*huma.Param{{
		Name: "format", In: "query", Schema: &huma.Schema{Type: huma.TypeString, Enum: []any{"json", "svg"}},
		Description: "json or svg; unless said, what Accept prefers, or json",
	}}
	badge.Responses = map[string]*huma.Response{"200": {Description: "OK", Content: s.jsonContent(badgeCount{})}}
	badge.Responses["200"].Content[svgType] = &huma.MediaType{Schema: &huma.Schema{Type: huma.TypeString}}
	s.registerPlain(badge, s.showBadge)
}

// showBadge answers without a key, so it tells what the public may know, and costs next to
// nothing.
func (s *Server) showBadge(w http.ResponseWriter, r *http.Request) {
	if !s.opts.Badge {
		s.fail(w, r, rollcall.NotFound("badge: the configuration does not show one"))
		return
	}
	asSVG := strings.Contains(r.Header.Get("Accept"), svgType)
	switch format := r.URL.Query().Get("format"); format {
	case "":
	case "json", "svg":
		asSVG = format == "svg"
	default:
		s.fail(w, r, rollcall.Invalid("format", "must be json or svg, is %.40q", format))
		return
	}
	count, err := s.badge.show(r.Context(), s.roll.Now(), func(ctx context.Context) (int, error) { return s.public.OnlineCount(ctx, 0) })
	if err != nil {
		s.fail(w, r, err)
		return
	}
	h := w.Header()
	h.Set("Cache-Control", "public, max-age=30")
	h.Set("Vary", "Accept")
	h.Set("Cross-Origin-Resource-Policy", "cross-origin") // pages of other origins show it
	if asSVG {
		h.Set("Content-Type", svgType)
		_, _ = w.Write([]byte(badgeSVG(count))) // the client has gone if this fails
		return
	}
	text, err := json.Marshal(badgeCount{Count: count})
	if err != nil {
		s.fail(w, r, err)
		return
	}
	h.Set("Content-Type", jsonType)
	_, _ = w.Write(text)
}

// show returns the rounded count, or counts anew if it is too old.
func (b *badge) show(ctx context.Context, now time.Time, count func(context.Context) (int, error)) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	fresh := badgeFor
	if b.err != nil {
		fresh = badgeRetry
	}
	if age := now.Sub(b.at); b.at.IsZero() || age < 0 || age >= fresh {
		// Who asked may go away: the others want the count still.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), badgeTimeout)
		defer cancel()
		n, err := count(ctx)
		b.at, b.count, b.err = now, roundCount(n), err
	}
	return b.count, b.err
}

// roundCount rounds to two digits.
func roundCount(n int) int {
	unit := 1
	for n/unit >= 100 {
		unit *= 10
	}
	return (n + unit/2) / unit * unit
}

// shortCount writes a rounded count in little room: 840, 1.3k, 13k, 1.3M.
func shortCount(n int) string {
	for _, u := range []struct {
		unit int
		name string
	}{{1_000_000_000, "G"}, {1_000_000, "M"}, {1000, "k"}} {
		switch tenths := n / (u.unit / 10) % 10; {
		case n < u.unit:
		case n >= 10*u.unit || tenths == 0:
			return fmt.Sprint(n/u.unit) + u.name
		default:
			return fmt.Sprintf("%d.%d%s", n/u.unit, tenths, u.name)
		}
	}
	return fmt.Sprint(n)
}

// badgeSVG draws the count: a label and a number side by side.
func badgeSVG(count int) string {
	const labelWidth, digit, margin = 48, 7, 14
	text := shortCount(count)
	right := margin + digit*len(text)
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" width="%[1]d" height="20" role="img" aria-label="%[4]s online">`+
		`<title>%[4]s online</title><rect width="%[1]d" height="20" rx="3" fill="#0f766e"/>`+
		`<path d="M3 0h%[5]dv20H3a3 3 0 0 1-3-3V3a3 3 0 0 1 3-3z" fill="#444"/>`+
		`<g fill="#fff" font-family="system-ui,Verdana,sans-serif" font-size="11" text-anchor="middle">`+
		`<text x="%[2]d" y="14">online</text><text x="%[3]d" y="14">%[4]s</text></g></svg>`,
		labelWidth+right, labelWidth/2, labelWidth+right/2, text, labelWidth-3)
}
