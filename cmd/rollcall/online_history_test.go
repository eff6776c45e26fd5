package main

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
)

// TestHistoryIsDrawnFromZeroAndAGapIsAGap draws a day that rises and falls, with an outage of two
// hours and one without anybody.
func TestHistoryIsDrawnFromZeroAndAGapIsAGap(t *testing.T) {
	here := time.Local
	time.Local = time.UTC //nolint:gosmopolitan // times of the chart are local
	t.Cleanup(func() { time.Local = here })
	to := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	var samples []rollcall.Sample
	for m := range 24 * 60 {
		at := to.Add(time.Duration(m-24*60) * time.Minute)
		n := min(m, 24*60-m)
		switch {
		case at.Hour() == 22 || at.Hour() == 23:
			continue
		case at.Hour() == 4 && m > 600:
			n = 0
		}
		samples = append(samples, rollcall.Sample{At: at, Online: n})
	}
	var out bytes.Buffer
	require.NoError(t, drawHistory(&out, samples, to))
	require.Equal(t, `Users online, 2026-03-01 12:00 to 2026-03-02 12:00
most 720 at 00:00, least 0 at 12:00, mean 312

▁▁▁▁▁▂▂▂▂▂▃▃▃▃▃▄▄▄▄▄▅▅▅▅▅▆▆▆▆▆      █▇▇▇▇▇▆▆▆▆▆▅___▅▄▄▄▄▄▃▃▃▃▃▂▂▂▂▂▁▁▁▁▁
12:00             18:00             00:00             06:00
`, out.String())

	out.Reset()
	require.NoError(t, drawHistory(&out, nil, to))
	require.Equal(t, "There is no sample of the last day yet. One is taken each minute.\n", out.String())
}
