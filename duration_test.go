package rollcall_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
)

func TestDurationsAreSecondsOrGoTextWithDays(t *testing.T) {
	const day = 24 * time.Hour
	for text, want := range map[string]time.Duration{
		"0": 0, "300": 5 * time.Minute, "5m": 5 * time.Minute, "1h30m": 90 * time.Minute, "1.5s": 1500 * time.Millisecond,
		"90d": 90 * day, "1d12h": 36 * time.Hour, "0d5m": 5 * time.Minute, "1d0s": day, "36500d": 36500 * day, "-5s": -5 * time.Second, "-1": -time.Second,
	} {
		got, err := rollcall.ParseDuration(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{
		"", "d", "5 m", "1.5d", "-1d", "+1d", "1d-1h", "1d+1h", "1d12", "1d1d", "1D", "12h1d", "36501d", "99999999999",
		"9223372036854775807", "1e3", "1.5", "9223372036854775808d", "36500d2000000h", "٣d", "5m\x00",
	} {
		_, err := rollcall.ParseDuration(text)
		require.Error(t, err, text)
	}
}

func FuzzParseDuration(f *testing.F) {
	for _, text := range []string{"5m", "300", "90d", "1d12h", "-5s"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d, err := rollcall.ParseDuration(text)
		if err != nil {
			return
		}
		again, err := rollcall.ParseDuration(d.String())
		require.NoError(t, err)
		require.Equal(t, d, again)
	})
}
