package directory_test

import (
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall/internal/directory"
)

func TestParseNumberBounds(t *testing.T) {
	for text, want := range map[string]uint64{
		"0": 0, "7": 7, "10": 10, "1234567": 1234567, "12345678": 12345678,
		"123456789": 123456789, "1234567890123456": 1234567890123456,
		"12345678901234567": 12345678901234567, "9223372036854775807": math.MaxInt64,
	} {
		v, ok := directory.ParseNumber(text)
		require.True(t, ok, text)
		require.Equal(t, want, v, text)
	}
	for _, text := range []string{
		"", "00", "007", "+7", "-7", " 7", "7 ", "1e3", "0x1", "9223372036854775808",
		"9999999999999999999", "18446744073709551615", "18446744073709551616",
		"٣", "1234567\x00", "12345678/", ":2345678", strings.Repeat("1", 128),
	} {
		_, ok := directory.ParseNumber(text)
		require.False(t, ok, "%q", text)
	}
}

func TestParseNumberRejectsAnyOtherByteAnywhere(t *testing.T) {
	for length := 1; length <= 19; length++ {
		good := []byte(strings.Repeat("1", length))
		for at := range good {
			for c := range 256 {
				good[at] = byte(c)
				text := string(good)
				_, ok := directory.ParseNumber(text)
				require.Equal(t, canonical(text), ok, "%q", text)
			}
			good[at] = '1'
		}
	}
}

// canonical says by the standard library what ParseNumber should accept.
func canonical(text string) bool {
	v, err := strconv.ParseUint(text, 10, 63)
	return err == nil && strconv.FormatUint(v, 10) == text
}

func FuzzParseNumber(f *testing.F) {
	for _, seed := range []string{"", "0", "007", "42", "12345678", "1234567890", "9223372036854775807", "9223372036854775808", "alice"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		v, ok := directory.ParseNumber(text)
		if ok != canonical(text) {
			t.Fatalf("ParseNumber(%q) = %d, %v", text, v, ok)
		}
		if ok && strconv.FormatUint(v, 10) != text {
			t.Fatalf("ParseNumber(%q) = %d", text, v)
		}
		v %= 1 << 63
		if back, ok := directory.ParseNumber(strconv.FormatUint(v, 10)); !ok || back != v {
			t.Fatalf("%d came back as %d, %v", v, back, ok)
		}
	})
}

func BenchmarkParseNumber(b *testing.B) {
	for _, text := range []string{"1234567", "12345678", "1234567890", "1234567890123456789", "user-1234567890"} {
		b.Run(text, func(b *testing.B) {
			for b.Loop() {
				directory.ParseNumber(text)
			}
		})
	}
}
