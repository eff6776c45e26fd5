package redis

import (
	"crypto/sha1" //nolint:gosec // the name Redis gives a script, no protection
	"embed"
	"encoding/hex"
	"fmt"
	"strings"
)

//go:embed lua/*.lua
var sources embed.FS

// script is a program that Redis runs in one step.
type script struct {
	name, text, sha string
	// keeps says that a second run would do, say or count something else than
	// the first: the answer is kept for a while, see env.lua.
	keeps bool
	// writes says that every run writes: an answer proves that writes are taken.
	writes bool
	// emits says that it may append events.
	emits bool
}

// scripts are all there are, each put together from its files.
type scripts struct {
	begin, touch, lookup, change, finish, drain, due  script
	beat, count, newest, known, seen, sessions        script
	clear, user, follow, unban, erase, redact         script
	edges, loosen, foresee, name, befriend            script
	stage, swap                                       script
	unfriend, disown, loose, unname, tidy             script
	mark, unmark, days, attended, allHot, numbers     script
	span                                              script
	closed, close, maps, settle, depart, readmit      script
	announce, back, changed, recopy                   script
	sets, dossier, mine, enter                        script
	page, narrow, recent                              script
	hidden, unvisit, kindUse                          script
	stamp, sweep, visit, visitors                     script
	kinds, names, putKey, claim, unclaim, meta, probe script // not of a partition
	all                                               []*script
}

// files names the files that each script is put together from.
func (s *scripts) files() map[*script]string {
	return map[*script]string{
		&s.begin:    "env bytes event presence large session line day policy begin",
		&s.touch:    "env bytes event presence large session policy touch",
		&s.lookup:   "env event large session lookup",
		&s.change:   "env event large session change",
		&s.finish:   "env bytes event presence large session veil cutoff finish",
		&s.beat:     "env bytes event presence beat",
		&s.count:    "env count",
		&s.newest:   "env bytes newest",
		&s.known:    "env bytes known",
		&s.hidden:   "env hidden",
		&s.kindUse:  "env kinduse",
		&s.unvisit:  "env unvisit",
		&s.seen:     "env seen",
		&s.sessions: "env bytes event presence large session veil cutoff sessions",
		&s.clear:    "env bytes event presence clear",
		&s.user:     "env bytes event presence large session veil ofkind user",
		&s.follow:   "env bytes event large session veil follow",
		&s.unban:    "env event unban",
		&s.erase:    "env bytes event presence large session veil cutoff line day ofkind erase",
		&s.redact:   "env redact",
		&s.edges:    "env edge edges",
		&s.loosen:   "env edge loosen",
		&s.foresee:  "env edge foresee",
		&s.name:     "env name",
		&s.befriend: "env edge befriend",
		&s.stage:    "env stage",
		&s.swap:     "env edge swap",
		&s.unfriend: "env edge unfriend",
		&s.disown:   "env edge disown",
		&s.loose:    "env edge loose",
		&s.unname:   "env unname",
		&s.tidy:     "env tidy",
		&s.mark:     "env line day mark",
		&s.unmark:   "env line day unmark",
		&s.days:     "env line set days",
		&s.closed:   "env epoch closed",
		&s.close:    "env epoch close",
		&s.maps:     "env line day maps",
		&s.changed:  "env set changed",
		&s.recopy:   "env line day recopy",
		&s.settle:   "env line day settle",
		&s.depart:   "env line day depart",
		&s.readmit:  "env line day readmit",
		&s.back:     "env line return",
		&s.numbers:  "env line day numbers",
		&s.span:     "env line span",
		&s.allHot:   "env line day allhot",
		&s.announce: "env event announce",
		&s.attended: "env line day attended",
		&s.page:     "env bytes event presence large session veil cutoff page",
		&s.narrow:   "env bytes event presence large session veil cutoff narrow",
		&s.recent:   "env bytes event presence large session veil cutoff recent",
		&s.stamp:    "env stamp",
		&s.drain:    "env bytes event presence large session veil cutoff drain",
		&s.due:      "env bytes event presence large session veil cutoff due",
		&s.sweep:    "env bytes event presence large session veil cutoff line day sweep",
		&s.visit:    "env visit",
		&s.visitors: "env visitors",
		&s.kinds:    "kinds",
		&s.names:    "names",
		&s.putKey:   "putkey",
		&s.claim:    "claim",
		&s.unclaim:  "unclaim",
		&s.meta:     "meta",
		&s.probe:    "probe",
		&s.mine:     "env bytes event large session mine",
		&s.sets:     "env line set sets",
		&s.dossier:  "env event large session line day dossier",
		&s.enter:    "env event large session line day ofkind import",
	}
}

func loadScripts() (*scripts, error) {
	s := &scripts{}
	for into, files := range s.files() {
		for _, name := range strings.Fields(files) {
			text, err := sources.ReadFile("lua/" + name + ".lua")
			if err != nil {
				return nil, fmt.Errorf("redis: %w", err)
			}
			into.name = name
			into.emits = into.emits || name == "event"
			into.text += string(text)
		}
		sum := sha1.Sum([]byte(into.text)) //nolint:gosec // see the import
		into.sha = hex.EncodeToString(sum[:])
		s.all = append(s.all, into)
	}
	s.lookup.emits = false // it needs to know who is invisible
	s.classify()
	return s, nil
}

// classify says which scripts keep their answers for a repetition, and which of the
// others write.
func (s *scripts) classify() {
	for _, c := range []*script{
		&s.finish, &s.change, &s.clear, &s.user, &s.unban, &s.erase, &s.befriend, &s.swap, &s.unfriend, &s.disown,
		&s.mark, &s.unmark, &s.recopy, &s.settle, &s.depart, &s.readmit, &s.announce, &s.enter,
	} {
		c.keeps = true
	}
	for _, c := range []*script{&s.beat, &s.stamp, &s.sweep} {
		c.writes = true
	}
}
