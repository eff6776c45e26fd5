package main

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/client"
)

type auditCmd struct {
	List   auditListCmd   `cmd:"" help:"List what administrators did, newest first."`
	Verify auditVerifyCmd `cmd:"" help:"Read the whole trail and check that nothing in it was changed."`
}

// Help is the verb's own part of its help.
func (auditCmd) Help() string {
	return `The trail has an entry for keys, bans, kicks of many, erasures, webhooks and the
like. Each entry holds the hash of the one before. Users stand in it as
pseudonyms: --user finds the entries of one who has not been erased.`
}

// auditJSON is an entry for a program, as the HTTP API shows it.
type auditJSON struct {
	Seq    uint64               `json:"seq"`
	At     instant              `json:"at"` // as the hash covers it
	Actor  string               `json:"actor"`
	Action rollcall.AuditAction `json:"action"`
	Target string               `json:"target,omitempty"`
	Detail map[string]string    `json:"detail,omitempty"`
	Hash   rollcall.AuditHash   `json:"hash"`
}

// auditJSONOf writes the time as the hash covers it: with milliseconds, also where they
// end in zeros, so that other programs can check the trail.
func auditJSONOf(e rollcall.AuditEntry) auditJSON {
	return auditJSON{e.Seq, instantOf(e.At), e.Actor, e.Action, e.Target, e.Detail, e.Hash}
}

type auditListCmd struct {
	target
	User  string `placeholder:"USER" help:"Only entries about this user."`
	Limit int    `default:"20" help:"How many entries; 0 for all."`
	JSON  bool   `help:"As JSON, a line for each."`
}

// Run lists entries.
func (c *auditListCmd) Run(a *app) error {
	if c.Limit < 0 {
		return usageError{fmt.Errorf("--limit: must be 0 or more, is %d", c.Limit)}
	}
	return c.ask(a, func(asked *client.Client) error {
		q := rollcall.AuditQuery{User: c.User, Limit: rollcall.MaxLimit}
		if c.Limit > 0 {
			q.Limit = min(c.Limit, rollcall.MaxLimit)
		}
		out := newTable("seq", "at", "actor", "action", "target", "detail")
		for e, err := range asked.AllAudit(a.ctx, q) {
			if err != nil {
				return err
			}
			out.add(auditJSONOf(e), strconv.FormatUint(e.Seq, 10), moment(e.At), e.Actor, string(e.Action), e.Target, detailText(e.Detail))
			if len(out.rows) == c.Limit {
				break
			}
		}
		return out.print(a, c.JSON, "There are no entries.")
	})
}

// detailText words the details of an entry.
func detailText(detail map[string]string) string {
	var words []string
	for _, name := range slices.Sorted(maps.Keys(detail)) {
		words = append(words, name+"="+detail[name])
	}
	return strings.Join(words, " ")
}

type auditVerifyCmd struct {
	target
	JSON bool `help:"As JSON."`
}

// Help is the verb's own part of its help.
func (auditVerifyCmd) Help() string {
	return `Prints number and hash of the newest entry. Keep them elsewhere: whoever can
write to the store could cut off the newest entries, and only these tell. The exit
status is 1 if the chain does not hold; the first entry at fault is named.`
}

// Run checks the chain.
func (c *auditVerifyCmd) Run(a *app) error {
	return c.ask(a, func(asked *client.Client) error {
		var check rollcall.AuditCheck
		for e, err := range asked.AllAudit(a.ctx, rollcall.AuditQuery{}) {
			if err != nil {
				return err
			}
			check.Add(e)
		}
		err := check.End()
		if c.JSON {
			return joinPrinted(err, printJSON(a.stdout, struct {
				Entries uint64             `json:"entries"`
				Newest  uint64             `json:"newest"`
				Hash    rollcall.AuditHash `json:"hash"`
				Broken  uint64             `json:"broken,omitempty"`
			}{check.Count, check.Newest.Seq, check.Newest.Hash, check.Broken}))
		}
		if err == nil {
			fmt.Fprintf(a.stdout, "The trail is whole. Its newest entry is %d, with the hash\n%s\n", check.Newest.Seq, check.Newest.Hash)
		}
		return err
	})
}

// joinPrinted returns the first of what went wrong with a command and with its output.
func joinPrinted(err, printed error) error {
	if err != nil {
		return err
	}
	return printed
}
