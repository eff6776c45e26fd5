package httpapi_test

import (
	"context"
	"testing"
	"time"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/httpapi"
)

// faulty is an engine that knows API keys and fails at all else as it is told:
// for what a real engine cannot be made to do. Commands it does not have panic.
type faulty struct {
	rollcall.Engine
	keys   map[rollcall.KeyHash]rollcall.APIKey
	passes map[rollcall.PassHash]rollcall.ConsolePass
	err    error
}

func newFaultySite(t testing.TB, change ...func(*httpapi.Options)) (*site, *faulty) {
	t.Helper()
	f := &faulty{keys: map[rollcall.KeyHash]rollcall.APIKey{}, passes: map[rollcall.PassHash]rollcall.ConsolePass{}}
	return newSiteOver(t, f, change...), f
}

func (f *faulty) Configure(context.Context, rollcall.Settings) error { return nil }
func (f *faulty) Flush(context.Context) error                        { return nil }
func (f *faulty) Ready(context.Context) error                        { return f.err }
func (f *faulty) Stats(context.Context, rollcall.Viewer) (rollcall.Stats, error) {
	return rollcall.Stats{}, f.err
}

func (f *faulty) Samples(context.Context, rollcall.SampleQuery) ([]rollcall.Sample, error) {
	return nil, f.err
}

func (f *faulty) PutKey(_ context.Context, key rollcall.APIKey) error {
	f.keys[key.Hash] = key
	return nil
}

func (f *faulty) AppendAudit(_ context.Context, _ time.Time, e rollcall.AuditEntry) (rollcall.AuditEntry, error) {
	e.Seq = 1
	return e, nil
}

func (f *faulty) AuditEntries(context.Context, uint64, int) ([]rollcall.AuditEntry, error) {
	return nil, f.err
}

func (f *faulty) AuditSalt(context.Context, string, bool) (rollcall.AuditSalt, bool, error) {
	return rollcall.AuditSalt{}, true, nil
}

func (f *faulty) Key(_ context.Context, hash rollcall.KeyHash) (rollcall.APIKey, error) {
	key, ok := f.keys[hash]
	if !ok {
		return key, rollcall.NotFound("key")
	}
	return key, nil
}

// Keys is what a stream asks now and then, whichever test has begun it.
func (f *faulty) Keys(context.Context) ([]rollcall.APIKey, error) {
	return nil, rollcall.ErrUnavailable
}

func (f *faulty) PutPass(_ context.Context, _ time.Time, p rollcall.ConsolePass) error {
	f.passes[p.Hash] = p
	return f.err
}

func (f *faulty) Pass(_ context.Context, now time.Time, hash rollcall.PassHash) (rollcall.ConsolePass, error) {
	p, ok := f.passes[hash]
	if !ok || !now.Before(p.ExpiresAt) {
		return p, rollcall.NotFound("pass")
	}
	return p, nil
}

func (f *faulty) ExtendPass(_ context.Context, _ time.Time, hash rollcall.PassHash, expires time.Time) error {
	p := f.passes[hash]
	p.ExpiresAt = expires
	f.passes[hash] = p
	return f.err
}

func (f *faulty) TakePass(ctx context.Context, now time.Time, hash rollcall.PassHash) (rollcall.ConsolePass, error) {
	p, err := f.Pass(ctx, now, hash)
	delete(f.passes, hash)
	return p, err
}

func (f *faulty) Lookup(context.Context, time.Time, rollcall.Ref, rollcall.Viewer) (rollcall.Session, error) {
	if f.err != nil {
		return rollcall.Session{}, f.err
	}
	return rollcall.Session{}, rollcall.NotFound("session")
}

func (f *faulty) CountKnown(context.Context, time.Time, rollcall.Viewer) (int, error) {
	return 0, f.err
}

func (f *faulty) Count(context.Context, time.Time, time.Duration, rollcall.Viewer) (int, error) {
	return 0, f.err
}

func (f *faulty) LastEvent(context.Context, rollcall.Viewer) (rollcall.EventID, error) {
	return "", f.err
}

func (f *faulty) Beat(context.Context, time.Time, []string) error { return f.err }

func (f *faulty) End(context.Context, time.Time, rollcall.EndCommand) (rollcall.EndResult, error) {
	if f.err != nil {
		return rollcall.EndResult{}, f.err
	}
	return rollcall.EndResult{Ended: 500}, nil
}

func (f *faulty) List(context.Context, time.Time, rollcall.SessionQuery) (rollcall.Page[rollcall.Session], error) {
	return rollcall.Page[rollcall.Session]{}, f.err
}

func (f *faulty) Touch(_ context.Context, _ time.Time, refs []rollcall.Ref, _ *rollcall.Policies) ([]rollcall.Touched, error) {
	return make([]rollcall.Touched, len(refs)), f.err
}
