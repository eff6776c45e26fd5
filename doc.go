// Package rollcall answers, for any application, who is online, since when,
// from where, on which devices, which of a user's friends are, and who came on
// which days; and it shows people out: a kicked session is over at once.
//
// The package holds the domain. [Roll] is the service an application talks to;
// it validates, resolves policies, makes tokens and reads the clock. What it
// knows it keeps in an [Engine]: package local embeds one in the process.
//
//	engine, err := local.Open("rollcall-data", local.Options{})
//	roll, err := rollcall.New(engine, rollcall.Options{})
//	s, err := roll.Login(ctx, rollcall.Login{User: "alice", Device: "ios"})
//	n, err := roll.OnlineCount(ctx, 5*time.Minute)
//
// Instants are exact to the millisecond, presence to the second; every instant
// comes from the Roll's [Clock], never from a caller.
package rollcall
