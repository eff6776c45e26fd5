package e2e

import (
	"debug/elf"
	"testing"

	"github.com/stretchr/testify/require"
)

// largest is what a binary may weigh without its symbols and what debuggers need: 45 MB
// is promised.
// bench/RESULTS.md says what it weighs. If it grows by megabytes at once, most likely
// something reachable looks up methods by name (reflect.Value.MethodByName, templates):
// then the linker keeps all exported methods of all types.
const largest = 44_500_000

// TestTheBinaryStaysSmall adds up what a stripped binary holds, so that none has to be
// linked for it.
func TestTheBinaryStaysSmall(t *testing.T) {
	binary, err := elf.Open(buildBinary(t))
	require.NoError(t, err)
	defer binary.Close()
	var size uint64
	for _, section := range binary.Sections {
		if section.Flags&elf.SHF_ALLOC != 0 && section.Type != elf.SHT_NOBITS {
			size += section.Size
		}
	}
	require.Greater(t, size, uint64(10_000_000), "this is not the server")
	require.Less(t, size, uint64(largest), "the stripped binary is too large")
	t.Logf("%.1f MB of %.1f", float64(size)/1e6, float64(largest)/1e6)
}
