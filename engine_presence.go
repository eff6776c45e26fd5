package rollcall

import (
	"context"
	"time"
)

// Presence is who was seen when, to the second. A user is online at t for a
// window w when t−w ≤ last seen ≤ t in whole seconds, and they are not gone.
//
// With PresenceEvents, changes are announced. A user goes online (user.online)
// at the first sign of life after being offline. They go offline (user.offline)
// when Window and OfflineGrace have passed without one: At is the first whole
// second in which they no longer count. They also go offline when they are
// gone: by a kick, a ban or an erasure at once; by a logout (CauseLogout) when
// LeaveGrace has passed since, At being the logout plus LeaveGrace, or when
// they would have fallen silent if that is earlier. If they are heard before,
// neither event is made. These waits are the announcements' alone: what is
// answered about a user is so at once.
//
// Each change makes one event, also across restarts and however late Tick
// comes: who went offline and is heard before Tick came makes both, in order.
// The events of a user, of sessions too, come in the order of their At.
type Presence interface {
	// Beat is a sign of life of each of the users.
	Beat(ctx context.Context, now time.Time, users []string) error
	// Count returns how many users are online for a window.
	Count(ctx context.Context, now time.Time, window time.Duration, viewer Viewer) (int, error)
	// CountKnown returns how many users have a last-seen time. Invisible users have
	// none to the public.
	CountKnown(ctx context.Context, now time.Time, viewer Viewer) (int, error)
	// Online lists the users online, last seen first; within one second the
	// order is the engine's own. A walk by cursor is bounded by the instant it
	// began and returns each user at most once.
	Online(ctx context.Context, now time.Time, window time.Duration, p PageRequest, viewer Viewer) (Page[Seen], error)
	// KnownUsers lists the users that Known counts, those who are gone among them,
	// in the order and with the walks of Online. A user who goes within a walk, or
	// is heard again within the second of their last sign of life, keeps their place.
	KnownUsers(ctx context.Context, now time.Time, p PageRequest, viewer Viewer) (Page[Seen], error)
	// Status answers for each user, in the order asked, for a window.
	Status(ctx context.Context, now time.Time, window time.Duration, users []string, viewer Viewer) ([]Status, error)
	// Clear forgets the last-seen time of everyone last seen before the given
	// time, in whole seconds as for windows, and returns how many those were. Users with live sessions keep
	// their sessions. Users with nothing else to their name are forgotten whole.
	Clear(ctx context.Context, now, before time.Time) (int, error)
}
