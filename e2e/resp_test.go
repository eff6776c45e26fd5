package e2e

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall/internal/testport"
)

// TestTheClientsOfNodeSpeakRESP runs the npm packages redis and ioredis, as they are, against
// the binary.
func TestTheClientsOfNodeSpeakRESP(t *testing.T) {
	t.Parallel()
	tools := installNodeTools(t, "respclients")
	reserved, err := testport.Reserve()
	require.NoError(t, err)
	port := strconv.Itoa(reserved)
	s := start(t, buildBinary(t), t.TempDir(), "--resp-listen", "127.0.0.1:"+port,
		"--resp-dialect", "users = presence, user:{user}:friends = friends")
	defer s.kill()
	dir := t.TempDir()
	copyFile(t, filepath.Join("respclients", "check.mjs"), filepath.Join(dir, "check.mjs"))
	require.NoError(t, os.Symlink(filepath.Join(string(tools), "node_modules"), filepath.Join(dir, "node_modules")))
	tools.run(t, dir, []string{"RESP_PORT=" + port, "ROLLCALL_KEY=" + adminKey}, "node", "check.mjs")
}
