// Package client talks to a Rollcall server over HTTP.
//
// A [Client] has the methods of [rollcall.Roll], with the same names, parameters
// and types, and answers as they do. A program can begin with the library and
// move to a server later, or the other way round.
//
//	c, err := client.New("http://127.0.0.1:8080", client.Options{Key: "rck_…"})
//	s, err := c.Login(ctx, rollcall.Login{User: "alice", Device: "ios"})
//	n, err := c.OnlineCount(ctx, 5*time.Minute)
//
// # Differences
//
// What the key may not do is refused with forbidden. Durations are whole seconds,
// instants whole milliseconds. The server notes the API key as the actor and as
// the scope of retry keys: Kick.Actor, Login.RetryScope, NewWebhook.RetryScope and the
// actor of Ban must be empty. These parts of answers are not sent, and stay zero:
//
//   - Ban: the ids of the sessions it ended; how many is told.
//   - Session.DeviceID, Ban.Key, End.Actor, APIKey.Hash (but for a key just made),
//     APIKey.Configured, Stats.OtherVisits and Stats.ClockOffset.
//   - TouchAll: all of a session but its end's cause.
//
// Leave takes a token. AddFriends sends each friend by itself. If one is refused, those before it
// stand. A kick as a logout needs Kick.Session.
//
// These methods of Roll have no route, and so no counterpart here:
// As (the key's role decides what is seen), Authenticate, ConfigureAdminKey,
// ImportKey, ImportWebhook, BeatKey ([rollcall.LoggedIn] has it), KeyBeatKey, Pseudonym, SecretID, Export,
// Import, Compact, AttendanceSpan, SetPolicies, Tick, NewEventTicket, OpenEventTicket. Those that tell
// the server's time and rules are one request, [Client.Server].
//
// # Retries
//
// A request that failed for the moment is sent again, a few times, with growing
// waits: after status 429 or 503, minding Retry-After, and after a connection
// that failed. A request that would do something else the second time is only
// sent again if it cannot have been carried out: CreateKey, and a kick by filter
// or of all. Every login has an Idempotency-Key, and so has every webhook that is made:
// they are safe to repeat.
//
// # Errors
//
// Every error is a [rollcall.Error], or wraps one, with the code, field and detail
// that the server gave. A server that does not answer is unavailable. If ctx ended,
// errors.Is finds its error too.
package client
