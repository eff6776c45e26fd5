package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// command is the package that is released.
const command = "github.com/rollcall/rollcall/cmd/rollcall"

// platforms are those that a release has binaries for: the system and the processor.
func platforms() []string {
	return []string{"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64", "windows/amd64", "windows/arm64"}
}

// release is what is made, and of what.
type release struct {
	out       string
	version   string
	time      time.Time
	platforms []string
	sums      bytes.Buffer // of the files so far, as sha256sum writes them
}

// make empties the folder and fills it.
func (r *release) make(ctx context.Context) error {
	for _, p := range r.platforms {
		if !slices.Contains(platforms(), p) {
			return fmt.Errorf("%s is no platform of a release: these are %s", p, strings.Join(platforms(), " "))
		}
	}
	if err := os.RemoveAll(r.out); err != nil {
		return err
	}
	if err := os.MkdirAll(r.out, 0o750); err != nil {
		return err
	}
	for _, p := range r.platforms {
		fmt.Fprintln(os.Stderr, "release:", p)
		if err := r.pack(ctx, p); err != nil {
			return fmt.Errorf("%s: %w", p, err)
		}
	}
	fmt.Print(r.sums.String())
	return os.WriteFile(filepath.Join(r.out, "SHA256SUMS"), r.sums.Bytes(), 0o600)
}

// pack makes the files of one platform.
func (r *release) pack(ctx context.Context, platform string) error {
	// What is linked and its licences come first: a release that may not be published
	// fails before the minutes that a build takes.
	parts, err := partsOf(ctx, platform)
	if err != nil {
		return err
	}
	if err := checkLicences(parts); err != nil {
		return err
	}
	binary, err := r.build(ctx, platform)
	if err != nil {
		return err
	}
	if err := sameModules(binary, parts); err != nil {
		return err
	}

	name := "rollcall_" + r.version + "_" + strings.ReplaceAll(platform, "/", "_")
	files, err := r.contents(platform, binary, parts)
	if err != nil {
		return err
	}
	form, extension := tarball, ".tar.gz"
	if strings.HasPrefix(platform, "windows/") {
		form, extension = zipped, ".zip"
	}
	packed, err := form(name, files, r.time)
	if err != nil {
		return err
	}
	if err := r.write(name+extension, packed); err != nil {
		return err
	}
	listed, err := bill(r, platform, sum(binary), parts)
	if err != nil {
		return err
	}
	return r.write(name+".cdx.json", listed)
}

// build returns the binary of a platform: static, with the time zones, and without paths
// of this machine or an id of this build.
func (r *release) build(ctx context.Context, platform string) ([]byte, error) {
	dir, err := os.MkdirTemp("", "rollcall-release-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }() // only in the way
	path := filepath.Join(dir, "rollcall")
	_, err = output(ctx, environ(platform), "go", "build", "-trimpath", "-buildvcs=false", "-tags", tags,
		"-ldflags=-s -w -buildid= -X main.stamped="+r.version, "-o", path, command)
	if err != nil {
		return nil, err
	}
	return os.ReadFile(path) //nolint:gosec // as it was built
}

// tags holds the time zones in the binary, as Windows and small images have none.
const tags = "timetzdata"

// environ is what the Go command has to know of a platform.
func environ(platform string) []string {
	system, processor, _ := strings.Cut(platform, "/")
	return []string{"CGO_ENABLED=0", "GOOS=" + system, "GOARCH=" + processor, "GOAMD64=v1", "GOARM64=v8.0"}
}

// contents are the files of an archive.
func (*release) contents(platform string, binary []byte, parts []part) ([]entry, error) {
	name := "rollcall"
	if strings.HasPrefix(platform, "windows/") {
		name += ".exe"
	}
	files := []entry{{name: name, data: binary, program: true}}
	for _, name := range []string{"LICENSE", "NOTICE", "README.md", "README.zh-CN.md"} {
		text, err := os.ReadFile(name) //nolint:gosec // one of these
		if err != nil {
			return nil, err
		}
		files = append(files, entry{name: name, data: text})
	}
	return append(files, entry{name: "LICENCES-OF-OTHERS.txt", data: licences(parts)}), nil
}

// write writes one file of the release and notes its checksum.
func (r *release) write(name string, data []byte) error {
	fmt.Fprintf(&r.sums, "%s  %s\n", sum(data), name)
	return os.WriteFile(filepath.Join(r.out, name), data, 0o600)
}

func sum(data []byte) string {
	s := sha256.Sum256(data)
	return hex.EncodeToString(s[:])
}
