package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"golang.org/x/term"

	"github.com/rollcall/rollcall/client"
)

type topCmd struct {
	target
	Once bool `help:"Write the screen once, without a terminal's help."`
	JSON bool `help:"Write the figures once, as JSON."`
}

// Help is the verb's own part of its help.
func (topCmd) Help() string {
	return `Shows live who is online, logins and ends, the newest sessions, and how many
there are by app and device. q quits. Ends are those since top began, up to a
minute ago; a session that began and ended between two looks is not counted.`
}

// topEvery is how often the screen is drawn.
const topEvery = time.Second

// Run shows the screen until q, or once.
func (c *topCmd) Run(a *app) error {
	return c.ask(a, func(asked *client.Client) error {
		at, err := c.find(a)
		if err != nil {
			return err
		}
		look := newTopLook(asked, at.server)
		if err := look.take(a.ctx); err != nil { // before the screen is ours: it is a plain error
			return err
		}
		switch {
		case c.JSON:
			return printJSON(a.stdout, look.figures())
		case c.Once:
			_, err := fmt.Fprintln(a.stdout, strings.Join(look.screen(min(a.columns(), 120), 24), "\n"))
			return err
		}
		in, isFile := a.stdin.(*os.File)
		if !isFile || !isTerminal(a.stdout) || !term.IsTerminal(int(in.Fd())) {
			return usageError{errors.New("top needs a terminal; --once and --json do not")}
		}
		return look.live(a, in)
	})
}

// The sequences that take the screen and give it back: the other screen without a
// cursor, and the first one with it.
const (
	takeScreen = "\x1b[?1049h\x1b[?25l"
	giveScreen = "\x1b[?25h\x1b[?1049l"
	toTheTop   = "\x1b[H"
	clearLine  = "\x1b[K"
	clearRest  = "\x1b[J"
)

// live draws the screen each second. However it ends, the terminal is as it was.
func (l *topLook) live(a *app, in *os.File) error {
	ctx, stop := signal.NotifyContext(a.ctx, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	ctx, quit := context.WithCancel(ctx)
	defer quit()

	before, err := term.MakeRaw(int(in.Fd()))
	if err != nil {
		return fmt.Errorf("take the terminal: %w", err)
	}
	defer func() { _ = term.Restore(int(in.Fd()), before) }() // there is nothing left to try
	fmt.Fprint(a.stdout, takeScreen)
	defer fmt.Fprint(a.stdout, giveScreen)
	go waitForQuit(in, quit)

	again := time.NewTicker(topEvery)
	defer again.Stop()
	for {
		if err := l.draw(a.stdout); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-again.C:
			l.fault = l.take(ctx)
		}
	}
}

// waitForQuit reads keys until one of those that end the program, or the end of
// the terminal.
func waitForQuit(in io.Reader, quit func()) {
	const ctrlC, ctrlD = 3, 4
	key := make([]byte, 1)
	for {
		n, err := in.Read(key)
		if err != nil || (n == 1 && strings.IndexByte("qQ"+string([]byte{ctrlC, ctrlD}), key[0]) >= 0) {
			quit()
			return
		}
	}
}

// draw writes the screen over what stands there.
func (l *topLook) draw(w io.Writer) error {
	width, height := 80, 24
	if f, ok := w.(*os.File); ok {
		if columns, rows, err := term.GetSize(int(f.Fd())); err == nil && columns > 0 && rows > 0 { // some know no size
			width, height = columns, rows
		}
	}
	_, err := fmt.Fprint(w, toTheTop+strings.Join(l.screen(width, height), clearLine+"\r\n")+clearLine+clearRest)
	return err
}
