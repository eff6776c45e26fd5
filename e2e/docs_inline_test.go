package e2e

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestEveryCommandNamedInTheTextExists looks at commands that stand in the text of a
// document, between backticks: what they build or test is there, and rollcall knows
// their verbs and flags. It runs none of them.
func TestEveryCommandNamedInTheTextExists(t *testing.T) {
	t.Parallel()
	binary, help := buildBinary(t), make(map[string]string) // of the verbs asked so far
	named := 0
	for _, name := range append(documentsWithCommands(t), "../CHANGELOG.md", "../SECURITY.md") {
		text, err := os.ReadFile(name) //nolint:gosec // our own files
		require.NoError(t, err)
		prose := regexp.MustCompile("(?ms)^ *```.*?^ *```").ReplaceAllString(string(text), "") //nolint:gocritic // with (?m), ^ is where a line begins
		for _, m := range regexp.MustCompile("`((?:go|rollcall|\\./test\\.sh|\\.ci/run) [^`\n]+)`").FindAllStringSubmatch(prose, -1) {
			named++
			switch words := strings.Fields(m[1]); {
			case words[0] == "rollcall":
				for _, command := range strings.Split(m[1], "|") {
					requireVerb(t, binary, strings.TrimSpace(command), help)
				}
			case words[0] != "go" || strings.Contains(m[1], " ./"):
				requireBuilds(t, m[1])
			}
		}
	}
	require.Greater(t, named, 30, "the documents name commands")
}

// requireVerb expects rollcall to know the verb and the flags of a command.
func requireVerb(t *testing.T, binary, command string, help map[string]string) {
	t.Helper()
	verb := regexp.MustCompile(`^rollcall((?: [a-z]+)*)`).FindStringSubmatch(command)[1]
	if _, asked := help[verb]; !asked {
		out, err := exec.CommandContext(t.Context(), binary, append(strings.Fields(verb), "--help")...).CombinedOutput() //nolint:gosec // our own documents
		require.NoError(t, err, "%s: %s", command, out)
		help[verb] = string(out)
	}
	for _, flag := range regexp.MustCompile(` --[a-z-]+`).FindAllString(command, -1) {
		require.Contains(t, help[verb], strings.TrimSpace(flag), "%s", command)
	}
}
