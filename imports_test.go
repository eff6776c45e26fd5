package rollcall_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// modulePath is the import path of the package at the root.
const modulePath = "github.com/rollcall/rollcall"

// layer is a set of areas that keep the same rule. An area is the first element
// of a package's path below the module, "." for the root; packages of one area
// may always import each other, areas of one layer never.
type layer struct {
	areas []string
	// may names the areas that this layer imports.
	may []string
	// standardOnly keeps other modules out.
	standardOnly bool
	// rule says all that in words.
	rule string
}

// layers is the direction in which imports run. A package in no layer has no
// place yet, and is reported.
func layers() []layer {
	doors := []string{"client", "console", "demo", "history", "httpapi", "loadgen", "manual", "middleware", "replay", "respapi", "takeover", "transfer", "udpbeat", "webhook"}
	engines := []string{"local", "redis"}
	all := slices.Concat(doors, engines, []string{"archive", "docs", ".", "internal"})

	return []layer{
		{areas: []string{"cmd"}, may: all, rule: "cmd imports doors, engines, the archive, the root and internal"},
		{areas: []string{"e2e"}, may: all, rule: "e2e imports doors, engines, the archive, the root and internal"},
		{areas: doors, may: []string{".", "internal"}, rule: "doors import the root and internal, never an engine, the archive or each other"},
		{areas: engines, may: []string{".", "internal", "internal/enginekit"}, rule: "engines import the root and internal, never a door, the archive or each other"},
		{areas: []string{"archive"}, may: []string{".", "internal"}, rule: "the archive imports the root and internal only"},
		{areas: []string{"enginetest"}, may: []string{".", "internal"}, rule: "enginetest imports the root and internal only"},
		{areas: []string{"examples"}, may: slices.Concat(engines, []string{"."}), rule: "examples import the root and engines only"},
		{areas: []string{"internal/enginekit"}, may: []string{".", "internal"}, rule: "what both engines need imports the root and internal only"},
		{areas: []string{"internal"}, rule: "internal knows no domain word and imports nothing of the module but internal"},
		{areas: []string{"docs"}, standardOnly: true, rule: "the pages of the documentation are files, and import the standard library only"},
		{areas: []string{"packaging"}, standardOnly: true, rule: "what makes a release imports the standard library only"},
		{areas: []string{"."}, standardOnly: true, rule: "the root imports the standard library only"},
	}
}

// edge is one import: the package from names the package to.
type edge struct {
	from, to string
	// standard tells that to belongs to the standard library.
	standard bool
}

// violations returns a sentence for each edge that breaks a rule, in the order
// given. Edges that start outside the module are nobody's business here.
func violations(edges []edge) []string {
	rules := layers()
	var found []string
	for _, e := range edges {
		from, ours := area(e.from)
		if !ours {
			continue
		}
		at := slices.IndexFunc(rules, func(l layer) bool { return slices.Contains(l.areas, from) })
		if at < 0 {
			found = append(found, fmt.Sprintf("%s is in no layer: give it one", e.from))
			continue
		}
		if !rules[at].allows(from, e) {
			found = append(found, fmt.Sprintf("%s imports %s: %s", e.from, e.to, rules[at].rule))
		}
	}
	return found
}

// allows tells whether the layer of the area from permits the edge e.
func (l layer) allows(from string, e edge) bool {
	to, ours := area(e.to)
	if !ours {
		return e.standard || !l.standardOnly
	}
	return to == from || slices.Contains(l.may, to)
}

// area returns the area of the package at path, and whether it is of the module.
func area(path string) (string, bool) {
	if path == modulePath {
		return ".", true
	}
	rest, ours := strings.CutPrefix(path, modulePath+"/")
	if !ours {
		return "", false
	}
	if rest == "internal/enginekit" { // the one below internal with a place of its own
		return rest, true
	}
	first, _, _ := strings.Cut(rest, "/")
	return first, true
}

func TestImportsRunOneWay(t *testing.T) {
	edges := imports(t, ".")
	if _, err := os.Stat(filepath.Join("examples", "go.mod")); err == nil {
		edges = append(edges, imports(t, "examples")...)
	}
	known := edge{from: modulePath, to: "context", standard: true}
	require.True(t, slices.Contains(edges, known), "the listing misses what the root imports")
	if found := violations(edges); len(found) > 0 {
		require.Fail(t, "imports run the wrong way", strings.Join(found, "\n"))
	}
}

// imports lists the imports of the non-test files of every package that the
// packages in and below dir are made of.
func imports(t *testing.T, dir string) []edge {
	t.Helper()
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", "-json=ImportPath,Imports,Standard", "./...")
	list.Dir = dir
	var complaint strings.Builder
	list.Stderr = &complaint
	out, err := list.Output()
	require.NoError(t, err, "go list: %s", complaint.String())

	type listed struct {
		ImportPath string
		Imports    []string
		Standard   bool
	}
	var packages []listed
	standard := map[string]bool{"unsafe": true}
	for decoder := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listed
		err := decoder.Decode(&p)
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		packages = append(packages, p)
		standard[p.ImportPath] = p.Standard
	}

	var edges []edge
	for _, p := range packages {
		for _, to := range p.Imports {
			edges = append(edges, edge{from: p.ImportPath, to: to, standard: standard[to]})
		}
	}
	return edges
}

// verdict is an import between two places below the module, and how the
// complaint about it ends; none is due where that is empty.
type verdict struct{ from, to, rule string }

func TestViolationsNamesEdgeAndRule(t *testing.T) {
	for _, v := range verdicts() {
		e := edge{from: below(v.from), to: v.to, standard: !strings.Contains(v.to, ".")}
		found := violations([]edge{e})
		if v.rule == "" {
			require.Empty(t, found)
			continue
		}
		require.Len(t, found, 1, "%s -> %s", e.from, e.to)
		require.True(t, strings.HasSuffix(found[0], v.rule), "%s", found[0])
		if v.rule == "is in no layer: give it one" {
			require.True(t, strings.HasPrefix(found[0], e.from+" "), "%s", found[0])
		} else {
			require.True(t, strings.HasPrefix(found[0], e.from+" imports "+e.to+": "), "%s", found[0])
		}
	}
}

// below returns the import path of an area's package.
func below(path string) string {
	if path == "." {
		return modulePath
	}
	return modulePath + "/" + path
}

func verdicts() []verdict {
	const testify = "github.com/stretchr/testify/require"
	return []verdict{
		{from: ".", to: "context"},
		{from: ".", to: testify, rule: "the root imports the standard library only"},
		{from: ".", to: below("local"), rule: "the root imports the standard library only"},
		{from: ".", to: below("internal/column"), rule: "the root imports the standard library only"},

		{from: "internal/directory", to: below("internal/arena")},
		{from: "internal/dayset", to: testify},
		{from: "internal/directory", to: below("."), rule: "imports nothing of the module but internal"},
		{from: "internal/directory", to: below("local"), rule: "imports nothing of the module but internal"},

		{from: "local", to: below("internal/enginekit")},
		{from: "internal/enginekit", to: below(".")},
		{from: "internal/enginekit", to: below("internal/dayset")},
		{from: "internal/enginekit", to: below("local"), rule: "what both engines need imports the root and internal only"},
		{from: "httpapi", to: below("internal/enginekit"), rule: "never an engine, the archive or each other"},
		{from: "internal/dayset", to: below("internal/enginekit"), rule: "imports nothing of the module but internal"},

		{from: "local", to: below(".")},
		{from: "local", to: below("internal/column")},
		{from: "redis/lua", to: below("redis")},
		{from: "local", to: below("redis"), rule: "never a door, the archive or each other"},
		{from: "redis", to: below("httpapi"), rule: "never a door, the archive or each other"},
		{from: "local", to: below("archive"), rule: "never a door, the archive or each other"},
		{from: "local", to: below("enginetest"), rule: "never a door, the archive or each other"},

		{from: "httpapi", to: below(".")},
		{from: "httpapi", to: testify},
		{from: "client", to: below(".")},
		{from: "client", to: below("httpapi"), rule: "never an engine, the archive or each other"},
		{from: "cmd/rollcall", to: below("client")},
		{from: "loadgen", to: below("udpbeat"), rule: "never an engine, the archive or each other"},
		{from: "history", to: below("local"), rule: "never an engine, the archive or each other"},
		{from: "takeover", to: "github.com/redis/rueidis"},
		{from: "takeover", to: below("redis"), rule: "never an engine, the archive or each other"},
		{from: "transfer", to: below("local"), rule: "never an engine, the archive or each other"},
		{from: "replay", to: below("local"), rule: "never an engine, the archive or each other"},
		{from: "replay", to: below("transfer"), rule: "never an engine, the archive or each other"},
		{from: "httpapi", to: below("archive"), rule: "never an engine, the archive or each other"},
		{from: "transfer", to: below("cmd/rollcall"), rule: "never an engine, the archive or each other"},

		{from: "archive", to: below(".")},
		{from: "archive", to: below("local"), rule: "the archive imports the root and internal only"},
		{from: "enginetest", to: below(".")},
		{from: "enginetest", to: below("internal/testbudget")},
		{from: "enginetest", to: below("redis"), rule: "enginetest imports the root and internal only"},
		{from: "examples/visits", to: below("local")},
		{from: "examples/visits", to: below("internal/arena"), rule: "examples import the root and engines only"},

		{from: "cmd/rollcall", to: below("httpapi")},
		{from: "cmd/rollcall", to: below("redis")},
		{from: "cmd/rollcall", to: below("archive")},
		{from: "cmd/rollcall", to: below("enginetest"), rule: "cmd imports doors, engines, the archive, the root and internal"},
		{from: "e2e", to: below("examples/visits"), rule: "e2e imports doors, engines, the archive, the root and internal"},

		{from: "httpapix", to: "context", rule: "is in no layer: give it one"},
		{from: "httpapi", to: below("httpapix"), rule: "never an engine, the archive or each other"},
	}
}

func TestViolationsLeavesOtherModulesAlone(t *testing.T) {
	require.Empty(t, violations([]edge{
		{from: "github.com/rollcall/rollcaller", to: modulePath + "/local"},
		{from: "github.com/stretchr/testify/require", to: "github.com/stretchr/testify/assert"},
		{from: "context", to: "errors", standard: true},
	}))
}
