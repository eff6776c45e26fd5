package main

import (
	"bytes"
	"context"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// part is what others wrote and the binary holds: a module of Go, Go itself, or a package
// of npm in the pages of the console.
type part struct {
	system        string // golang or npm
	name, version string
	texts         []text
}

// text is a licence of a part, or a notice that goes with it.
type text struct {
	file string
	body string
}

// bundled is what npm packages the pages of the console hold, as vite.config.ts has it
// written.
const bundled = "console/dist/licences.json"

// partsOf lists what the binary of a platform holds, by name, without building it.
func partsOf(ctx context.Context, platform string) ([]part, error) {
	out, err := output(ctx, environ(platform), "go", "list", "-deps", "-tags", tags, "-json=Dir,Standard,Module", command)
	if err != nil {
		return nil, err
	}
	found := make(map[string]*part)
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var listed struct {
			Dir      string
			Standard bool
			Module   *struct {
				Path, Version, Dir string
				Main               bool
			}
		}
		if err := decoder.Decode(&listed); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		m := listed.Module
		if listed.Standard || m == nil || m.Main {
			continue
		}
		p := found[m.Path]
		if p == nil {
			p = &part{system: "golang", name: m.Path, version: m.Version}
			found[m.Path] = p
		}
		if err := p.collect(m.Dir, listed.Dir); err != nil {
			return nil, err
		}
	}
	var parts []part
	for _, p := range found {
		parts = append(parts, *p)
	}
	itself, err := goItself(ctx)
	if err != nil {
		return nil, err
	}
	pages, err := consoleParts()
	if err != nil {
		return nil, err
	}
	parts = append(append(parts, itself), pages...)
	slices.SortFunc(parts, func(a, b part) int { return strings.Compare(a.system+a.name, b.system+b.name) })
	return parts, nil
}

// legal matches the names that files with licences and notices have.
var legal = regexp.MustCompile(`(?i)^(licen[cs]e|unlicense|copying|copyright|notice|patents|third[-_]party)([-_.].*)?$`)

// collect adds the texts of the folder of a package and of those above it, up to the
// module's: a part of a module may come from somebody else.
func (p *part) collect(module, folder string) error {
	for ; ; folder = filepath.Dir(folder) {
		entries, err := os.ReadDir(folder)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if e.IsDir() || !legal.MatchString(e.Name()) || filepath.Ext(e.Name()) == ".go" {
				continue
			}
			if err := p.add(module, filepath.Join(folder, e.Name())); err != nil {
				return err
			}
		}
		if folder == module {
			break
		}
	}
	slices.SortFunc(p.texts, func(a, b text) int { return strings.Compare(a.file, b.file) })
	return nil
}

// add adds one text, once.
func (p *part) add(module, path string) error {
	name, err := filepath.Rel(module, path)
	if err != nil {
		return err
	}
	name = filepath.ToSlash(name)
	if slices.ContainsFunc(p.texts, func(t text) bool { return t.file == name }) {
		return nil
	}
	body, err := os.ReadFile(path) //nolint:gosec // of the module cache
	if err != nil {
		return err
	}
	p.texts = append(p.texts, text{file: name, body: string(body)})
	return nil
}

// goItself is the standard library, with the version that builds.
func goItself(ctx context.Context) (part, error) {
	out, err := output(ctx, nil, "go", "env", "GOROOT", "GOVERSION")
	if err != nil {
		return part{}, err
	}
	root, version, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	p := part{system: "golang", name: "std", version: strings.TrimPrefix(version, "go")}
	for _, name := range []string{"LICENSE", "PATENTS"} {
		if err := p.add(root, filepath.Join(root, name)); err != nil {
			return part{}, fmt.Errorf("the licence of Go: %w", err)
		}
	}
	return p, nil
}

// consoleParts are the packages of npm in the pages of the console.
func consoleParts() ([]part, error) {
	list, err := os.ReadFile(bundled)
	if err != nil {
		return nil, err
	}
	var packages []struct{ Name, Version, Text string }
	if err := json.Unmarshal(list, &packages); err != nil {
		return nil, fmt.Errorf("%s: %w", bundled, err)
	}
	if len(packages) == 0 {
		return nil, fmt.Errorf("%s names no package", bundled)
	}
	var out []part
	for _, p := range packages {
		out = append(out, part{system: "npm", name: p.Name, version: p.Version, texts: []text{{file: "LICENSE", body: p.Text}}})
	}
	return out, nil
}

// sameModules expects that a binary holds the modules that were listed.
func sameModules(binary []byte, parts []part) error {
	info, err := buildinfo.Read(bytes.NewReader(binary))
	if err != nil {
		return fmt.Errorf("the binary: %w", err)
	}
	linked, listed := make(map[string]bool), make(map[string]bool)
	for _, m := range info.Deps {
		linked[m.Path+"@"+m.Version] = true
	}
	for _, p := range parts {
		if p.system == "golang" && p.name != "std" {
			listed[p.name+"@"+p.version] = true
		}
	}
	for m := range linked {
		if !listed[m] {
			return fmt.Errorf("the binary holds %s, which go list does not name", m)
		}
	}
	for m := range listed {
		if !linked[m] {
			return fmt.Errorf("go list names %s, which the binary does not hold", m)
		}
	}
	return nil
}
