package redis

import (
	"crypto/sha1" //nolint:gosec // the name Redis gives a script, no protection
	"embed"
	"encoding/hex"
	"fmt"
)

//go:embed lua/*.lua
var sources embed.FS

// script is a program that Redis runs in one step.
type script struct {
	name, text, sha string
}

// scripts are all there are. Those of a partition begin with lib.lua.
type scripts struct {
	begin, touch, lookup, change, finish script
	beat, count, newest, status, clear   script
	user, unban, erase, redact           script
	befriend, unfriend                   script
	mark, unmark, days, attended         script
	page, narrow, recent                 script
	stamp, sweep                         script
	kinds, putKey, claim, meta           script // not of a partition
}

func loadScripts() (*scripts, error) {
	s := &scripts{}
	for into, files := range map[*script][]string{
		&s.begin: {"lib", "policy", "begin"}, &s.touch: {"lib", "policy", "touch"},
		&s.lookup: {"lib", "lookup"}, &s.change: {"lib", "change"}, &s.finish: {"lib", "finish"},
		&s.beat: {"lib", "beat"}, &s.count: {"lib", "count"}, &s.newest: {"lib", "newest"},
		&s.status: {"lib", "status"}, &s.clear: {"lib", "clear"},
		&s.user: {"lib", "user"}, &s.unban: {"lib", "unban"}, &s.erase: {"lib", "erase"}, &s.redact: {"lib", "redact"},
		&s.befriend: {"lib", "befriend"}, &s.unfriend: {"lib", "unfriend"},
		&s.mark: {"lib", "mark"}, &s.unmark: {"lib", "unmark"}, &s.days: {"lib", "days"}, &s.attended: {"lib", "attended"},
		&s.page: {"lib", "page"}, &s.narrow: {"lib", "narrow"}, &s.recent: {"lib", "recent"},
		&s.stamp: {"lib", "stamp"}, &s.sweep: {"lib", "sweep"},
		&s.kinds: {"kinds"}, &s.putKey: {"putkey"}, &s.claim: {"claim"}, &s.meta: {"meta"},
	} {
		for _, name := range files {
			text, err := sources.ReadFile("lua/" + name + ".lua")
			if err != nil {
				return nil, fmt.Errorf("redis: %w", err)
			}
			into.name = name
			into.text += string(text)
		}
		sum := sha1.Sum([]byte(into.text)) //nolint:gosec // see the import
		into.sha = hex.EncodeToString(sum[:])
	}
	return s, nil
}

// all lists the scripts.
func (s *scripts) all() []*script {
	return []*script{
		&s.begin, &s.touch, &s.lookup, &s.change, &s.finish, &s.beat, &s.count, &s.newest, &s.status, &s.clear,
		&s.user, &s.unban, &s.erase, &s.redact, &s.befriend, &s.unfriend, &s.mark, &s.unmark, &s.days, &s.attended,
		&s.page, &s.narrow, &s.recent, &s.stamp, &s.sweep, &s.kinds, &s.putKey, &s.claim, &s.meta,
	}
}
