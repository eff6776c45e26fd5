package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/rollcall/rollcall/local"
)

// statusError is an error with an exit status of its own.
type statusError struct {
	error
	status int
}

func (e statusError) Unwrap() error { return e.error }

// exitNotRepaired is the exit status of a repair that failed.
const exitNotRepaired = 3

// shownFaults of a damaged store are shown by a repair; a check shows all.
const shownFaults = 10

// repair repairs the store, and says what was lost.
func (c *checkCmd) repair(a *app, conf *config, dir string) error {
	options := local.RepairOptions{Now: time.Now()}
	if isTerminal(a.stderr) {
		options.Progress = func(step string) { fmt.Fprintln(a.stderr, step, "…") }
	}
	out, err := local.Repair(a.ctx, dir, conf.local, options)
	if err != nil {
		return statusError{fmt.Errorf("not repaired, and nothing was changed: %s", message(err)), exitNotRepaired}
	}
	if fault := secretFault(conf); fault != "" {
		out.Notes = append(out.Notes, "This cannot be repaired: "+fault)
	}
	if c.JSON {
		err = json.NewEncoder(a.stdout).Encode(repairJSON(&out))
	} else {
		printRepair(a.stdout, conf.dataDir, &out)
	}
	if err == nil && len(out.Losses) > 0 {
		err = fmt.Errorf("repaired, and something was lost (%s)", counted(int64(len(out.Losses)), "item"))
	}
	return err
}

func repairJSON(r *local.Repaired) map[string]any {
	losses := []map[string]any{}
	for i := range r.Losses {
		l := &r.Losses[i]
		losses = append(losses, map[string]any{
			"what": l.What, "tables": l.Tables, "keys": append([]string{}, l.Keys...), "records_at_most": l.Records,
			"users": append([]string{}, l.Users...), "days": l.Days, "advice": l.Advice,
		})
	}
	return map[string]any{
		"healthy": r.Healthy, "found": reportJSON(&r.Found), "kept": reportJSON(&r.Kept),
		"losses": losses, "notes": append([]string{}, r.Notes...), "old_store": r.Old,
	}
}

func printRepair(w io.Writer, dir string, r *local.Repaired) {
	if r.Healthy {
		fmt.Fprintf(w, "%s: %d records, %d users, %d live sessions\n", dir, r.Found.Records, r.Found.Users, r.Found.Sessions)
		fill(w, "", "No fault found: nothing was changed.")
		printNotes(w, r.Notes)
		return
	}
	fmt.Fprintf(w, "%s: %s found\n", dir, counted(int64(r.Found.Faulty), "fault"))
	for _, fault := range r.Found.Faults[:min(shownFaults, len(r.Found.Faults))] {
		fill(w, "  ", fault)
	}
	if more := r.Found.Faulty - shownFaults; more > 0 {
		fmt.Fprintf(w, "  … and %s more\n", humanize.Comma(int64(more)))
	}
	fmt.Fprintf(w, "\nRepaired: %s, %s, %s\n", counted(int64(r.Kept.Records), "record"),
		counted(int64(r.Kept.Users), "user"), counted(int64(r.Kept.Sessions), "live session"))
	fill(w, "", "The old store is "+r.Old+". Remove it when nobody needs it: what is erased from now on is still in it.")
	printNotes(w, r.Notes)
	if len(r.Losses) == 0 {
		fmt.Fprintln(w, "\nNothing was lost.")
		return
	}
	fmt.Fprintln(w, "\nLost:")
	for i := range r.Losses {
		printLoss(w, i+1, &r.Losses[i])
	}
}

func printNotes(w io.Writer, notes []string) {
	for _, note := range notes {
		fill(w, "", note)
	}
}

func printLoss(w io.Writer, n int, l *local.Loss) {
	fill(w, fmt.Sprintf("%2d. ", n), l.What)
	const in = "    "
	if l.Records >= 0 {
		fill(w, in, "at most "+counted(int64(l.Records), "record"))
	} else {
		fill(w, in, "nobody can tell how many records")
	}
	for _, part := range [...][2]string{
		{"of", l.Tables}, {"days:", l.Days}, {"users:", strings.Join(l.Users, ", ")},
	} {
		if part[1] != "" {
			fill(w, in, part[0]+" "+part[1])
		}
	}
	for _, k := range l.Keys {
		fill(w, in, "key "+k)
	}
	if l.Advice != "" {
		fill(w, in, strings.TrimSpace(l.Advice))
	}
}

// columns is the width of what is printed.
const columns = 80

// fill prints a text in lines that fit, the first behind a lead and the others
// as far in.
func fill(w io.Writer, lead, text string) {
	in := strings.Repeat(" ", len([]rune(lead)))
	line := []rune(lead)
	began := false
	end := func() {
		fmt.Fprintln(w, strings.TrimRight(string(line), " "))
		line, began = []rune(in), false
	}
	for _, word := range strings.Fields(text) {
		rest := []rune(word)
		if began && len(line)+1+len(rest) > columns {
			end()
		}
		if began {
			line = append(line, ' ')
		}
		for len(line)+len(rest) > columns { // longer than a line
			room := columns - len(line)
			line = append(line, rest[:room]...)
			rest = rest[room:]
			end()
		}
		line, began = append(line, rest...), true
	}
	if began {
		end()
	}
}
