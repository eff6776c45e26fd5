package redis

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTheClockDoesNotGoBackForAReadingThatWasHeldUp(t *testing.T) {
	t.Parallel()
	var h held
	start := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	h.set(start, start)
	require.Equal(t, start.Add(10*time.Second), h.at(start.Add(10*time.Second)))
	require.Equal(t, start.Add(10*time.Second), h.at(start.Add(time.Second)), "it was read long before")
	require.Equal(t, start.Add(11*time.Second), h.at(start.Add(11*time.Second)))
}
