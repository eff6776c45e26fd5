package udpbeat

// Reason is why a datagram, or a beat in it, did not count.
type Reason uint8

// The reasons.
const (
	Malformed       Reason = iota // not a datagram of this protocol
	Stale                         // its seconds are over 60 from the server's clock
	Unauthenticated               // its MAC is not the sender's
	Replayed                      // its counter was accepted before, or is too old to tell
	RateLimited                   // its session sent more than 10 in this second
	Refused                       // its API key was revoked, has expired or may only read
	Ended                         // its session has ended, or was never there
	Overloaded                    // the engine did not keep up
	Unavailable                   // the engine failed
	reasons
)

var reasonNames = [reasons]string{
	"malformed", "stale", "unauthenticated", "replayed", "rate_limited", "refused", "ended", "overloaded", "unavailable",
}

// String returns the reason as metrics name it.
func (r Reason) String() string { return reasonNames[r] }

// Reasons returns all reasons.
func Reasons() []Reason {
	all := make([]Reason, reasons)
	for i := range all {
		all[i] = Reason(i)
	}
	return all
}
