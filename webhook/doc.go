// Package webhook posts events to the addresses that administrators have given, as
// Standard Webhooks describes it (https://www.standardwebhooks.com).
//
// # A message
//
// A message is a POST with three headers: webhook-id, webhook-timestamp, and
// webhook-signature, which is "v1," and the base64 of HMAC-SHA-256 over
// "id.timestamp.body". For a day after a rotation it has a signature of either secret. The
// body is
//
//	{"type": "session.ended", "timestamp": "2026-02-03T04:05:06.789Z", "data": {…the event…}}
//
// The type is that of the event. A batch has the type "events" and data.events. A message
// of the type "reset" says that events before it are missing, and data.reason why. The id
// is that of the event, and stays the same however often and from whichever server the
// message is sent: it tells repeats apart. A message of a replay has "replay".
//
// # The queue
//
// The problem: a receiver may be away for days, and a server may die at any moment. No
// event may be left out without a word, those of one user must come in order, and nothing
// may grow without a bound.
//
// The log of events is the queue. What is kept of a webhook is a position in the log, and
// the messages up to it that are not delivered yet: the parked ones, which hold at most
// [rollcall.MaxWebhookParked] events. When there is no room for more, nothing is read until
// there is. If the log no longer has what follows the position, or an event that is parked,
// the receiver gets a reset, and then what is still kept. Only the families of events matter
// that the webhook may be for. What goes while the rest is read belongs to the same gap, up to
// where the log ended when it was found: one reset tells of all of it.
//
// The invariant: every event up to the position has been delivered, is parked, or is none
// of the webhook's. So whatever state was saved last, going on from it leaves nothing out.
//
//	1 take the lease of the webhook, and load its state
//	2 read events behind the position: park them, move the position
//	3 send what is due, unless a message before it has one of its users
//	4 remove what was delivered, put off what was not
//	5 save the state, at the latest a second after it has changed
//
// A batch is saved before it is sent the first time, so that a repeat has the same id.
//
// | the server dies after step | its successor |
// | --- | --- |
// | 1, 2 | reads the same events again |
// | 3, 4 | sends again what was delivered since the state was saved |
// | 5 | sends nothing again |
//
// # A receiver that fails
//
// A message that failed is tried again after 5 s and then twice as long each time, up to an
// hour. One that fails 72 hours after it was read is given up, and a reset says so: so what
// waits behind it for the same user has one attempt left when its own 72 hours are over.
//
// A receiver may fail for some users' events alone, which then fill the room for parked
// events. That looks like a receiver that is away. So the first event of a user of whom
// nothing waits is sent before its turn. If it is not taken, it waits for its turn, and the
// next user's is tried, within the waits between attempts. If one is taken, the receiver is
// not away, and for ten minutes room is made. It is made of users whose first message has
// failed five times since. Of the one with the most messages the newer half is given up, or
// the first message if it is all, and so on until 100 events have gone. A reset says so; a
// batch goes with all that is in it. As long as nobody else's event waits in the log, or none
// is taken, nothing is given up but by the 72 hours.
//
// The state notes what was sent ahead, 100 events at most: what was taken is passed over in
// its turn. In batches it is a batch of its own, then and in its turn, and so has one id.
//
// A message goes to the webhook as it is when the message is sent: what it is not for any
// more, or must not be told, is left out without a reset. Retry-After puts all messages of
// the webhook off, which the state notes. A new address is tried at once. After ten failures
// without a success one message at a time is tried, up to ten minutes apart: the others stay
// in the log. The answer 410 disables the webhook, and so do five days with nothing but
// failures.
package webhook
