package main

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"
)

type versionCmd struct {
	JSON bool `help:"As JSON."`
}

// stamped is the version that a release and the image are built with: -X main.stamped=v1.2.3.
// The history that Go would read it from may not be where they are built.
var stamped string

// version returns the version that was stamped, the module's, or the commit it was built
// from.
func version() string {
	if stamped != "" {
		return stamped
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			return "devel-" + s.Value[:12]
		}
	}
	return "devel"
}

// Run shows the version.
func (c *versionCmd) Run(a *app) error {
	if c.JSON {
		return json.NewEncoder(a.stdout).Encode(map[string]string{
			"version": version(), "go": runtime.Version(), "os": runtime.GOOS, "arch": runtime.GOARCH,
		})
	}
	fmt.Fprintf(a.stdout, "rollcall %s (%s, %s/%s)\n", version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return nil
}
