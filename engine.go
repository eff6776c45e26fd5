package rollcall

import (
	"context"
	"time"
)

// Engine keeps what Rollcall knows and changes it by atomic domain commands.
// It is the one port of the domain; the comments below are its specification,
// and package enginetest holds every engine to them.
//
// Rules for all commands:
//   - Inputs have been validated by [Roll]; an engine may rely on their form.
//   - now is the caller's clock. Each partition works with the later of now and
//     the latest time it has seen, so no time an engine keeps moves backwards.
//   - A command about one user is atomic. A command about several is atomic
//     for each; reads over all users are exact at one instant on an embedded
//     engine and at one instant per partition on a distributed one, where a
//     list that has to be gathered (by users, by several conditions, or by what
//     no index has) is gathered in steps: a session that begins or ends
//     meanwhile may or may not count in its total. Figures
//     over days are exact at one instant per partition on both.
//   - A command that returned without error is durable, except beats, touches
//     and visits, of which a crash may lose the last second. A command that
//     returned an error of CodeUnavailable or CodeStorageFull changed nothing
//     that a later read shows, unless the error came from waiting for
//     durability, after which the engine refuses writes until it has recovered,
//     or, on a distributed engine, from an answer that did not come: then the
//     command may have been carried out, once.
//   - Events a command causes are appended in the same atomic step.
//   - Strings and slices returned belong to the caller.
type Engine interface {
	Sessions
	Presence
	Users
	Kinds
	Friends
	Attendance
	Archival
	Visits
	Transfer
	Events
	Timelines
	Samples
	Webhooks
	Console
	Audit
	Admin

	// Configure is called once, before any other method. The time zone is fixed
	// when the data is created: another one is refused with CodeConflict, and so
	// is data that knows a time more than a day ahead of Settings.Now.
	Configure(ctx context.Context, s Settings) error

	// Tick leaves a stamp of life and does a bounded part of what is due:
	// flushing beats, touches and visits, ending sessions past their deadline,
	// announcing users who fell silent, forgetting what is past its retention,
	// taking a sample each minute. It is meant to be called every second. What a
	// read answers never depends on whether Tick was called in time, but for [Samples].
	//
	// Once an engine has been ticked, a gap of more than 5 s between stamps, or
	// between the last stamp and the present (also across a restart), is an
	// outage [a, b), and downtime is not absence: an idle deadline that falls
	// inside it or inside the restart grace g behind it, a < deadline < b+g, is
	// moved to b+g, never past the session's EndsAt; a user who counted as
	// online at a does so until b+g, and the more recent with them. An engine
	// that is never ticked records no outage: a replay's clock may jump. Outages
	// whose graces touch are one, however many. Time in which writes are refused
	// is an outage too. What a caller was told has ended stays ended, across any
	// crash.
	Tick(ctx context.Context, now time.Time) error

	// Flush makes all beats, touches and visits so far durable.
	Flush(ctx context.Context) error

	// Close flushes and releases everything. Later calls fail with
	// CodeUnavailable.
	Close() error
}

// Timekeeper is an engine that knows the time that decides better than the
// system does: a distributed one, whose servers have to agree on it. [New] goes
// by its clock unless it is given another.
type Timekeeper interface {
	Clock() Clock
}

// Settings are the rules of the domain that an engine must know.
type Settings struct {
	Timezone string         // IANA name
	Location *time.Location // the zone of that name, which civil days and hours are of; nil for UTC
	// SecretID stands for the secret, "" for one that is made anew each time. An
	// engine refuses another one than its data was created with, with
	// CodeConflict; "" fits all data.
	SecretID       string
	Window         time.Duration // default window: decides user.online and user.offline
	OfflineGrace   time.Duration // added to Window before a user is announced offline
	LeaveGrace     time.Duration // wait before one who logged out is announced offline
	Retention      time.Duration // last-seen times older than this are forgotten
	RestartGrace   time.Duration
	PresenceEvents bool
	EventsAge      time.Duration // events older than this may go
	EventsCount    int           // of each family, session and presence
	VisitsKeep     time.Duration // hours of visits that ended longer ago are forgotten
	EndedKeep      time.Duration // how long an ended session is remembered
	RetryKeep      time.Duration // how long a login can be retried with the same key
	Archive        *ArchiveView  // of offloaded days; a view of none if there is no archive
	// Now is the time when the engine is configured; with the zero value stored
	// times are not compared with it.
	Now time.Time
	// OwnClock says that commands bring the time of a clock of their owner's, as
	// a replay's, which no other clock is to hold.
	OwnClock bool
}

// Zone returns the time zone of civil days and hours.
func (s *Settings) Zone() *time.Location {
	if s.Location == nil {
		return time.UTC
	}
	return s.Location
}

// StartSession is a login, checked and ready to be stored. ID, LoginAt, SeenAt,
// ExpiresAt and EndsAt of Session are the engine's to fill in.
type StartSession struct {
	Session Session // Kind and Name may be empty: the user's own are taken
	// Evict are sessions that end with the login: at most MaxEvict, perhaps
	// some twice, some ended, some of other users.
	Evict     []SessionID
	Random    uint64 // for the session id
	Token     TokenHash
	BanKey    BanKey
	Policies  *Policies
	MarkToday bool // the login marks Today
	Today     Day
	Retry     *Retry
}

// Retry makes a login safe to repeat. A second StartSession with the same Key within
// the time kept returns what the first one did while the session of the first
// lives; afterwards it fails with CodeSessionEnded and the session's cause,
// which is CauseErased if nothing of it is remembered. A StartSession that was refused
// holds no key. Of logins of different users under one Key, also at the same
// instant, at most one succeeds.
type Retry struct {
	Key     [32]byte // of the caller and the caller's own key
	Request [32]byte // hash of the request: another one is a CodeConflict
	Nonce   [32]byte // kept with it: the token is derived from it again
}

// StartResult is a login's outcome.
type StartResult struct {
	Session Session
	Ended   []Ended  // sessions that made room, in the order they went
	Nonce   [32]byte // of the first login, when Replayed
	// Replayed says that Retry.Key was known: nothing was changed.
	Replayed bool
}

// Ended is a session that ended, and why.
type Ended struct {
	ID    SessionID
	Cause Cause
}

// Ref points at a session: by Token if that is set, else by ID.
type Ref struct {
	ID    SessionID
	Token *TokenHash
}

// Touched is what became of one touch: Live with its session, or Session.End
// set for one that ended, or neither for one that is not known.
type Touched struct {
	Live    bool
	Session Session
}

// EndCommand ends sessions of users: those in Sessions (of any users, at most
// 500), or, if User is set, the user's: all, only those of Device, or all but
// Except. Bans are set in the same step; they end what is left of their users'
// sessions with CauseBanned.
type EndCommand struct {
	Sessions []SessionID
	User     string
	Device   string
	Except   SessionID
	Cause    Cause
	Reason   string
	Actor    string
	Bans     []Ban
}

// EndsAll reports whether the command turns its User away whole: it ends all of their
// sessions, and not because they logged out.
func (c *EndCommand) EndsAll() bool {
	return c.User != "" && c.Device == "" && c.Except.IsZero() && c.Cause != CauseLogout
}

// EndResult says how many sessions ended, and names the first 100.
type EndResult struct {
	Ended    int
	Sessions []SessionID
}

// Users are the records of users, and the bans.
type Users interface {
	// User returns the record; one never heard of has the defaults.
	User(ctx context.Context, user string) (User, error)
	// KindsOf returns the kinds of at most MaxMarks users' records, in the order of
	// the users, of one that is given twice both times; DefaultKind of a user never
	// heard of. They may be of different instants.
	KindsOf(ctx context.Context, users []string) ([]string, error)
	// PutUser changes the record. Turning invisible appends user.offline for
	// the public if the user was online, turning visible user.online. A kind
	// past MaxKinds is refused with CodeInvalidArgument.
	PutUser(ctx context.Context, now time.Time, user string, p UserPatch) (User, error)
	// Erase removes everything about a user: sessions end with CauseErased,
	// friends go in both directions, presence, marks, name and kind, and the
	// user's events lose their user and session. A ban stays, without its
	// user's id, until it ends. Appends user.offline if the user was announced
	// online, and user.erased; they name nobody.
	// Erasing a user never heard of is no error.
	//
	// The user goes in one step, behind the friends: what others have done to them
	// until then goes with them, and whoever has the id after it is a new user, of
	// whom the erasure takes nothing. So a StartSession that meets an erasure has the old
	// user removed first, and begins a session of the new one. An Erase that is cut
	// short, by ctx, a crash or a failing store, has begun nothing, or Tick finishes
	// it within some seconds. Until then the user may still be there, with fewer
	// friends, sessions or ended sessions than before. Another Erase joins it, and
	// returns when all is done; Export finishes it first.
	Erase(ctx context.Context, now time.Time, user string, key BanKey) error

	// Ban sets or replaces a ban and ends the user's sessions with CauseBanned.
	Ban(ctx context.Context, now time.Time, ban Ban) (EndResult, error)
	// Unban lifts a ban and appends user.unbanned; false if there was none.
	Unban(ctx context.Context, now time.Time, user string, key BanKey) (bool, error)
	// BanOf returns the ban in force for a user; false if there is none.
	BanOf(ctx context.Context, now time.Time, user string, key BanKey) (Ban, bool, error)
	// Bans lists the bans in force, by user id as text, then key.
	Bans(ctx context.Context, now time.Time, p PageRequest) (Page[Ban], error)
}

// Kinds are the kinds of users: those that a user's record, a login or a mark
// has named. There are at most MaxKinds at a time, DefaultKind always being one
// of them. A command that would make one too many is refused with
// CodeInvalidArgument, and one that is refused for any reason makes none.
type Kinds interface {
	// Kinds lists the kinds, in the order of their bytes, with their use.
	Kinds(ctx context.Context) ([]KindUse, error)
	// DeleteKind removes a kind that nothing is of: CodeNotFound if there is no
	// such kind, CodeConflict while it is in use, and for DefaultKind. Nothing
	// else changes: there was nothing of it.
	DeleteKind(ctx context.Context, kind string) error
}

// Visits are unique visitors of names: of a site, a page, a campaign. They are
// estimated by HyperLogLog (Flajolet, Fusy, Gandouet, Meunier, 2007) and stand
// apart from all that is exact: a visitor is no user, nothing else knows of
// visitors, and only sketches of their hashes are kept, so an erasure does not
// concern them. They are counted by civil hour, see [HourOf].
//
// Visits are acknowledged like beats: a crash may lose the last second. Tick
// forgets the hours that ended VisitsKeep ago or earlier, and a name with the
// last of its hours.
type Visits interface {
	// Visit notes visitors of a name, "" being one like any other, in the hour
	// of now. Noting a visitor again changes nothing; naming none does not make
	// the name known. Visitors of a name past MaxVisitNames are noted under
	// VisitsOther instead, which is then returned as noted, and else name.
	// VisitsOther itself always has room.
	Visit(ctx context.Context, now time.Time, name string, visitors []string) (noted string, err error)
	// Visitors estimates how many different visitors a name had in the range,
	// and in each hour or day of it, in order, also in those without any.
	// Whoever came in several hours counts once in their day and once in the
	// total. Up to 100 visitors are counted to within 1, more with the relative
	// standard error that is returned. A name never heard of has none.
	Visitors(ctx context.Context, q VisitQuery) (VisitFigures, error)
	// VisitNames lists the names known, in the order of their bytes, and when
	// they had visitors last.
	VisitNames(ctx context.Context) ([]VisitName, error)
	// DeleteVisitName forgets a name and all that was counted under it, which
	// makes room for another; CodeNotFound.
	DeleteVisitName(ctx context.Context, name string) error
}

// Transfer moves all that is known about users from one engine to another,
// snapshot by snapshot.
//
// What no [UserSnapshot] holds is not moved: API keys and webhooks, which [Admin] and
// [Webhooks] list; passes to the console; events,
// as a new store begins a new log; the audit trail; visits, whose sketches are of one engine's
// own hash; samples, as another store has its own; outages; and the keys of retried
// logins.
type Transfer interface {
	// Export calls visit with a snapshot of each user of whom anything is known,
	// in an order of the engine's own, and with others for what is left of
	// erased users. Being named as a friend is nothing that is known of a user.
	// A snapshot is consistent: it holds at one instant. Between snapshots the
	// engine goes on working, and nothing is held up while visit runs. Of users
	// who come or go during the export, and of those forgotten and heard anew,
	// there may be no snapshot or two. Bans that have ended and ended sessions
	// past EndedKeep are left out. An error of visit ends the export and is
	// returned as it is.
	//
	// The export comes in parts, 1 to 65,536 of them: always as many, each with the same
	// users. It begins with the one of the number first, from 0 on. After each it calls
	// done, unless that is nil, with the number of the next and with how many there are;
	// an error of done is as one of visit. So an export that was cut short goes on with
	// the part at hand. first past the last part exports nothing.
	Export(ctx context.Context, now time.Time, first int, visit func(UserSnapshot) error, done func(next, parts int) error) error

	// Import enters snapshots, at most MaxSnapshots, each atomically, and appends
	// no event. (The distributed engine enters one with very many entries in
	// several steps. If that is cut short, the same import may be repeated.)
	// Afterwards every read answers as it did in the engine they come
	// from: ids and tokens, times, and deadlines to the millisecond. A deadline
	// that has passed meanwhile has passed. One that an outage had put off, so
	// that ExpiresAt is later than SeenAt and Idle say, stays put off until the
	// next touch, by the restart grace from now at most; that moves no deadline
	// and no presence but the session's own.
	// Snapshots that are empty are passed over.
	//
	// A snapshot of a user of whom anything is known but ended sessions is
	// refused with CodeConflict, which names the user, and so is one with a
	// session whose id or token is known as live, or whose id as ended; nothing
	// of it is entered. So is one of a user who is banned here. Others of the same
	// call may have been entered then. So
	// they may if a kind past MaxKinds is refused with CodeInvalidArgument.
	//
	// A ban whose Bits are too few to tell the partition holds in all that they
	// leave open, and is listed and lifted as one.
	Import(ctx context.Context, now time.Time, snapshots []UserSnapshot) error
}

// Events is the log of changes.
type Events interface {
	// EventsAfter returns up to Limit events that follow After, oldest first; it may
	// return fewer than there are, and none though there are more behind Next. The
	// log has one order, on all servers and across restarts: its ids ascend as text,
	// and the events of one user come in the order they happened. Once an event was
	// told to anybody, or was the last event or Next, none comes into the log before
	// it. So a reader who goes on at Next, or behind the last event of an answer, on
	// any server, misses none and gets none twice. What is no longer kept is passed
	// over, and Gone says so. The families are kept by themselves: what is gone of one
	// that is not read does not matter. ErrEventsGone if After is of another store, or
	// if the store has lost the event.
	EventsAfter(ctx context.Context, q EventQuery) (EventPart, error)
	// Tail is for readers who must miss nothing. It returns the events that follow
	// After, like EventsAfter. If there is none yet, it waits until there is one, or
	// ctx ends. ErrEventsGone also if some that followed After are no longer kept. With
	// After "" it begins at the first place behind which all is kept.
	Tail(ctx context.Context, q EventQuery) ([]Event, error)
	// EventsByID returns those of at most MaxLimit events that are still kept and that the
	// viewer may see, in the order of the ids. An event that is redacted meanwhile is
	// returned as it is now.
	EventsByID(ctx context.Context, ids []EventID, viewer Viewer) ([]Event, error)
	// LastEvent returns the id of the newest event that the viewer may see, or of a later
	// one that is no longer kept; "" if there is none. Behind it there is nothing that the
	// viewer may see, and nothing is missing.
	LastEvent(ctx context.Context, viewer Viewer) (EventID, error)
}

// Admin is upkeep.
type Admin interface {
	// PutKey stores an API key; CodeConflict past MaxAPIKeys.
	PutKey(ctx context.Context, key APIKey) error
	// Key finds an API key by the hash of its text; CodeNotFound.
	Key(ctx context.Context, hash KeyHash) (APIKey, error)
	// Keys returns all API keys, oldest first.
	Keys(ctx context.Context) ([]APIKey, error)
	// DeleteKey removes an API key by its id; CodeNotFound.
	DeleteKey(ctx context.Context, id string) error

	// Stats describes the engine. To the public, the last-seen times and the
	// sessions of invisible users do not count.
	Stats(ctx context.Context, viewer Viewer) (Stats, error)
	// Ready returns nil if reads and writes work, else why they do not: also if
	// the clock of the ticks was set back by more than a day.
	Ready(ctx context.Context) error
	// Compact reclaims what deletions left behind; after it, an erased id is in
	// no file of the engine.
	Compact(ctx context.Context) error
}
