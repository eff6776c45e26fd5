// Command rollcall is the server and the tools of Rollcall in one binary.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/cli"
)

// The exit statuses of every verb.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

// app is what a verb has to work with.
type app struct {
	ctx     context.Context
	stdin   io.Reader
	stdout  io.Writer
	stderr  io.Writer
	environ []string
}

// with returns the app as it is under ctx.
func (a *app) with(ctx context.Context) *app {
	under := *a
	under.ctx = ctx
	return &under
}

// commands are the verbs; one file each.
type commands struct {
	Serve   serveCmd   `cmd:"" help:"Run the server."`
	Demo    demoCmd    `cmd:"" help:"Run a server with made-up users, to look around."`
	Replay  replayCmd  `cmd:"" help:"Play a log and report who was online, when, on which days."`
	Import  importCmd  `cmd:"" help:"Take in login history, what was exported, or a system built by hand."`
	Export  exportCmd  `cmd:"" help:"Write all that is known about users to a file."`
	Archive archiveCmd `cmd:"" help:"Copy days into the archive, and see or read back what is there."`
	Key     keyCmd     `cmd:"" help:"Make, list and revoke API keys."`
	Check   checkCmd   `cmd:"" help:"Verify a data directory and name every fault, or repair it."`
	Compact compactCmd `cmd:"" help:"Reclaim space; afterwards an erased id is in no file."`
	Restore restoreCmd `cmd:"" help:"Make a data directory of a backup."`
	Config  configCmd  `cmd:"" help:"Show or check the configuration."`
	Doctor  doctorCmd  `cmd:"" help:"Look at a system built by hand on Redis, and say what is wrong."`
	Bench   benchCmd   `cmd:"" help:"Put a server, or the library, under load and measure it."`
	Version versionCmd `cmd:"" help:"Show the version."`

	Health     healthCmd     `cmd:"" group:"client" help:"Whether a server is ready, as an exit status."`
	Online     onlineCmd     `cmd:"" group:"client" help:"Who is online."`
	Sessions   sessionsCmd   `cmd:"" group:"client" help:"List live sessions, or show one."`
	Kick       kickCmd       `cmd:"" group:"client" help:"Show users out: end their sessions."`
	Ban        banCmd        `cmd:"" group:"client" help:"Keep users out for a time."`
	Friends    friendsCmd    `cmd:"" group:"client" help:"Friends, and which of them are online."`
	Attendance attendanceCmd `cmd:"" group:"client" help:"Who was there on which days, and figures."`
	Visits     visitsCmd     `cmd:"" group:"client" help:"Estimates of different visitors."`
	Events     eventsCmd     `cmd:"" group:"client" help:"What happened, and what happens."`
	Timeline   timelineCmd   `cmd:"" group:"client" help:"What happened to one user, and why they are offline."`
	Keys       keysCmd       `cmd:"" group:"client" help:"API keys of a server."`
	Audit      auditCmd      `cmd:"" group:"client" help:"What administrators did, and whether the trail is whole."`
	Webhooks   webhooksCmd   `cmd:"" group:"client" help:"Addresses that events are posted to."`
	Backup     backupCmd     `cmd:"" group:"client" help:"Fetch a backup of a server that runs."`
	Console    consoleCmd    `cmd:"" group:"client" help:"Links that sign in to the console."`
	Top        topCmd        `cmd:"" group:"client" help:"Watch a server live."`
	MCP        mcpCmd        `cmd:"" name:"mcp" group:"client" help:"Let a language model ask a server."`
	Context    contextCmd    `cmd:"" group:"client" help:"Name servers, and choose which one is asked."`

	Completion completionCmd `cmd:"" help:"Write what a shell needs to complete rollcall."`
	Complete   completeCmd   `cmd:"" hidden:""`
}

func main() {
	ownFilesOnly()
	os.Exit(run(&app{
		ctx: context.Background(), stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, environ: os.Environ(),
	}, os.Args[1:]))
}

// commandLine returns the command line that fills c.
func commandLine(c *commands) (*cli.Command, error) {
	return cli.New("rollcall",
		"Who is online, since when, from where, on which devices, which of my friends are, and who came on which days.", c,
		cli.Group{Key: "client", Title: "Commands that ask a server:"},
		cli.Group{Key: "server", Title: "Which server is asked (else the context in use, or this machine's):"},
	)
}

// verb is a command that can be run.
type verb interface{ Run(a *app) error }

// errUsage marks an error that is the caller's: exit status 2.
var errUsage = errors.New("usage")

// usageError is an error of what the caller said.
type usageError struct{ error }

func (usageError) Is(target error) bool { return target == errUsage }

func (e usageError) Unwrap() error { return e.error }

// run runs one command line and returns the exit status.
func run(a *app, args []string) int {
	a.ctx = rollcall.WithActor(a.ctx, "command line")
	program, err := commandLine(new(commands))
	if err != nil {
		fmt.Fprintln(a.stderr, "rollcall:", err)
		return exitFailed
	}
	chosen, err := program.Parse(args)
	if errors.Is(err, cli.ErrHelp) {
		err = chosen.WriteHelp(a.stdout, min(widthOf(a.stdout), 80))
		if err != nil {
			return exitFailed
		}
		return exitOK
	}
	if err != nil {
		words := []string{"rollcall", "--help"}
		if path := chosen.Path(); path != "" {
			words = []string{"rollcall", path, "--help"}
		}
		fmt.Fprintf(a.stderr, "rollcall: %v\nSee %q.\n", err, strings.Join(words, " "))
		return exitUsage
	}
	err = runVerb(a, chosen)
	if err == nil {
		return exitOK
	}
	fmt.Fprintln(a.stderr, "rollcall:", message(err))
	if errors.Is(err, errUsage) {
		return exitUsage
	}
	if own := (statusError{}); errors.As(err, &own) {
		return own.status
	}
	return exitFailed
}

// runVerb runs the verb that a command line names.
func runVerb(a *app, chosen *cli.Command) error {
	runs, ok := chosen.Target().(verb)
	if !ok {
		return fmt.Errorf("%s does nothing", chosen.Path())
	}
	return runs.Run(a)
}

// isTerminal reports whether w is a terminal.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// widthOf returns the columns of a terminal, 80 if w is none.
func widthOf(w io.Writer) int {
	if f, ok := w.(*os.File); ok {
		if width, _, err := term.GetSize(int(f.Fd())); err == nil {
			return width
		}
	}
	return 80
}
