package main

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// licence is how a licence is known by its words, which stand in this order and with
// anything between them, in small letters and with single spaces.
type licence struct {
	id    string // of SPDX
	words *regexp.Regexp
	// refused is true of licences under which nothing can be part of a program under
	// the Apache License 2.0.
	refused bool
}

// known are the licences that can be told apart.
func known() []licence {
	allowed := func(id, words string) licence { return licence{id: id, words: regexp.MustCompile(words)} }
	refusing := func(id, words string) licence {
		return licence{id: id, words: regexp.MustCompile(words), refused: true}
	}
	return []licence{
		allowed("Apache-2.0", `apache license,? version 2\.0`),
		allowed("MPL-2.0", `mozilla public license,? version 2\.0`),
		allowed("MIT", `permission is hereby granted, free of charge, to any person obtaining a copy.*(the|this) software is provided "as is"`),
		allowed("BSD-3-Clause", `redistribution and use in source and binary forms.*(neither the name|names of its contributors).*endorse or promote`),
		allowed("BSD-2-Clause", `redistribution and use in source and binary forms`),
		allowed("ISC", `permission to use, copy, modify, and/or distribute this software for any purpose with or without fee`),
		allowed("Unlicense", `this is free and unencumbered software released into the public domain`),
		allowed("CC0-1.0", `cc0 1\.0 universal`),
		allowed("blessing", `(the author disclaims copyright to this source code|dedicated to the public domain)`),
		refusing("GPL", `gnu (lesser |library |affero )?general public license`),
		refusing("BUSL", `business source license`),
		refusing("FSL", `functional source license`),
		refusing("SSPL", `server side public license`),
		refusing("Elastic", `elastic license`),
		refusing("Commons-Clause", `commons clause`),
		refusing("CC-BY-NC", `attribution-noncommercial`),
	}
}

// identify returns the licences that a text holds.
func identify(body string) []licence {
	plain := strings.ToLower(strings.Join(strings.Fields(strings.NewReplacer("“", `"`, "”", `"`, "``", `"`, "''", `"`, "*", " ").Replace(body)), " "))
	var out []licence
	has := func(id string) bool { return slices.ContainsFunc(out, func(l licence) bool { return l.id == id }) }
	for _, l := range known() {
		switch {
		case !l.words.MatchString(plain):
		case l.id == "BSD-2-Clause" && has("BSD-3-Clause"): // which begins as it does
		case l.id == "GPL" && has("MPL-2.0"): // which names it as one of its secondary licences
		default:
			out = append(out, l)
		}
	}
	return out
}

// ids returns the licences of a part, sorted.
func (p part) ids() []string {
	var out []string
	for _, t := range p.texts {
		for _, l := range identify(t.body) {
			out = append(out, l.id)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// checkLicences refuses what may not be part of a program under the Apache License 2.0,
// and what has no licence that is known.
func checkLicences(parts []part) error {
	var faults []error
	for _, p := range parts {
		if len(p.ids()) == 0 {
			faults = append(faults, fmt.Errorf("%s %s has no licence that is known here: read it, and add it to known", p.name, p.version))
		}
		for _, t := range p.texts {
			for _, l := range identify(t.body) {
				if l.refused {
					faults = append(faults, fmt.Errorf("%s %s: %s is under %s, which does not go with the Apache License 2.0", p.name, p.version, t.file, l.id))
				}
			}
		}
	}
	return errors.Join(faults...)
}

// licences puts all texts into one, the part that each belongs to before it.
func licences(parts []part) []byte {
	var out bytes.Buffer
	out.WriteString("Rollcall holds the work of others. Each part is named here with all of its licences and\nnotices, and where its source is.\n")
	for _, p := range parts {
		fmt.Fprintf(&out, "\n%s\n%s %s (%s)\n%s\n", strings.Repeat("=", 80), p.name, p.version, strings.Join(p.ids(), ", "), p.source())
		for _, t := range p.texts {
			fmt.Fprintf(&out, "\n--- %s\n\n%s\n", t.file, strings.TrimRight(t.body, "\n"))
		}
	}
	return out.Bytes()
}

// source is where the source of a part is.
func (p part) source() string {
	switch {
	case p.system == "npm":
		return "https://www.npmjs.com/package/" + p.name + "/v/" + p.version
	case p.name == "std":
		return "https://go.dev/dl/go" + p.version + ".src.tar.gz"
	}
	return "https://pkg.go.dev/" + p.name + "@" + p.version
}
