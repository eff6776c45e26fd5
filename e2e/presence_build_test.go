package e2e

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestThePresenceScriptIsWhatItsSourceGives(t *testing.T) {
	t.Parallel()
	const source = "../httpapi/presencejs"
	tools := installNodeTools(t, source)
	dir := t.TempDir()
	for _, name := range []string{"presence.ts", "tsconfig.json", "package.json"} {
		copyFile(t, filepath.Join(source, name), filepath.Join(dir, name))
	}
	require.NoError(t, os.Symlink(filepath.Join(string(tools), "node_modules"), filepath.Join(dir, "node_modules")))
	tools.run(t, dir, nil, "npm", "run", "check")
	tools.run(t, dir, nil, "npm", "run", "build")

	committed, err := os.ReadFile(filepath.Join(source, "presence.js"))
	require.NoError(t, err)
	built, err := os.ReadFile(filepath.Join(dir, "presence.js"))
	require.NoError(t, err)
	require.Equal(t, string(built), string(committed), "run \"npm ci && npm run build\" in httpapi/presencejs")
}
