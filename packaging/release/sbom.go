package main

import (
	"encoding/json"
	"net/url"
	"strings"
	"time"
)

// component is a part in a bill of materials, as CycloneDX 1.6 has it
// (https://cyclonedx.org/docs/1.6/json/).
type component struct {
	Type     string         `json:"type"`
	Ref      string         `json:"bom-ref"`
	Name     string         `json:"name"`
	Version  string         `json:"version"`
	Hashes   []hash         `json:"hashes,omitempty"`
	Licenses []licensed     `json:"licenses"`
	URL      string         `json:"purl"`
	Property []propertyPair `json:"properties,omitempty"`
}

type hash struct {
	Algorithm string `json:"alg"`
	Content   string `json:"content"`
}

type licensed struct {
	License struct {
		ID string `json:"id"`
	} `json:"license"`
}

type propertyPair struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// bill lists what the binary of a platform, of the given SHA-256, holds.
func bill(r *release, platform, binary string, parts []part) ([]byte, error) {
	itself := component{
		Type: "application", Ref: "rollcall", Name: "rollcall", Version: r.version,
		URL:      packageURL("golang", "github.com/rollcall/rollcall", r.version),
		Hashes:   []hash{{Algorithm: "SHA-256", Content: binary}},
		Licenses: licensedBy("Apache-2.0"),
		Property: []propertyPair{{Name: "platform", Value: platform}},
	}
	components := make([]component, 0, len(parts))
	for _, p := range parts {
		at := packageURL(p.system, p.name, p.version)
		components = append(components, component{
			Type: "library", Ref: at, Name: p.name, Version: p.version, URL: at, Licenses: licensedBy(p.ids()...),
		})
	}
	out, err := json.MarshalIndent(map[string]any{
		"bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1,
		"metadata": map[string]any{
			"timestamp": r.time.Format(time.RFC3339),
			"component": itself,
		},
		"components": components,
	}, "", "  ")
	return append(out, '\n'), err
}

func licensedBy(ids ...string) []licensed {
	out := make([]licensed, len(ids))
	for i, id := range ids {
		out[i].License.ID = id
	}
	return out
}

// packageURL names a package of a system (https://github.com/package-url/purl-spec).
func packageURL(system, name, version string) string {
	segments := strings.Split(name, "/")
	for i := range segments {
		segments[i] = url.PathEscape(segments[i])
	}
	return "pkg:" + system + "/" + strings.Join(segments, "/") + "@" + url.PathEscape(version)
}
