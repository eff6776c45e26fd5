package enginekit

import (
	"encoding/binary"
	"errors"
	"slices"
	"time"

	"github.com/rollcall/rollcall"
)

// causes is how many causes of an end a sample has room for. They are stored by their
// place in rollcall.Causes.
const causes = 7

// Flow counts what happens between two samples.
type Flow struct {
	Logins uint64
	Ends   [causes]uint64 // by cause
	Beats  uint64
}

// AddEnd counts the end of a session.
func (f *Flow) AddEnd(cause rollcall.Cause) {
	if i := slices.Index(causeList, cause); i >= 0 {
		f.Ends[i]++
	}
}

// Add adds what another flow counted.
func (f *Flow) Add(o *Flow) {
	f.Logins += o.Logins
	f.Beats += o.Beats
	for i, n := range o.Ends {
		f.Ends[i] += n
	}
}

// Since returns what was counted since an earlier reading of the same counts. Counts
// that went back, as those of a store that lost its latest writes, count as none.
func (f *Flow) Since(o *Flow) Flow {
	less := func(a, b uint64) uint64 { return max(a, b) - b }
	out := Flow{Logins: less(f.Logins, o.Logins), Beats: less(f.Beats, o.Beats)}
	for i := range f.Ends {
		out.Ends[i] = less(f.Ends[i], o.Ends[i])
	}
	return out
}

var causeList = rollcall.Causes()

// Level is how many there were: of one minute, or of the minutes of an hour.
type Level struct {
	Least, Greatest uint32
	Sum             uint64
}

func level(n int) Level {
	v := uint32(max(0, n))
	return Level{Least: v, Greatest: v, Sum: uint64(v)}
}

func (l *Level) merge(o Level) {
	l.Least, l.Greatest = min(l.Least, o.Least), max(l.Greatest, o.Greatest)
	l.Sum += o.Sum
}

// Sample is a sample as engines store it: of a minute, or of all minutes of an hour that
// have one.
type Sample struct {
	Minute   uint32 // since 1970, in which the minute or hour begins
	Minutes  uint16 // how many minutes it is put together from
	Online   Level
	Sessions Level
	Flow     Flow
}

// MinuteOf returns the number of a minute since 1970; 0 for an instant that no sample
// can be of.
func MinuteOf(ms int64) uint32 {
	minute := ms / time.Minute.Milliseconds()
	if minute <= 0 || minute > 1<<32-1 {
		return 0
	}
	return uint32(minute)
}

// HourOfMinute returns the minute in which the hour of a minute begins.
func HourOfMinute(minute uint32) uint32 { return minute - minute%60 }

// NewSample begins the sample of a minute.
func NewSample(minute uint32, online, sessions int) Sample {
	return Sample{Minute: minute, Minutes: 1, Online: level(online), Sessions: level(sessions)}
}

// Merge adds a whole minute to the sample of its hour. The sample of another hour, or the
// zero value, becomes that of this one.
func (s *Sample) Merge(minute *Sample) {
	hour := HourOfMinute(minute.Minute)
	if s.Minutes == 0 || s.Minute != hour {
		*s = *minute
		s.Minute = hour
		return
	}
	s.Minutes++
	s.Online.merge(minute.Online)
	s.Sessions.merge(minute.Sessions)
	s.Flow.Add(&minute.Flow)
}

// Domain returns the sample as callers get it.
func (s *Sample) Domain() rollcall.Sample {
	mean := func(l Level) int {
		n := uint64(max(1, s.Minutes))
		return int((l.Sum + n/2) / n)
	}
	out := rollcall.Sample{
		At:     TimeOf(int64(s.Minute) * time.Minute.Milliseconds()),
		Online: mean(s.Online), OnlineMin: int(s.Online.Least), OnlineMax: int(s.Online.Greatest),
		Sessions: mean(s.Sessions), SessionsMin: int(s.Sessions.Least), SessionsMax: int(s.Sessions.Greatest),
		Logins: int(s.Flow.Logins), Beats: int(s.Flow.Beats), Ends: make(map[rollcall.Cause]int),
	}
	for i, n := range s.Flow.Ends {
		if n > 0 {
			out.Ends[causeList[i]] = int(n)
		}
	}
	return out
}

// The stored form is of one length: big-endian, the fields in their order.
const (
	flowLen   = 8 * (2 + causes)
	sampleLen = 4 + 2 + 2*(4+4+8) + flowLen
)

var errSample = errors.New("is no sample")

// AppendFlow appends the stored form of a flow.
func AppendFlow(b []byte, f *Flow) []byte {
	b = binary.BigEndian.AppendUint64(b, f.Logins)
	b = binary.BigEndian.AppendUint64(b, f.Beats)
	for _, n := range f.Ends {
		b = binary.BigEndian.AppendUint64(b, n)
	}
	return b
}

// DecodeFlow reads the stored form of a flow.
func DecodeFlow(b []byte) (f Flow, err error) {
	if len(b) != flowLen {
		return f, errSample
	}
	f.Logins, f.Beats = binary.BigEndian.Uint64(b), binary.BigEndian.Uint64(b[8:])
	for i := range f.Ends {
		f.Ends[i] = binary.BigEndian.Uint64(b[16+8*i:])
	}
	return f, nil
}

// Encode returns the stored form of the sample.
func (s *Sample) Encode() []byte {
	b := binary.BigEndian.AppendUint32(make([]byte, 0, sampleLen), s.Minute)
	b = binary.BigEndian.AppendUint16(b, s.Minutes)
	for _, l := range [...]Level{s.Online, s.Sessions} {
		b = binary.BigEndian.AppendUint32(b, l.Least)
		b = binary.BigEndian.AppendUint32(b, l.Greatest)
		b = binary.BigEndian.AppendUint64(b, l.Sum)
	}
	return AppendFlow(b, &s.Flow)
}

// DecodeSample reads the stored form of a sample.
func DecodeSample(b []byte) (s Sample, err error) {
	if len(b) != sampleLen {
		return s, errSample
	}
	s.Minute, s.Minutes = binary.BigEndian.Uint32(b), binary.BigEndian.Uint16(b[4:])
	for i, l := range [...]*Level{&s.Online, &s.Sessions} {
		at := b[6+16*i:]
		l.Least, l.Greatest, l.Sum = binary.BigEndian.Uint32(at), binary.BigEndian.Uint32(at[4:]), binary.BigEndian.Uint64(at[8:])
	}
	if s.Minutes < 1 || s.Minutes > 60 || s.Minute == 0 {
		return s, errSample
	}
	s.Flow, err = DecodeFlow(b[sampleLen-flowLen:])
	return s, err
}

// SampleRange is the minutes in which the samples begin that a question asks for and that
// are kept: from From on, before To.
type SampleRange struct{ From, To uint32 }

// RangeOf returns the range of a question while a minute is under way.
func RangeOf(q rollcall.SampleQuery, underWay uint32) SampleRange {
	line := func(t time.Time) uint32 { // the first minute that does not begin before t
		return uint32(min(max(0, (CeilMilliseconds(t)+59_999)/60_000), 1<<32-1))
	}
	r := SampleRange{From: line(q.From), To: line(q.To)}
	kept, end := int64(underWay)-rollcall.KeptMinutes, underWay
	if q.Step == rollcall.StepHour {
		kept, end = int64(HourOfMinute(underWay))-60*(rollcall.KeptHours-1), HourOfMinute(underWay)+1
	}
	r.From, r.To = max(r.From, uint32(max(0, kept))), min(r.To, end)
	return r
}
