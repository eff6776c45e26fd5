package e2e

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestThePresenceScriptIsWhatItsSourceGives builds the script anew. Its source is a
// module of the npm package, which the script imports by where it lies.
func TestThePresenceScriptIsWhatItsSourceGives(t *testing.T) {
	t.Parallel()
	const script, module = "httpapi/presencejs", "clients/typescript/src"
	tools := installNodeTools(t, filepath.Join("..", script))
	root := t.TempDir()
	dir := filepath.Join(root, script)
	for _, folder := range []string{script, module} {
		require.NoError(t, os.MkdirAll(filepath.Join(root, folder), 0o750))
	}
	for _, name := range []string{script + "/presence.ts", script + "/tsconfig.json", script + "/package.json", module + "/presence.ts"} {
		copyFile(t, filepath.Join("..", name), filepath.Join(root, name))
	}
	require.NoError(t, os.Symlink(filepath.Join(string(tools), "node_modules"), filepath.Join(dir, "node_modules")))
	tools.run(t, dir, nil, "npm", "run", "check")
	tools.run(t, dir, nil, "npm", "run", "build")

	committed, err := os.ReadFile(filepath.Join("..", script, "presence.js"))
	require.NoError(t, err)
	built, err := os.ReadFile(filepath.Join(dir, "presence.js"))
	require.NoError(t, err)
	require.Equal(t, string(built), string(committed), "run \"npm ci && npm run build\" in "+script)
}
