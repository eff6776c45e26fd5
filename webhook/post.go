package webhook

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/rollcall/rollcall"
)

const (
	// timeout bounds an attempt, from the name's resolution to the end of the answer.
	timeout = 15 * time.Second
	// maxAnswer is how much of an answer is read, so that its connection can be used again.
	maxAnswer = 16 << 10
	// maxErrorText bounds the error that the log of deliveries keeps.
	maxErrorText = 200
)

// request is a message on its way.
type request struct {
	url, id string
	at      time.Time
	body    []byte
	keys    [][]byte
}

// outcome is what became of a request.
type outcome struct {
	status     int
	retryAfter time.Duration
	refused    bool  // the address is not allowed
	err        error // why it was not delivered, nil if it was
}

// poster sends requests.
type poster interface {
	post(ctx context.Context, r request) outcome
}

// client posts by HTTP. It follows no redirect, and goes through no proxy: either would
// connect to an address that nobody has looked at.
type client struct{ http *http.Client }

func newClient(d *dialer) *client {
	transport := &http.Transport{
		DialContext:            d.DialContext,
		ForceAttemptHTTP2:      true,
		TLSHandshakeTimeout:    dialTimeout,
		DisableCompression:     true,
		MaxResponseHeaderBytes: maxAnswer,
		MaxIdleConns:           maxSending,
		MaxIdleConnsPerHost:    perWebhook,
		IdleConnTimeout:        time.Minute,
	}
	return &client{&http.Client{
		Transport: transport, Timeout: timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

func (c *client) close() { c.http.CloseIdleConnections() }

func (c *client) post(ctx context.Context, r request) outcome {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.url, bytes.NewReader(r.body))
	if err != nil {
		return outcome{err: errors.New("the URL cannot be posted to")}
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "rollcall-webhook")
	sign(req.Header, r)
	res, err := c.http.Do(req)
	if err != nil {
		return failed(err)
	}
	_, _ = io.CopyN(io.Discard, res.Body, maxAnswer) // what it says beyond its status is not needed
	_ = res.Body.Close()
	out := outcome{status: res.StatusCode, retryAfter: retryAfter(res.Header.Get("Retry-After"), r.at)}
	switch {
	case res.StatusCode >= 200 && res.StatusCode < 300:
	case res.StatusCode >= 300 && res.StatusCode < 400:
		out.err = errors.New("the receiver answered with a redirect, which is not followed: change the URL of the webhook")
	default:
		out.err = errors.New("the receiver answered " + strconv.Itoa(res.StatusCode))
	}
	return out
}

// failed words why no answer came.
func failed(err error) outcome {
	var refused *refusedError
	if errors.As(err, &refused) {
		return outcome{refused: true, err: refused}
	}
	var sent *url.Error
	if errors.As(err, &sent) {
		if sent.Timeout() {
			return outcome{err: errors.New("no answer within 15 s")}
		}
		err = sent.Err // without the URL, which may hold a secret
	}
	text := err.Error()
	if len(text) > maxErrorText {
		text = strings.ToValidUTF8(text[:maxErrorText], "") + "…"
	}
	return outcome{err: errors.New(text)}
}

// sign sets the headers of Standard Webhooks.
func sign(h http.Header, r request) {
	at := strconv.FormatInt(r.at.Unix(), 10)
	signatures := make([]string, len(r.keys))
	for i, key := range r.keys {
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(r.id + "." + at + "."))
		mac.Write(r.body)
		signatures[i] = "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	}
	h.Set("webhook-id", r.id)
	h.Set("webhook-timestamp", at)
	h.Set("webhook-signature", strings.Join(signatures, " "))
}

// retryAfter reads the header: seconds, or a date. 0 is none.
func retryAfter(text string, now time.Time) time.Duration {
	if n, err := strconv.ParseUint(text, 10, 31); err == nil {
		return min(time.Duration(n)*time.Second, maxRetryAfter)
	}
	if at, err := http.ParseTime(text); err == nil && at.After(now) {
		return min(at.Sub(now), maxRetryAfter)
	}
	return 0
}

// resultOf is an attempt for the log.
func resultOf(o outcome) rollcall.WebhookResult {
	switch {
	case o.err == nil:
		return rollcall.WebhookDelivered
	case o.refused:
		return rollcall.WebhookRefused
	default:
		return rollcall.WebhookFailed
	}
}
