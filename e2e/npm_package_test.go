package e2e

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// npmPackage is the folder of the client for JavaScript and TypeScript.
const npmPackage = "../clients/typescript"

// TestTheNPMPackage makes the package rollcall of its source and of the document that
// the binary serves, and runs its tests against the binary.
//
// What compilers make depends on what they are given alone: a package that was built
// and checked once is kept for the next run.
func TestTheNPMPackage(t *testing.T) {
	t.Parallel()
	tools := installNodeTools(t, npmPackage)
	s := start(t, buildBinary(t), t.TempDir())
	defer s.kill()
	dir := t.TempDir()
	sources := copyPackage(t, dir)
	s.save("openapi.json", filepath.Join(dir, "openapi.json"))
	require.NoError(t, os.Symlink(filepath.Join(string(tools), "node_modules"), filepath.Join(dir, "node_modules")))

	kept := filepath.Join(string(tools), "built", tools.sum(t, dir, append(sources, "openapi.json")))
	built := filepath.Join(dir, "dist")
	if !fileExists(kept) || os.CopyFS(built, os.DirFS(kept)) != nil {
		require.NoError(t, os.RemoveAll(built))
		tools.buildPackage(t, dir)
		if err := keep(built, kept); err != nil {
			t.Log("the next run has to build again:", err)
		}
	}
	tools.run(t, dir, []string{"ROLLCALL_URL=" + s.url, "ROLLCALL_KEY=" + adminKey}, "npm", "test")
}

// copyPackage copies what is kept of the package, without what was built or installed
// beside it, and returns the names of the files.
func copyPackage(t *testing.T, dir string) []string {
	t.Helper()
	var names []string
	require.NoError(t, filepath.WalkDir(npmPackage, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(npmPackage, path)
		switch {
		case err != nil:
			return err
		case entry.IsDir() && slices.Contains([]string{"node_modules", "dist", filepath.Join("src", "api")}, name):
			return filepath.SkipDir
		case entry.IsDir():
			return os.MkdirAll(filepath.Join(dir, name), 0o750)
		}
		copyFile(t, path, filepath.Join(dir, name))
		names = append(names, name)
		return nil
	}))
	return names
}

// buildPackage generates, compiles and checks the package in a directory: its types as
// its users see them, its manifest, and what would be published.
func (n nodeTools) buildPackage(t *testing.T, dir string) {
	t.Helper()
	n.run(t, dir, []string{"ROLLCALL_OPENAPI=openapi.json"}, "npm", "run", "generate")
	n.run(t, dir, nil, "npm", "run", "build")
	n.run(t, dir, nil, "npm", "run", "check")
	n.run(t, dir, nil, "npm", "run", "lint")

	printed := n.run(t, dir, nil, "npm", "pack", "--dry-run", "--json", "--loglevel=error")
	_, list, _ := strings.Cut(printed, "[\n") // what npm warns of stands before
	var packed []struct{ Files []struct{ Path string } }
	require.NoError(t, json.Unmarshal([]byte("["+list), &packed), "%s", printed)
	require.Len(t, packed, 1)
	var beside []string
	for _, file := range packed[0].Files {
		if !strings.HasPrefix(file.Path, "dist/") {
			beside = append(beside, file.Path)
		}
	}
	require.ElementsMatch(t, []string{"LICENSE", "README.md", "package.json"}, beside)
	for _, name := range []string{"index", "presence", "webhook", "api/index"} {
		require.FileExists(t, filepath.Join(dir, "dist", name+".js"))
		require.FileExists(t, filepath.Join(dir, "dist", name+".d.ts"))
	}
}

func TestTheNPMPackageHasNoDependenciesAndTheLicenceOfTheProject(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(npmPackage, "package.json"))
	require.NoError(t, err)
	var manifest map[string]any
	require.NoError(t, json.Unmarshal(text, &manifest))
	for _, kind := range []string{"dependencies", "peerDependencies", "optionalDependencies", "bundledDependencies"} {
		require.NotContains(t, manifest, kind)
	}
	require.Equal(t, "Apache-2.0", manifest["license"])
	ours, err := os.ReadFile("../LICENSE")
	require.NoError(t, err)
	theirs, err := os.ReadFile(filepath.Join(npmPackage, "LICENSE"))
	require.NoError(t, err)
	require.Equal(t, string(ours), string(theirs), "npm packs no file from outside of the package's folder")
}
