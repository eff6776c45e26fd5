package httpapi

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/rollcall/rollcall"
)

// Webhooks delivers for the webhooks of the store.
type Webhooks interface {
	// Test sends a message to a webhook at once.
	Test(ctx context.Context, id string) (rollcall.WebhookDelivery, error)
	// Changed says that the webhooks have changed.
	Changed()
}

// WebhookRecord is a webhook, without its secret.
type WebhookRecord struct {
	ID          string               `json:"id"`
	URL         string               `json:"url"`
	Description string               `json:"description,omitempty"`
	Types       []rollcall.EventType `json:"types,omitempty" doc:"the types it is told of; absent for all but user.online and user.offline"`
	User        string               `json:"user,omitempty" doc:"only events of this user"`
	Cause       rollcall.Cause       `json:"cause,omitempty" doc:"only events with this cause"`
	Invisible   bool                 `json:"invisible" doc:"it is told of invisible users too"`
	Batch       bool                 `json:"batch" doc:"events come in batches"`
	CreatedAt   instant              `json:"created_at"`
	RotatedAt   instant              `json:"rotated_at,omitempty" doc:"when it got its latest secret, if not when it was made"`
	Enabled     bool                 `json:"enabled"`
	Disabled    string               `json:"disabled,omitempty" doc:"why nothing is delivered: request, gone (the receiver answered 410), failing (nothing but failures for five days)"`
	DisabledAt  instant              `json:"disabled_at,omitempty"`
	Replay      *replayRecord        `json:"replay,omitempty"`
}

type replayRecord struct {
	ID      string  `json:"id" doc:"its messages have it as replay; while it is under way the webhook shows it"`
	From    instant `json:"from"`
	To      instant `json:"to"`
	AskedAt instant `json:"asked_at"`
}

func webhookOf(w rollcall.Webhook) WebhookRecord {
	r := WebhookRecord{
		ID: w.ID, URL: w.URL, Description: w.Description, Types: w.Filter.Types, User: w.Filter.User, Cause: w.Filter.Cause,
		Invisible: w.Invisible, Batch: w.Batch, CreatedAt: instantOf(w.CreatedAt), RotatedAt: instantOf(w.RotatedAt),
		Enabled: w.Enabled(), Disabled: string(w.Disabled), DisabledAt: instantOf(w.DisabledAt),
	}
	if w.Replay != nil {
		r.Replay = &replayRecord{w.Replay.ID, instantOf(w.Replay.From), instantOf(w.Replay.To), instantOf(w.Replay.AskedAt)}
	}
	return r
}

// webhookWithSecret is a webhook with its secret, which is shown once.
type webhookWithSecret struct {
	WebhookRecord
	Secret string `json:"secret" doc:"checks the signatures; shown once"`
}

type createWebhookInput struct {
	IdempotencyKey string `header:"Idempotency-Key" doc:"makes a retry safe: the same key and body answer the webhook that was made, and its secret"`
	Body           struct {
		URL         string               `json:"url" doc:"https:// or http://"`
		Description string               `json:"description,omitempty"`
		Types       []rollcall.EventType `json:"types,omitempty" doc:"the types to be told of; all but user.online and user.offline unless said"`
		User        string               `json:"user,omitempty"`
		Cause       rollcall.Cause       `json:"cause,omitempty"`
		Invisible   bool                 `json:"invisible,omitempty"`
		Batch       bool                 `json:"batch,omitempty"`
	} `nameHint:"WebhookRequest"`
}

type patchWebhookInput struct {
	ID   string `path:"id"`
	Body struct {
		URL         *string               `json:"url,omitempty"`
		Description *string               `json:"description,omitempty"`
		Types       *[]rollcall.EventType `json:"types,omitempty" doc:"an empty list for all but user.online and user.offline"`
		Invisible   *bool                 `json:"invisible,omitempty"`
		Batch       *bool                 `json:"batch,omitempty"`
		Enabled     *bool                 `json:"enabled,omitempty" doc:"it goes on where it stopped"`
	} `nameHint:"WebhookPatch"`
}

type webhookInput struct {
	ID string `path:"id"`
}

type replayInput struct {
	ID   string `path:"id"`
	Body struct {
		From instant `json:"from" doc:"events at or after it"`
		To   instant `json:"to" doc:"events before it"`
	} `nameHint:"ReplayRequest"`
}

type deliveriesInput struct {
	ID    string `path:"id"`
	Limit int    `query:"limit" minimum:"0" maximum:"1000" default:"20"`
	Page  int    `query:"page" minimum:"1" default:"1"`
}

// DeliveryRecord is one attempt to deliver a message.
type DeliveryRecord struct {
	Message  string                 `json:"message" doc:"its webhook-id"`
	Type     string                 `json:"type"`
	Events   int                    `json:"events" doc:"how many it holds"`
	Replay   string                 `json:"replay,omitempty"`
	Attempt  int                    `json:"attempt" doc:"from 1"`
	At       instant                `json:"at"`
	EventAt  instant                `json:"event_at,omitempty" doc:"of its first event: a replay of the message begins there"`
	Duration int64                  `json:"duration_ms"`
	Result   rollcall.WebhookResult `json:"result" doc:"failed is tried again; refused: the address is not allowed; given_up: not tried again"`
	Status   int                    `json:"status,omitempty" doc:"of HTTP; absent if there was no answer"`
	Error    string                 `json:"error,omitempty"`
}

func deliveryOf(d rollcall.WebhookDelivery) DeliveryRecord {
	return DeliveryRecord{
		Message: d.Message, Type: d.Type, Events: d.Events, Replay: d.Replay, Attempt: d.Attempt, At: instantOf(d.At), EventAt: instantOf(d.EventAt),
		Duration: d.Duration.Round(time.Millisecond).Milliseconds(), Result: d.Result, Status: d.Status, Error: d.Error,
	}
}

type deliveryPage struct {
	Items []DeliveryRecord `json:"items" nullable:"false"`
	Total int              `json:"total"`
}

func (s *Server) registerWebhooks() {
	const section = "Webhooks"
	register(s, op("GET /v1/webhooks", "list-webhooks", section, "All webhooks, oldest first"), s.listWebhooks)
	create := op("POST /v1/webhooks", "create-webhook", section, "Make a webhook for the events from now on")
	create.DefaultStatus = http.StatusCreated
	create.Description = "Messages follow Standard Webhooks. They come at least once, those of a user in order; webhook-id tells repeats apart."
	register(s, create, s.createWebhook)
	register(s, op("GET /v1/webhooks/{id}", "get-webhook", section, "A webhook"), s.getWebhook)
	register(s, op("PATCH /v1/webhooks/{id}", "update-webhook", section, "Change a webhook, turn it off or on"), s.updateWebhook)
	registerQuiet(s, op("DELETE /v1/webhooks/{id}", "delete-webhook", section, "Remove a webhook"), s.deleteWebhook)
	test := op("POST /v1/webhooks/{id}/test", "test-webhook", section, "Send a message of the type webhook.test now")
	test.Description = "It answers what became of it: also if that is a failure. A webhook that is disabled is tested too."
	register(s, test, s.testWebhook)
	rotate := op("POST /v1/webhooks/{id}/rotate", "rotate-webhook", section, "Give a webhook another secret")
	rotate.Description = "Each secret signs the messages, beside the latest, for a day after it was replaced. 409 after four rotations within a day."
	register(s, rotate, s.rotateWebhook)
	replay := op("POST /v1/webhooks/{id}/replay", "replay-webhook", section, "Deliver the events of a range of time again")
	replay.Description = "Those that the log still has, through the same queue, with the ids they had; replay in the body names the replay. 409 while one is under way."
	replay.DefaultStatus = http.StatusAccepted
	register(s, replay, s.replayWebhook)
	register(s, op("GET /v1/webhooks/{id}/deliveries", "list-deliveries", section, "The latest attempts to deliver, newest first, up to 200"), s.deliveries)
}

func (s *Server) webhooksChanged() {
	if s.opts.Webhooks != nil {
		s.opts.Webhooks.Changed()
	}
}

func (s *Server) listWebhooks(ctx context.Context, _ *struct{}) (items[WebhookRecord], error) {
	all, err := s.roll.Webhooks(ctx)
	return items[WebhookRecord]{each(all, webhookOf)}, err
}

func (s *Server) createWebhook(ctx context.Context, in *createWebhookInput) (webhookWithSecret, error) {
	b := in.Body
	made, secret, err := s.roll.CreateWebhook(ctx, rollcall.NewWebhook{
		URL: b.URL, Description: b.Description, Invisible: b.Invisible, Batch: b.Batch,
		Filter:   rollcall.EventFilter{Types: b.Types, User: b.User, Cause: b.Cause},
		RetryKey: in.IdempotencyKey, RetryScope: callerOf(ctx).key.ID,
	})
	if err != nil {
		return webhookWithSecret{}, err
	}
	s.security.act(ctx, "webhook_made", slog.String("webhook", made.ID))
	s.webhooksChanged()
	return webhookWithSecret{webhookOf(made), secret}, nil
}

func (s *Server) getWebhook(ctx context.Context, in *webhookInput) (WebhookRecord, error) {
	w, err := s.roll.Webhook(ctx, in.ID)
	return webhookOf(w), err
}

func (s *Server) updateWebhook(ctx context.Context, in *patchWebhookInput) (WebhookRecord, error) {
	b := in.Body
	w, err := s.roll.UpdateWebhook(ctx, in.ID, rollcall.WebhookPatch{
		URL: b.URL, Description: b.Description, Types: b.Types, Invisible: b.Invisible, Batch: b.Batch, Enabled: b.Enabled,
	})
	if err != nil {
		return WebhookRecord{}, err
	}
	s.security.act(ctx, "webhook_changed", slog.String("webhook", w.ID))
	s.webhooksChanged()
	return webhookOf(w), nil
}

func (s *Server) deleteWebhook(ctx context.Context, in *webhookInput) error {
	err := s.roll.DeleteWebhook(ctx, in.ID)
	if err == nil {
		s.security.act(ctx, "webhook_removed", slog.String("webhook", in.ID))
		s.webhooksChanged()
	}
	return err
}

func (s *Server) testWebhook(ctx context.Context, in *webhookInput) (DeliveryRecord, error) {
	if s.opts.Webhooks == nil {
		return DeliveryRecord{}, &rollcall.Error{Code: rollcall.CodeNotFound, Detail: "this server delivers no webhooks"}
	}
	d, err := s.opts.Webhooks.Test(ctx, in.ID)
	return deliveryOf(d), err
}

func (s *Server) rotateWebhook(ctx context.Context, in *webhookInput) (webhookWithSecret, error) {
	w, secret, err := s.roll.RotateWebhook(ctx, in.ID)
	if err != nil {
		return webhookWithSecret{}, err
	}
	s.security.act(ctx, "webhook_rotated", slog.String("webhook", w.ID))
	s.webhooksChanged()
	return webhookWithSecret{webhookOf(w), secret}, nil
}

func (s *Server) replayWebhook(ctx context.Context, in *replayInput) (WebhookRecord, error) {
	from, err := in.Body.From.parse("from")
	if err != nil {
		return WebhookRecord{}, err
	}
	to, err := in.Body.To.parse("to")
	if err != nil {
		return WebhookRecord{}, err
	}
	w, err := s.roll.ReplayWebhook(ctx, in.ID, from, to)
	if err != nil {
		return WebhookRecord{}, err
	}
	s.security.act(ctx, "webhook_replayed", slog.String("webhook", w.ID))
	s.webhooksChanged()
	return webhookOf(w), nil
}

func (s *Server) deliveries(ctx context.Context, in *deliveriesInput) (deliveryPage, error) {
	p, err := s.roll.WebhookDeliveries(ctx, in.ID, rollcall.PageRequest{Limit: in.Limit, Number: in.Page})
	return deliveryPage{each(p.Items, deliveryOf), p.Total}, err
}
