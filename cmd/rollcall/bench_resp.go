package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/redis/rueidis"

	"github.com/rollcall/rollcall"
)

// respBeater sends beats with an ordinary client of Redis.
type respBeater struct{ client rueidis.Client }

// Beat implements [loadgen.Beater].
func (r respBeater) Beat(ctx context.Context, users ...string) error {
	err := r.client.Do(ctx, r.client.B().Arbitrary("BEAT").Args(users...).Build()).Error()
	if answer, ok := rueidis.IsRedisErr(err); ok {
		// ERR code detail
		if words := strings.SplitN(answer.Error(), " ", 3); len(words) == 3 {
			return &rollcall.Error{Code: rollcall.Code(words[1]), Detail: words[2]}
		}
	}
	return err
}

// openRESP opens connections to the RESP of the server.
func (b *bench) openRESP(a *app, address string) error {
	c, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress: []string{address}, Username: "bench", Password: b.place.key, ClientName: "rollcall-bench",
		DisableCache: true, DisableRetry: true, ForceSingleClient: true,
	})
	if err == nil {
		b.closers = append(b.closers, func() error { c.Close(); return nil })
		err = c.Do(a.ctx, c.B().Ping().Build()).Error()
	}
	if err != nil {
		return fmt.Errorf("%s does not answer by RESP (%w)\nIs it the resp.listen of %s?", address, err, b.place.server)
	}
	b.Beater, b.Where = respBeater{c}, address
	return nil
}
