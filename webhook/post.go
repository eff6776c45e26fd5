package webhook

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/rollcall/rollcall"
)

const (
	// timeout bounds an attempt, from the name's resolution to the end of the answer.
	timeout = 15 * time.Second
	// maxAnswer is how much of an answer is read, so that its connection can be used again.
	maxAnswer = 16 << 10
	// drainTime is how long the rest of an answer is read.
	drainTime = time.Second
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
	var insecure atomic.Bool
	req = req.WithContext(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		TLSHandshakeDone: func(_ tls.ConnectionState, err error) { insecure.Store(err != nil) },
	}))
	res, err := c.http.Do(req)
	if err != nil {
		return failed(err, insecure.Load())
	}
	defer func() { _ = res.Body.Close() }()
	drain(ctx, res)
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

// drain reads the rest of an answer, so that its connection can be used again. What it
// says is not needed: a receiver that goes on talking must not hold a slot.
func drain(ctx context.Context, res *http.Response) {
	if res.StatusCode < http.StatusOK {
		return // 101: the body is the connection itself, which no timeout ends
	}
	ctx, cancel := context.WithTimeout(ctx, drainTime)
	defer cancel()
	defer context.AfterFunc(ctx, func() { _ = res.Body.Close() })()
	_, _ = io.CopyN(io.Discard, res.Body, maxAnswer)
}

// failed words why no answer came. None of the words are the receiver's, whose answer may
// be that of something that it must not show, and none are of the URL, which may hold a
// secret. insecure is whether TLS could not be agreed on.
func failed(err error, insecure bool) outcome {
	var (
		refused  *refusedError
		unnamed  *net.DNSError
		untrue   *tls.CertificateVerificationError
		late     net.Error
		unjoined *net.OpError
	)
	text := "the answer could not be read"
	switch {
	case errors.As(err, &refused):
		return outcome{refused: true, err: refused}
	case errors.As(err, &unnamed):
		text = "the name of the host could not be resolved"
	case errors.As(err, &late) && late.Timeout():
		text = "no answer in time"
	case errors.Is(err, context.Canceled):
		text = "it was cut off by this server"
	case errors.As(err, &untrue):
		text = "TLS failed: the certificate was not accepted"
	case insecure:
		text = "TLS failed"
	case errors.Is(err, syscall.ECONNREFUSED):
		text = "the connection was refused"
	case errors.As(err, &unjoined) && unjoined.Op == "dial":
		text = "no connection could be made"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		text = "the connection was closed before there was an answer"
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
