package redis

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/enginekit"
)

// Samples of minutes and hours.
//
// Scripts count what happens in their partition (the fields flow and beats of its state),
// and never begin anew. So no server has counts of its own that could be lost with it, and
// what happened in a minute is the difference of two readings.
//
// Samples stand in one hash, rc:samples, in rings: field m and the place of a minute, field
// h and that of an hour. A new sample takes the place of the oldest, so nothing has to be
// removed, however long no server ran. The field minute has the minute whose sample is
// under way, counts what the counters said when it began.
//
// In a new minute each server asks for the right to take the sample (sample_claim.lua). The
// one that gets it counts, and stores all at once: the sample under way, now whole; its
// hour with it; the new sample; the counters. sample_put.lua refuses that if another server
// was faster, so no minute is in its hour twice. If the server dies in between, another one
// takes the sample some seconds later.

const (
	sampleLease = 5 * time.Second
	sampleStep  = 500 // samples that one command reads

	// A minute more than are kept, for the one under way.
	minuteRing = rollcall.KeptMinutes + 1
	hourRing   = rollcall.KeptHours
)

func minuteField(minute uint32) string { return "m" + strconv.Itoa(int(minute%minuteRing)) }

func hourField(minute uint32) string { return "h" + strconv.Itoa(int(minute/60%hourRing)) }

func minuteText(minute uint32) string { return strconv.FormatUint(uint64(minute), 10) }

// sampleFields reads some fields of the samples; "" for one that is not there.
func (e *Engine) sampleFields(ctx context.Context, fields ...string) ([]string, error) {
	msg, err := e.one(ctx, 0, e.sampleCall(fields))
	if err != nil {
		return nil, err
	}
	return textsOf(msg, len(fields))
}

func (e *Engine) sampleCall(fields []string) call {
	return plainCall(func() rueidis.Completed {
		return e.client.B().Hmget().Key(e.key("samples")).Field(fields...).Build()
	})
}

func textsOf(msg rueidis.RedisMessage, n int) ([]string, error) {
	values, err := msg.ToArray()
	if err != nil || len(values) != n {
		return nil, damaged("the samples")
	}
	out := make([]string, n)
	for i, v := range values {
		if !v.IsNil() {
			out[i], _ = v.ToString()
		}
	}
	return out, nil
}

// sample takes the sample of the minute, unless that has been done.
func (e *Engine) sample(ctx context.Context, at time.Time) error {
	minute := enginekit.MinuteOf(at.UnixMilli())
	if minute == 0 || e.sampled.Load() == minute {
		return nil
	}
	msg, err := e.one(ctx, 0, keyCall(e.key("samples"), &e.scripts.sampleClaim, minuteText(minute), e.holder,
		strconv.FormatInt(at.UnixMilli(), 10), strconv.FormatInt(sampleLease.Milliseconds(), 10)))
	if err != nil {
		return err
	}
	answer, err := msg.ToString()
	if err != nil {
		return damaged("the samples")
	}
	switch answer {
	case "busy": // the next tick asks again
		return nil
	case "taken":
		e.sampled.Store(minute)
		return nil
	}
	underWay, err := strconv.ParseUint(answer, 10, 32)
	if err != nil {
		return damaged("the samples")
	}
	if err := e.takeSample(ctx, at, uint32(underWay), minute); err != nil {
		return err
	}
	e.sampled.Store(minute)
	return nil
}

// takeSample ends the sample under way, if there is one, and begins that of a minute.
func (e *Engine) takeSample(ctx context.Context, at time.Time, underWay, minute uint32) error {
	online, err := e.Count(ctx, at, e.settings.Window, rollcall.ViewerPublic)
	if err != nil {
		return err
	}
	sessions, err := e.List(ctx, at, rollcall.SessionQuery{Viewer: rollcall.ViewerPublic})
	if err != nil {
		return err
	}
	counts, err := e.flowCounts(ctx)
	if err != nil {
		return err
	}
	next := enginekit.NewSample(minute, online, sessions.Total)
	fields := []string{
		minuteText(underWay), "minute", minuteText(minute),
		"counts", string(enginekit.AppendFlow(nil, &counts)), minuteField(minute), string(next.Encode()),
	}
	ended, err := e.endedSample(ctx, underWay, &counts)
	if err != nil {
		return err
	}
	_, err = e.one(ctx, 0, keyCall(e.key("samples"), &e.scripts.samplePut, append(fields, ended...)...))
	return err
}

// endedSample returns the fields of the sample under way and of its hour, now that it is
// whole. What cannot be read is left out: the sample of a minute is not worth that no
// later one is taken.
func (e *Engine) endedSample(ctx context.Context, underWay uint32, counts *enginekit.Flow) ([]string, error) {
	stored, err := e.sampleFields(ctx, "counts", minuteField(underWay), hourField(underWay))
	if err != nil || underWay == 0 {
		return nil, err
	}
	whole, ok := wholeSample(stored[0], stored[1], underWay, counts)
	if !ok {
		return nil, nil
	}
	hour, badHour := enginekit.DecodeSample([]byte(stored[2]))
	if badHour != nil {
		hour = enginekit.Sample{}
	}
	hour.Merge(&whole)
	return []string{minuteField(underWay), string(whole.Encode()), hourField(underWay), string(hour.Encode())}, nil
}

// wholeSample makes the sample of a minute whole: from what the counters said when it began,
// and what they say now. It returns false if one of the two cannot be read.
func wholeSample(counts, sample string, minute uint32, now *enginekit.Flow) (enginekit.Sample, bool) {
	before, err := enginekit.DecodeFlow([]byte(counts))
	if err != nil {
		return enginekit.Sample{}, false
	}
	whole, err := enginekit.DecodeSample([]byte(sample))
	if err != nil || whole.Minute != minute {
		return enginekit.Sample{}, false
	}
	whole.Flow = now.Since(&before)
	return whole, true
}

// flowCounts sums what all partitions have counted.
func (e *Engine) flowCounts(ctx context.Context) (enginekit.Flow, error) {
	calls := make([]call, len(e.keyPrefixes))
	for p := range calls {
		calls[p] = plainCall(func() rueidis.Completed {
			return e.client.B().Hmget().Key(e.states[p]).Field("flow", "beats").Build()
		})
	}
	var sum enginekit.Flow
	out, err := e.do(ctx, 0, calls...)
	if err != nil {
		return sum, err
	}
	for _, msg := range out {
		fields, err := textsOf(msg, 2)
		if err != nil {
			return sum, err
		}
		counts, err := unpackFlow(fields[0], fields[1])
		if err != nil {
			return sum, err
		}
		sum.Add(&counts)
	}
	return sum, nil
}

// unpackFlow reads what scripts count: logins and ends by cause, and beats. Nothing that
// was counted yet is "".
func unpackFlow(flow, beats string) (f enginekit.Flow, err error) {
	if flow != "" {
		if f, err = enginekit.DecodeFlow([]byte(flow)); err != nil {
			return f, damaged("the state of a partition")
		}
	}
	if beats != "" {
		if f.Beats, err = strconv.ParseUint(beats, 10, 64); err != nil {
			return f, damaged("the state of a partition")
		}
	}
	return f, nil
}

// Samples implements [rollcall.Samples].
func (e *Engine) Samples(ctx context.Context, q rollcall.SampleQuery) ([]rollcall.Sample, error) {
	stands, err := e.sampleFields(ctx, "minute")
	if err != nil {
		return nil, err
	}
	underWay, _ := strconv.ParseUint(stands[0], 10, 32) // 0 if there was none yet
	r := enginekit.RangeOf(q, uint32(underWay))
	field, step := minuteField, uint32(1)
	if q.Step == rollcall.StepHour {
		field, step = hourField, 60
		r.From = (r.From + step - 1) / step * step
	}

	// The minutes or hours there may be, some in a command.
	var calls []call
	var begins []uint32
	for from := r.From; from < r.To; {
		var fields []string
		for ; from < r.To && len(fields) < sampleStep; from += step {
			fields, begins = append(fields, field(from)), append(begins, from)
		}
		calls = append(calls, e.sampleCall(fields))
	}
	messages, err := e.doInTurn(ctx, 0, calls, 4, func(int) int { return 1 })
	if err != nil {
		return nil, err
	}
	return samplesIn(messages, begins)
}

// samplesIn reads the samples that begin in some minutes. A place with another minute's has
// none: in a ring it is that of an older or a newer one too.
func samplesIn(messages []rueidis.RedisMessage, begins []uint32) ([]rollcall.Sample, error) {
	var out []rollcall.Sample
	for _, msg := range messages {
		values, err := textsOf(msg, min(sampleStep, len(begins)))
		if err != nil {
			return nil, err
		}
		for i, v := range values {
			if v == "" {
				continue
			}
			s, err := enginekit.DecodeSample([]byte(v))
			if err != nil {
				return nil, damaged(fmt.Sprintf("the sample of minute %d", begins[i]))
			}
			if s.Minute == begins[i] {
				out = append(out, s.Domain())
			}
		}
		begins = begins[len(values):]
	}
	return out, nil
}
