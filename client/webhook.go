package client

import (
	"cmp"
	"context"
	"crypto/rand"
	"net/http"
	"strconv"
	"time"

	"github.com/rollcall/rollcall"
)

// webhook is a webhook on the wire, without its secret.
type webhook struct {
	ID, URL, Description string
	Types                []rollcall.EventType
	User                 string
	Cause                rollcall.Cause
	Invisible, Batch     bool
	CreatedAt            time.Time `json:"created_at"`
	RotatedAt            time.Time `json:"rotated_at"`
	Disabled             rollcall.WebhookStop
	DisabledAt           time.Time `json:"disabled_at"`
	Replay               *struct {
		ID       string
		From, To time.Time
		AskedAt  time.Time `json:"asked_at"`
	}
}

func (w webhook) domain() rollcall.Webhook {
	out := rollcall.Webhook{
		ID: w.ID, URL: w.URL, Description: w.Description, Invisible: w.Invisible, Batch: w.Batch,
		Filter:    rollcall.EventFilter{Types: w.Types, User: w.User, Cause: w.Cause},
		CreatedAt: w.CreatedAt, RotatedAt: w.RotatedAt, Disabled: w.Disabled, DisabledAt: w.DisabledAt,
	}
	if r := w.Replay; r != nil {
		out.Replay = &rollcall.WebhookReplay{ID: r.ID, From: r.From, To: r.To, AskedAt: r.AskedAt}
	}
	return out
}

// webhookSecret is a webhook with its secret.
type webhookSecret struct {
	webhook
	Secret string
}

// CreateWebhook makes a webhook for the events from now on, and returns its secret, once;
// see [rollcall.Roll.CreateWebhook]. Without a RetryKey the client makes one, so that a
// request that has to be sent again makes one webhook only. What the server keeps to
// itself is left out here: After, Generation, Asked, Revision.
func (c *Client) CreateWebhook(ctx context.Context, n rollcall.NewWebhook) (rollcall.Webhook, string, error) {
	if err := notSent("retry_scope", n.RetryScope); err != nil {
		return rollcall.Webhook{}, "", err
	}
	body := struct {
		URL         string               `json:"url"`
		Description string               `json:"description,omitempty"`
		Types       []rollcall.EventType `json:"types,omitempty"`
		User        string               `json:"user,omitempty"`
		Cause       rollcall.Cause       `json:"cause,omitempty"`
		Invisible   bool                 `json:"invisible,omitempty"`
		Batch       bool                 `json:"batch,omitempty"`
	}{n.URL, n.Description, n.Filter.Types, n.Filter.User, n.Filter.Cause, n.Invisible, n.Batch}
	var answer webhookSecret
	err := c.do(ctx, call{method: http.MethodPost, path: "/v1/webhooks", body: body, retryKey: cmp.Or(n.RetryKey, rand.Text())}, &answer)
	return answer.domain(), answer.Secret, err
}

// Webhooks returns all webhooks, oldest first.
func (c *Client) Webhooks(ctx context.Context) ([]rollcall.Webhook, error) {
	var answer items[webhook]
	err := c.do(ctx, call{method: http.MethodGet, path: "/v1/webhooks"}, &answer)
	return each(answer.Items, webhook.domain), err
}

// webhookCall is a call about one webhook; what is "" for the webhook itself.
func webhookCall(method, id, what string) call {
	segments := []string{"v1", "webhooks", id}
	if what != "" {
		segments = append(segments, what)
	}
	return call{method: method, path: path(segments...)}
}

func (c *Client) oneWebhook(ctx context.Context, r call, id string) (webhookSecret, error) {
	var answer webhookSecret
	if id == "" {
		return answer, rollcall.NotFound("webhook")
	}
	err := c.do(ctx, r, &answer)
	return answer, err
}

// Webhook returns a webhook; CodeNotFound.
func (c *Client) Webhook(ctx context.Context, id string) (rollcall.Webhook, error) {
	w, err := c.oneWebhook(ctx, webhookCall(http.MethodGet, id, ""), id)
	return w.domain(), err
}

// UpdateWebhook changes a webhook; see [rollcall.Roll.UpdateWebhook].
func (c *Client) UpdateWebhook(ctx context.Context, id string, p rollcall.WebhookPatch) (rollcall.Webhook, error) {
	r := webhookCall(http.MethodPatch, id, "")
	r.body = struct {
		URL         *string               `json:"url,omitempty"`
		Description *string               `json:"description,omitempty"`
		Types       *[]rollcall.EventType `json:"types,omitempty"`
		Invisible   *bool                 `json:"invisible,omitempty"`
		Batch       *bool                 `json:"batch,omitempty"`
		Enabled     *bool                 `json:"enabled,omitempty"`
	}{p.URL, p.Description, p.Types, p.Invisible, p.Batch, p.Enabled}
	w, err := c.oneWebhook(ctx, r, id)
	return w.domain(), err
}

// DeleteWebhook removes a webhook; see [rollcall.Roll.DeleteWebhook].
func (c *Client) DeleteWebhook(ctx context.Context, id string) error {
	if id == "" {
		return rollcall.NotFound("webhook")
	}
	r := webhookCall(http.MethodDelete, id, "")
	r.removes = true
	return c.do(ctx, r, nil)
}

// RotateWebhook gives a webhook another secret and returns it, once; see
// [rollcall.Roll.RotateWebhook].
func (c *Client) RotateWebhook(ctx context.Context, id string) (rollcall.Webhook, string, error) {
	r := webhookCall(http.MethodPost, id, "rotate")
	r.once = true
	w, err := c.oneWebhook(ctx, r, id)
	return w.domain(), w.Secret, err
}

// ReplayWebhook delivers the events of [from, to) again; see [rollcall.Roll.ReplayWebhook].
func (c *Client) ReplayWebhook(ctx context.Context, id string, from, to time.Time) (rollcall.Webhook, error) {
	r := webhookCall(http.MethodPost, id, "replay")
	r.once = true
	r.body = struct {
		From string `json:"from,omitempty"`
		To   string `json:"to,omitempty"`
	}{instant(from), instant(to)}
	w, err := c.oneWebhook(ctx, r, id)
	return w.domain(), err
}

// delivery is an attempt on the wire.
type delivery struct {
	Message, Type string
	Events        int
	Replay        string
	Attempt       int
	At            time.Time
	EventAt       time.Time `json:"event_at"`
	DurationMS    int64     `json:"duration_ms"`
	Result        rollcall.WebhookResult
	Status        int
	Error         string
}

func (d delivery) domain() rollcall.WebhookDelivery {
	return rollcall.WebhookDelivery{
		Message: d.Message, Type: d.Type, Events: d.Events, Replay: d.Replay, Attempt: d.Attempt, At: d.At, EventAt: d.EventAt,
		Duration: time.Duration(d.DurationMS) * time.Millisecond, Result: d.Result, Status: d.Status, Error: d.Error,
	}
}

// WebhookDeliveries returns the latest attempts of a webhook, newest first; see
// [rollcall.Roll.WebhookDeliveries].
func (c *Client) WebhookDeliveries(ctx context.Context, id string, p rollcall.PageRequest) (rollcall.Page[rollcall.WebhookDelivery], error) {
	if id == "" {
		return rollcall.Page[rollcall.WebhookDelivery]{}, rollcall.NotFound("webhook")
	}
	q := newParams()
	q.Set("limit", strconv.Itoa(p.Limit))
	if p.Number != 0 {
		q.Set("page", strconv.Itoa(p.Number))
	}
	q.text("cursor", p.Cursor)
	r := webhookCall(http.MethodGet, id, "deliveries")
	r.query = q.Values
	var answer page[delivery]
	err := c.do(ctx, r, &answer)
	return pageOf(answer, delivery.domain), err
}

// TestWebhook sends a message to a webhook now, and returns what became of it.
func (c *Client) TestWebhook(ctx context.Context, id string) (rollcall.WebhookDelivery, error) {
	if id == "" {
		return rollcall.WebhookDelivery{}, rollcall.NotFound("webhook")
	}
	r := webhookCall(http.MethodPost, id, "test")
	r.once, r.timeout = true, testTimeout
	var answer delivery
	err := c.do(ctx, r, &answer)
	return answer.domain(), err
}

// testTimeout is longer than a server tries.
const testTimeout = 30 * time.Second
