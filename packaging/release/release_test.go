package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestEveryPartHasALicenceThatGoesWithOurs looks at what is linked on each platform, which
// takes no build.
func TestEveryPartHasALicenceThatGoesWithOurs(t *testing.T) {
	t.Chdir("../..")
	for _, platform := range platforms() {
		parts, err := partsOf(t.Context(), platform)
		require.NoError(t, err)
		require.NoError(t, checkLicences(parts), platform)
		require.Greater(t, len(parts), 50)

		ids := make(map[string][]string)
		for _, p := range parts {
			ids[p.system+" "+p.name] = p.ids()
		}
		require.Equal(t, []string{"BSD-3-Clause"}, ids["golang std"])
		require.Equal(t, []string{"MPL-2.0"}, ids["golang github.com/go-sql-driver/mysql"])
		require.Equal(t, []string{"Apache-2.0", "BSD-3-Clause", "MIT"}, ids["golang github.com/klauspost/compress"], "parts of it come from others")
		require.Equal(t, []string{"MIT"}, ids["npm svelte"])

		whole := licences(parts)
		for _, p := range parts {
			for _, text := range p.texts {
				require.True(t, bytes.Contains(whole, bytes.TrimRight([]byte(text.body), "\n")), "%s %s is not there whole", p.name, text.file)
			}
		}
	}
}

// TestThePagesNameWhatTheyHold compares the list that the build of the pages wrote with
// what npm installs for it.
func TestThePagesNameWhatTheyHold(t *testing.T) {
	t.Chdir("../..")
	file, err := os.ReadFile("console/ui/package-lock.json")
	require.NoError(t, err)
	var lock struct {
		Packages map[string]struct{ Version, License string }
	}
	require.NoError(t, json.Unmarshal(file, &lock))
	parts, err := consoleParts()
	require.NoError(t, err)
	for _, p := range parts {
		installed := lock.Packages["node_modules/"+p.name]
		require.Equal(t, installed.Version, p.version, "%s: run console/build.sh", p.name)
		require.Equal(t, []string{installed.License}, p.ids(), p.name)
	}
}

func TestALicenceThatDoesNotGoWithOursIsRefused(t *testing.T) {
	const mit = "MIT License\n\nPermission is hereby granted, free of charge, to any person\nobtaining a copy of this.\n\nTHE SOFTWARE IS PROVIDED “AS IS”.\n"
	for _, refused := range []string{
		"GNU GENERAL PUBLIC LICENSE\nVersion 3, 29 June 2007",
		"GNU LESSER GENERAL PUBLIC LICENSE\n Version 2.1",
		"GNU AFFERO GENERAL\nPUBLIC LICENSE",
		"Business Source License 1.1",
		"Server Side Public License\nVERSION 1",
		mit + "“Commons Clause” License Condition v1.0",
		"You may look at this.",
		"",
	} {
		require.Error(t, checkLicences([]part{{name: "m", version: "v1", texts: []text{{file: "LICENSE", body: refused}}}}), refused)
	}
	require.ErrorContains(t, checkLicences([]part{{name: "m", version: "v1"}}), "m v1 has no licence that is known here")
	two := part{name: "m", version: "v1", texts: []text{{file: "LICENSE", body: mit}, {file: "sub/COPYING", body: "GNU General Public License"}}}
	require.ErrorContains(t, checkLicences([]part{two}), "sub/COPYING is under GPL", "one of two is enough")
	require.NoError(t, checkLicences([]part{{name: "m", version: "v1", texts: two.texts[:1]}}))
}

// TestLicencesOfPartsOfAModuleAreFound has one beside the package, one above it, and one
// that is beside the way.
func TestLicencesOfPartsOfAModuleAreFound(t *testing.T) {
	module := t.TempDir()
	inner := filepath.Join(module, "a", "b")
	require.NoError(t, os.MkdirAll(filepath.Join(module, "other"), 0o700))
	require.NoError(t, os.MkdirAll(inner, 0o700))
	for _, name := range []string{"LICENSE", "NOTICE.txt", "license.go", "a/b/COPYING", "a/b/code.go", "other/LICENSE"} {
		require.NoError(t, os.WriteFile(filepath.Join(module, name), []byte(name), 0o600))
	}
	p := part{}
	require.NoError(t, p.collect(module, inner))
	require.NoError(t, p.collect(module, inner), "a second package of it")
	require.Equal(t, []text{{"LICENSE", "LICENSE"}, {"NOTICE.txt", "NOTICE.txt"}, {"a/b/COPYING", "a/b/COPYING"}}, p.texts)
}

func TestArchivesAreTheSameWhoeverPacks(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 6, 0, time.UTC)
	files := []entry{{name: "rollcall", data: bytes.Repeat([]byte("binary"), 1000), program: true}, {name: "LICENSE", data: []byte("text")}}
	for _, form := range []func(string, []entry, time.Time) ([]byte, error){tarball, zipped} {
		first, err := form("folder", files, at)
		require.NoError(t, err)
		second, err := form("folder", files, at)
		require.NoError(t, err)
		require.Equal(t, first, second)
	}

	packed, err := tarball("folder", files, at)
	require.NoError(t, err)
	plain, err := gzip.NewReader(bytes.NewReader(packed))
	require.NoError(t, err)
	archive := tar.NewReader(plain)
	for _, f := range files {
		head, err := archive.Next()
		require.NoError(t, err)
		require.Equal(t, "folder/"+f.name, head.Name)
		require.Equal(t, f.mode(), head.Mode)
		require.True(t, at.Equal(head.ModTime))
		require.Zero(t, head.Uid)
		data, err := io.ReadAll(archive)
		require.NoError(t, err)
		require.Equal(t, f.data, data)
	}

	packed, err = zipped("folder", files, at)
	require.NoError(t, err)
	other, err := zip.NewReader(bytes.NewReader(packed), int64(len(packed)))
	require.NoError(t, err)
	require.Len(t, other.File, len(files))
	for i, f := range files {
		require.Equal(t, "folder/"+f.name, other.File[i].Name)
		require.True(t, at.Equal(other.File[i].Modified))
		from, err := other.File[i].Open()
		require.NoError(t, err)
		data, err := io.ReadAll(from)
		require.NoError(t, err)
		require.Equal(t, f.data, data)
	}
}
