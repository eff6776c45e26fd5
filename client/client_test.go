package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/client"
)

// wire answers in place of a server.
type wire func(*http.Request) (*http.Response, error)

func (w wire) RoundTrip(r *http.Request) (*http.Response, error) { return w(r) }

func answer(status int, body string, header ...string) *http.Response {
	h := http.Header{}
	for i := 0; i < len(header); i += 2 {
		h.Set(header[i], header[i+1])
	}
	return &http.Response{StatusCode: status, Status: fmt.Sprint(status, " ", http.StatusText(status)), Header: h, Body: io.NopCloser(strings.NewReader(body))}
}

func over(t *testing.T, w wire, change ...func(*client.Options)) *client.Client {
	t.Helper()
	o := client.Options{Key: "rck_test", HTTPClient: &http.Client{Transport: w}}
	for _, f := range change {
		f(&o)
	}
	c, err := client.New("http://rollcall.test", o)
	require.NoError(t, err)
	return c
}

// failing fails so often, and then answers.
func failing(times int, with func() (*http.Response, error), then string, sent *[]*http.Request) wire {
	return func(r *http.Request) (*http.Response, error) {
		*sent = append(*sent, r)
		if len(*sent) <= times {
			return with()
		}
		return answer(200, then), nil
	}
}

const unavailable = `{"code":"unavailable","detail":"not now"}`

func busy() (*http.Response, error) { return answer(503, unavailable), nil }
func lost() (*http.Response, error) { return nil, io.ErrUnexpectedEOF }
func limited() (*http.Response, error) {
	return answer(429, `{"code":"rate_limited"}`, "Retry-After", "7"), nil
}

func unreached() (*http.Response, error) {
	return nil, &net.OpError{Op: "dial", Err: errors.New("connection refused")}
}

func TestARequestThatFailedForTheMomentIsSentAgain(t *testing.T) {
	for name, with := range map[string]func() (*http.Response, error){"503": busy, "lost": lost, "429": limited, "no server": unreached} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var sent []*http.Request
				n, err := over(t, failing(3, with, `{"count":5}`, &sent)).OnlineCount(t.Context(), 0)
				require.NoError(t, err)
				require.Equal(t, 5, n)
				require.Len(t, sent, 4)

				sent = nil
				_, err = over(t, failing(4, with, `{"count":5}`, &sent)).OnlineCount(t.Context(), 0)
				require.Contains(t, []rollcall.Code{rollcall.CodeUnavailable, rollcall.CodeRateLimited}, rollcall.CodeOf(err))
				require.Len(t, sent, 4, "no more than Attempts")
			})
		})
	}
}

func TestRetryAfterIsMinded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sent []*http.Request
		began := time.Now()
		_, err := over(t, failing(1, limited, `{}`, &sent)).KnownCount(t.Context())
		require.NoError(t, err)
		require.GreaterOrEqual(t, time.Since(began), 7*time.Second)
		require.Less(t, time.Since(began), 8*time.Second)

		// One that is longer than ctx lasts is not waited for.
		ctx, stop := context.WithTimeout(t.Context(), 5*time.Second)
		defer stop()
		sent, began = nil, time.Now()
		_, err = over(t, failing(1, limited, `{}`, &sent)).KnownCount(ctx)
		require.Equal(t, rollcall.CodeRateLimited, rollcall.CodeOf(err))
		require.Zero(t, time.Since(began))

		hour := func() (*http.Response, error) { return answer(503, unavailable, "Retry-After", "3600"), nil }
		sent = nil
		_, err = over(t, failing(1, hour, `{}`, &sent)).KnownCount(t.Context())
		require.Equal(t, rollcall.CodeUnavailable, rollcall.CodeOf(err))
		require.Len(t, sent, 1, "nor is one of an hour")
	})
}

// TestWhatMayHaveBeenDoneIsNotDoneTwice: such a request is sent again only if it
// was never carried out.
func TestWhatMayHaveBeenDoneIsNotDoneTwice(t *testing.T) {
	once := map[string]func(context.Context, *client.Client) error{
		"a key": func(ctx context.Context, c *client.Client) error {
			_, _, err := c.CreateKey(ctx, rollcall.NewKey{Role: rollcall.RoleReader})
			return err
		},
		"a kick by filter": func(ctx context.Context, c *client.Client) error {
			_, err := c.Kick(ctx, rollcall.Kick{Filter: &rollcall.SessionFilter{Kind: "staff"}})
			return err
		},
		"a kick of all": func(ctx context.Context, c *client.Client) error {
			_, err := c.Kick(ctx, rollcall.Kick{All: true})
			return err
		},
	}
	for name, do := range once {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				for _, f := range []struct {
					with func() (*http.Response, error)
					sent int
				}{{busy, 1}, {lost, 1}, {limited, 2}, {unreached, 2}} {
					var sent []*http.Request
					err := do(t.Context(), over(t, failing(1, f.with, `{}`, &sent)))
					require.Len(t, sent, f.sent)
					require.Equal(t, f.sent == 1, err != nil)
				}
			})
		})
	}
}

// TestSomethingRemovedTwiceIsRemoved: not_found after an answer that was lost is
// no error, but it is one at the first attempt.
func TestSomethingRemovedTwiceIsRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone := func() (*http.Response, error) { return answer(404, `{"code":"not_found","detail":"no such ban"}`), nil }
		attempts := 0
		c := over(t, func(*http.Request) (*http.Response, error) {
			if attempts++; attempts == 1 {
				return lost()
			}
			return gone()
		})
		require.NoError(t, c.Unban(t.Context(), "ann"))
		require.ErrorIs(t, c.Unban(t.Context(), "ann"), rollcall.ErrNotFound)
	})
}

func TestLoginsHaveAKeyThatStaysWithEachAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sent []*http.Request
		c := over(t, failing(2, lost, `{"beat_key":"`+strings.Repeat("00", 32)+`"}`, &sent))
		_, err := c.Login(t.Context(), rollcall.Login{User: "ann"})
		require.NoError(t, err)
		_, err = c.Login(t.Context(), rollcall.Login{User: "ann"})
		require.NoError(t, err)
		_, err = c.Login(t.Context(), rollcall.Login{User: "ann", RetryKey: "my own"})
		require.NoError(t, err)
		var keys []string
		for _, r := range sent {
			keys = append(keys, r.Header.Get("Idempotency-Key"))
		}
		require.Len(t, keys, 5)
		require.NotEmpty(t, keys[0])
		require.Equal(t, []string{keys[0], keys[0], keys[0]}, keys[:3])
		require.NotEqual(t, keys[2], keys[3])
		require.Equal(t, "my own", keys[4])
	})
}

func TestAWebhookIsAskedForUnderAKeyThatStaysWithEachAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sent []*http.Request
		c := over(t, failing(2, lost, `{"id":"wh_1","secret":"whsec_1"}`, &sent))
		w, secret, err := c.CreateWebhook(t.Context(), rollcall.NewWebhook{URL: "https://example.com"})
		require.NoError(t, err)
		require.Equal(t, []string{"wh_1", "whsec_1"}, []string{w.ID, secret})
		_, _, err = c.CreateWebhook(t.Context(), rollcall.NewWebhook{URL: "https://example.com", RetryKey: "my own"})
		require.NoError(t, err)
		_, _, err = c.CreateWebhook(t.Context(), rollcall.NewWebhook{URL: "https://example.com", RetryScope: "x"})
		require.ErrorIs(t, err, rollcall.ErrInvalidArgument)
		var keys []string
		for _, r := range sent {
			keys = append(keys, r.Header.Get("Idempotency-Key"))
		}
		require.Len(t, keys, 4)
		require.NotEmpty(t, keys[0])
		require.Equal(t, []string{keys[0], keys[0], keys[0], "my own"}, keys)
	})
}

func TestErrorsSayWhatTheServerSaid(t *testing.T) {
	const body = `{"type":"x","status":409,"code":"session_limit","field":"user","detail":"the limit","cause":"kicked","reason":"rules",
		"conflicts":[{"id":"01000000000000000000000000","app":"chat","device":"web","login_at":"2026-02-03T04:05:06.789Z","seen_at":"2026-02-03T04:05:07.000Z"}]}`
	_, err := over(t, func(*http.Request) (*http.Response, error) { return answer(409, body), nil }).User(t.Context(), "ann")
	var e *rollcall.Error
	require.ErrorAs(t, err, &e)
	at := time.Date(2026, 2, 3, 4, 5, 6, 789e6, time.UTC)
	id, idErr := rollcall.ParseSessionID("01000000000000000000000000")
	require.NoError(t, idErr)
	require.Equal(t, &rollcall.Error{
		Code: rollcall.CodeSessionLimit, Field: "user", Detail: "the limit", Cause: rollcall.CauseKicked, Reason: "rules",
		Conflicts: []rollcall.Conflict{{ID: id, App: "chat", Device: "web", LoginAt: at, SeenAt: at.Add(211 * time.Millisecond)}},
	}, e)
}

func TestAnswersOfOthersAreToldApart(t *testing.T) {
	for _, f := range []struct {
		status int
		code   rollcall.Code
		says   string
	}{
		{404, rollcall.CodeInternal, "is the address right?"},
		{401, rollcall.CodeUnauthenticated, "401 Unauthorized"},
		{403, rollcall.CodeForbidden, "403"},
		{502, rollcall.CodeUnavailable, "502 Bad Gateway"},
		{301, rollcall.CodeInternal, `redirects to "https://rollcall.test/"`},
		{200, rollcall.CodeInternal, "is the address right?"},
	} {
		c := over(t, func(*http.Request) (*http.Response, error) {
			return answer(f.status, "<html>not Rollcall</html>", "Location", "https://rollcall.test/"), nil
		}, func(o *client.Options) {
			o.Attempts = 1
			o.HTTPClient.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
		})
		_, err := c.Stats(t.Context())
		require.Equal(t, f.code, rollcall.CodeOf(err), f.status)
		require.ErrorContains(t, err, f.says)
	}
}

// TestAKickThatWasCutShortSaysHowManyItEnded: and it is not sent again.
func TestAKickThatWasCutShortSaysHowManyItEnded(t *testing.T) {
	c := over(t, func(*http.Request) (*http.Response, error) {
		return answer(503, `{"code":"unavailable","detail":"the engine stopped; 7 sessions had been ended before","ended":7}`), nil
	})
	res, err := c.Kick(t.Context(), rollcall.Kick{User: "ann"})
	require.ErrorIs(t, err, rollcall.ErrUnavailable)
	require.Equal(t, 7, res.Ended)
}

func TestTheEndOfTheCallersContextIsTold(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	c := over(t, func(r *http.Request) (*http.Response, error) {
		stop()
		<-r.Context().Done()
		return nil, r.Context().Err()
	})
	_, err := c.KnownCount(ctx)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, err, rollcall.ErrUnavailable)
}

func TestAnAnswerThatIsTooLateIsAskedForAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		attempts := 0
		c := over(t, func(r *http.Request) (*http.Response, error) {
			if attempts++; attempts < 3 {
				<-r.Context().Done()
				return nil, r.Context().Err()
			}
			return answer(200, `{"count":1}`), nil
		}, func(o *client.Options) { o.Timeout = time.Second })
		_, err := c.KnownCount(t.Context())
		require.NoError(t, err)
		require.Equal(t, 3, attempts)
	})
}

type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}
func (endless) Close() error { return nil }

func TestAnAnswerIsBounded(t *testing.T) {
	c := over(t, func(*http.Request) (*http.Response, error) {
		res := answer(200, "")
		res.Body = endless{}
		return res, nil
	})
	_, err := c.KnownCount(t.Context())
	require.ErrorContains(t, err, "larger than 64 MiB")
}

// TestWhatTheServerFillsInIsRefused: it would be lost without a word.
func TestWhatTheServerFillsInIsRefused(t *testing.T) {
	c := over(t, func(r *http.Request) (*http.Response, error) { panic("sent " + r.URL.Path) })
	for field, do := range map[string]func() error{
		"actor": func() error {
			_, err := c.Kick(t.Context(), rollcall.Kick{User: "ann", Actor: "me"})
			return err
		},
		"retry_scope": func() error {
			_, err := c.Login(t.Context(), rollcall.Login{User: "ann", RetryScope: "me"})
			return err
		},
		"cause": func() error {
			_, err := c.Kick(t.Context(), rollcall.Kick{User: "ann", Cause: rollcall.CauseLogout})
			return err
		},
		"text": func() error {
			_, _, err := c.CreateKey(t.Context(), rollcall.NewKey{Text: "rck_"})
			return err
		},
		"body": func() error { return c.Beat(t.Context(), "fine", "\xff") },
	} {
		var e *rollcall.Error
		require.ErrorAs(t, do(), &e)
		require.Equal(t, rollcall.CodeInvalidArgument, e.Code)
		require.Equal(t, field, e.Field)
	}
	_, err := c.Ban(t.Context(), "ann", time.Hour, "", "me")
	require.ErrorContains(t, err, "actor")
	res, err := c.Kick(t.Context(), rollcall.Kick{Filter: &rollcall.SessionFilter{Kind: "staff", Users: []string{}}})
	require.NoError(t, err)
	require.Zero(t, res.Ended, "nobody is not everybody")
}

func TestTokensGoInPlaceOfTheKey(t *testing.T) {
	var sent []string
	c := over(t, func(r *http.Request) (*http.Response, error) {
		sent = append(sent, r.Header.Get("Authorization"))
		return answer(200, `{}`), nil
	})
	token := "rct_" + strings.Repeat("A", 46)
	_, err := c.Touch(t.Context(), rollcall.SessionRef{Token: token})
	require.NoError(t, err)
	_, err = c.Verify(t.Context(), rollcall.SessionRef{Token: token})
	require.NoError(t, err)
	require.NoError(t, c.Beat(t.Context(), "ann"))
	require.Equal(t, []string{"Bearer " + token, "Bearer " + token, "Bearer rck_test"}, sent)

	sent = nil
	_, err = c.Verify(t.Context(), rollcall.SessionRef{Token: "two\nlines"})
	require.ErrorIs(t, err, rollcall.ErrUnauthenticated)
	require.Empty(t, sent)
}

func TestNewNamesWhatIsWrong(t *testing.T) {
	for _, address := range []string{"", "rollcall.test", "ftp://rollcall.test", "http://", "http://a/?b=c", "http://user:secret@host", ":"} {
		_, err := client.New(address, client.Options{})
		require.ErrorContains(t, err, "server", address)
	}
	for field, o := range map[string]client.Options{"attempts": {Attempts: 21}, "timeout": {Timeout: -1}, "key": {Key: "two words"}} {
		_, err := client.New("http://rollcall.test", o)
		require.ErrorContains(t, err, field)
	}
	c, err := client.New("https://rollcall.test/behind/a/proxy/", client.Options{HTTPClient: &http.Client{Transport: wire(func(r *http.Request) (*http.Response, error) {
		require.Equal(t, "https://rollcall.test/behind/a/proxy/v1/users/%2E%2E", r.URL.String())
		return answer(200, `{}`), nil
	})}})
	require.NoError(t, err)
	_, err = c.User(t.Context(), "..")
	require.NoError(t, err)
}
