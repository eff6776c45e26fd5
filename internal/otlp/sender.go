package otlp

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"google.golang.org/protobuf/proto"
)

// Sender posts messages to one target. It is safe for concurrent use.
type Sender struct {
	target Target
	client *http.Client
}

// NewSender returns a sender to a target.
func NewSender(target *Target) *Sender {
	return &Sender{target: *target, client: &http.Client{
		Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment, TLSClientConfig: target.TLS, ForceAttemptHTTP2: true,
			MaxIdleConns: 1, IdleConnTimeout: 2 * time.Minute,
		},
		// The header may hold a credential, which is for the target alone.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Close lets go of idle connections.
func (s *Sender) Close() { s.client.CloseIdleConnections() }

// The pause before an attempt is repeated: it doubles each time, unless the collector
// says how long it should be.
const firstPause = 500 * time.Millisecond

// Send posts one message. What a collector says that it may take later is sent again,
// within the target's timeout.
func (s *Sender) Send(ctx context.Context, message proto.Message) error {
	body, err := s.encode(message)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, s.target.Timeout)
	defer cancel()
	for pause := firstPause; ; pause *= 2 {
		wait, err := s.attempt(ctx, body)
		if err == nil || wait < 0 {
			return err
		}
		wait = max(wait, pause)
		if end, ok := ctx.Deadline(); ok && time.Until(end) < wait {
			return err
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return err
		}
	}
}

func (s *Sender) encode(message proto.Message) ([]byte, error) {
	plain, err := proto.Marshal(message)
	if err != nil || !s.target.Gzip {
		return plain, err
	}
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err := w.Write(plain); err != nil {
		return nil, err
	}
	err = w.Close()
	return packed.Bytes(), err
}

// attempt posts the body once. With an error it returns how long to wait at least before
// the next attempt, or a negative time if there should be none.
func (s *Sender) attempt(ctx context.Context, body []byte) (time.Duration, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.target.URL, bytes.NewReader(body))
	if err != nil {
		return -1, err
	}
	for name, values := range s.target.Header {
		request.Header[name] = values
	}
	request.Header.Set("Content-Type", "application/x-protobuf")
	request.Header.Set("User-Agent", "rollcall")
	if s.target.Gzip {
		request.Header.Set("Content-Encoding", "gzip")
	}
	answer, err := s.client.Do(request)
	if err != nil {
		return 0, err
	}
	_, _ = io.CopyN(io.Discard, answer.Body, 64<<10) // so that the connection can be used again
	_ = answer.Body.Close()
	if answer.StatusCode < 300 {
		return 0, nil
	}
	err = fmt.Errorf("the collector answers %s", answer.Status)
	switch answer.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		seconds, _ := strconv.Atoi(answer.Header.Get("Retry-After")) // 0 if it is not there, or a date
		return time.Duration(min(max(seconds, 0), 3600)) * time.Second, err
	default:
		return -1, err
	}
}
