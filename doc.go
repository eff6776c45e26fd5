// Package rollcall answers, for any application, who is online, since when, from
// where and on which devices, which of a user's friends are online, and who came on
// which days. It ends sessions at once: a kicked session never verifies again.
//
// [Roll] is the service that an application talks to. It validates, chooses
// policies, makes tokens and reads the clock. It keeps what it knows in an
// [Engine]. Package local embeds one in the process:
//
//	engine, err := local.Open("rollcall-data", local.Options{})
//	if err != nil {
//		return err
//	}
//	roll, err := rollcall.New(engine, rollcall.Options{})
//	if err != nil {
//		return err
//	}
//	in, err := roll.Login(ctx, rollcall.Login{User: "alice", Device: "ios"})
//
// Package redis keeps the same in Redis, so that several servers share it. Only the
// first line is another one:
//
//	engine, err := redis.Open(ctx, redis.Options{URL: "redis://10.0.0.5:6379"})
//
// What follows is the same on both:
//
//	s, err := roll.Verify(ctx, rollcall.SessionRef{Token: in.Token})
//	n, err := roll.OnlineCount(ctx, 5*time.Minute)
//	ended, err := roll.Kick(ctx, rollcall.Kick{User: "alice", Reason: "new password"})
//
// Close the Roll first, then the engine. Instants are exact to the millisecond,
// presence to the second. Every instant comes from the Roll's [Clock], never from a
// caller. Every error is an [*Error] with a [Code].
package rollcall
