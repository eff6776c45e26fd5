package client_test

import (
	"context"
	"net/netip"
	"time"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/client"
)

// service is what the library and the client both are.
type service interface {
	Login(context.Context, rollcall.Login) (rollcall.LoggedIn, error)
	Session(context.Context, rollcall.SessionID) (rollcall.Session, error)
	UpdateSession(context.Context, rollcall.SessionID, rollcall.SessionPatch) (rollcall.Session, error)
	Rotate(context.Context, rollcall.SessionID) (rollcall.Session, string, error)
	Verify(context.Context, rollcall.SessionRef) (rollcall.Session, error)
	Touch(context.Context, rollcall.SessionRef) (rollcall.Session, error)
	Leave(context.Context, rollcall.SessionRef) (rollcall.Session, error)
	TouchAll(context.Context, []rollcall.SessionRef) ([]rollcall.Touched, error)
	Sessions(context.Context, rollcall.SessionQuery) (rollcall.Page[rollcall.Session], error)
	Kick(context.Context, rollcall.Kick) (rollcall.EndResult, error)

	Beat(context.Context, ...string) error
	OnlineCount(context.Context, time.Duration) (int, error)
	KnownCount(context.Context) (int, error)
	Online(context.Context, time.Duration, rollcall.PageRequest) (rollcall.Page[rollcall.Seen], error)
	KnownUsers(context.Context, rollcall.PageRequest) (rollcall.Page[rollcall.Seen], error)
	Status(context.Context, ...string) ([]rollcall.Status, error)
	LastSeen(context.Context, string) (time.Time, time.Duration, error)
	ClearPresence(context.Context, time.Duration) (int, error)
	SessionCounts(context.Context, rollcall.SessionCountQuery) (rollcall.SessionCounts, error)
	Samples(context.Context, rollcall.SampleQuery) ([]rollcall.Sample, error)

	User(context.Context, string) (rollcall.UserSummary, error)
	PutUser(context.Context, string, rollcall.UserPatch) (rollcall.User, error)
	Erase(context.Context, string) error
	Ban(context.Context, string, time.Duration, string, string) (rollcall.EndResult, error)
	Unban(context.Context, string) error
	BanOf(context.Context, string) (rollcall.Ban, error)
	Bans(context.Context, rollcall.PageRequest) (rollcall.Page[rollcall.Ban], error)

	AddFriends(context.Context, string, bool, ...rollcall.Friend) error
	RemoveFriend(context.Context, string, string, bool) error
	ReplaceFriends(context.Context, string, []rollcall.Friend) error
	Friends(context.Context, string, rollcall.PageRequest) (rollcall.Page[rollcall.FriendStatus], error)
	OnlineFriends(context.Context, rollcall.FriendQuery) (rollcall.Page[rollcall.FriendStatus], error)

	Mark(context.Context, ...rollcall.Mark) (int, int, error)
	ImportMarks(context.Context, ...rollcall.Mark) (int, int, error)
	Unmark(context.Context, bool, ...rollcall.Mark) (int, error)
	Attended(context.Context, string, string, rollcall.DayRange) (rollcall.Attended, error)
	Active(context.Context, rollcall.ActiveQuery) (rollcall.Page[string], error)
	Series(context.Context, rollcall.SeriesQuery) ([]rollcall.DayFigures, error)
	Retention(context.Context, rollcall.RetentionQuery) (rollcall.Retention, error)
	Lifecycle(context.Context, rollcall.LifecycleQuery) ([]rollcall.LifecycleRow, error)
	ActiveDays(context.Context, string, rollcall.DayRange) ([]int, error)
	Streaks(context.Context, string, rollcall.DayRange, int) ([]rollcall.UserStreak, error)

	Visit(context.Context, string, ...string) error
	Visitors(context.Context, rollcall.VisitQuery) (rollcall.VisitFigures, error)
	VisitNames(context.Context) ([]rollcall.VisitName, error)
	DeleteVisitName(context.Context, string) error
	Kinds(context.Context) ([]rollcall.KindUse, error)
	DeleteKind(context.Context, string) error

	CreateKey(context.Context, rollcall.NewKey) (rollcall.APIKey, string, error)
	Keys(context.Context) ([]rollcall.APIKey, error)
	RevokeKey(context.Context, string) error
	CreateWebhook(context.Context, rollcall.NewWebhook) (rollcall.Webhook, string, error)
	Webhooks(context.Context) ([]rollcall.Webhook, error)
	Webhook(context.Context, string) (rollcall.Webhook, error)
	UpdateWebhook(context.Context, string, rollcall.WebhookPatch) (rollcall.Webhook, error)
	DeleteWebhook(context.Context, string) error
	RotateWebhook(context.Context, string) (rollcall.Webhook, string, error)
	ReplayWebhook(context.Context, string, time.Time, time.Time) (rollcall.Webhook, error)
	WebhookDeliveries(context.Context, string, rollcall.PageRequest) (rollcall.Page[rollcall.WebhookDelivery], error)
	EventsAfter(context.Context, rollcall.EventID, int, ...rollcall.EventFamily) ([]rollcall.Event, error)
	Tail(context.Context, rollcall.EventID, int, ...rollcall.EventFamily) ([]rollcall.Event, error)
	LastEvent(context.Context) (rollcall.EventID, error)
	Timeline(context.Context, rollcall.TimelineQuery) (rollcall.Timeline, error)
	AuditTrail(context.Context, rollcall.AuditQuery) (rollcall.AuditPage, error)
	Stats(context.Context) (rollcall.Stats, error)
	Ready(context.Context) error
	Close() error
}

var (
	_ service = (*rollcall.Roll)(nil)
	_ service = (*client.Client)(nil)
)

func mustAddr(text string) netip.Addr { return netip.MustParseAddr(text) }
