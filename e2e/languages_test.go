package e2e

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTheProgramsOfTheDocsDoTheSame runs the program of each language as it stands in the
// documentation, against a server that knows nobody yet. Each prints what the page says.
func TestTheProgramsOfTheDocsDoTheSame(t *testing.T) {
	t.Parallel()
	const doc = "docs/languages.md"
	text, err := os.ReadFile("../" + doc)
	require.NoError(t, err)
	_, says, _ := strings.Cut(string(text), "```text\n")
	says, _, _ = strings.Cut(says, "```")
	require.Contains(t, says, "session_ended: kicked")

	binary := buildBinary(t)
	for _, c := range []struct{ language, file, program string }{
		{"js", "rollcall.mjs", "node"},
		{"python", "rollcall.py", "python3"},
		{"java", "Rollcall.java", "java"},
		{"php", "rollcall.php", "php"},
	} {
		t.Run(c.language, func(t *testing.T) {
			t.Parallel()
			if _, err := exec.LookPath(c.program); err != nil {
				if os.Getenv("CI") != "" {
					require.Fail(t, "no "+c.program+": the program of the documentation cannot be run")
				}
				t.Skip("NOT TESTED: the program in " + c.language + " of the documentation: there is no " + c.program)
			}
			s := start(t, binary, t.TempDir())
			defer s.kill()
			run := exec.CommandContext(t.Context(), c.program, write(t, t.TempDir(), c.file, codeOf(t, doc, c.language, "new password"))) //nolint:gosec // our own programs
			run.Env = append(os.Environ(), "ROLLCALL_URL="+s.url, "ROLLCALL_KEY="+adminKey)
			out, err := run.CombinedOutput()
			require.NoError(t, err, "%s", out)
			require.Equal(t, says, string(out))
		})
	}
}
