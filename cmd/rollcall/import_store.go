package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/local"
	"github.com/rollcall/rollcall/transfer"
)

type importStoreCmd struct {
	settings
	Resume    bool   `help:"Go on where an import of the same file was cut short."`
	SkipKnown bool   `help:"Pass over users of whom something is known."`
	Keys      bool   `help:"Take in API keys too."`
	Webhooks  bool   `help:"Take in webhooks too: they tell of events from now on."`
	NewSecret bool   `help:"The secret is another one: give up the bans of erased users."`
	Create    bool   `help:"Make new data if there is none in the data directory."`
	JSON      bool   `help:"As JSON."`
	File      string `arg:"" help:"The file; - for standard input."`

	sum, state string // of the file, and of an import of it
}

// Help is the verb's own part of its help.
func (importStoreCmd) Help() string {
	return `Takes in what "rollcall export" wrote, into an engine that knows none of its
users. Session ids and tokens stay valid. Under another secret, cursors and
beat keys do not, and bans of erased users are not found any more: copy the
file "secret" of the data directory, or say --new-secret.

API keys and webhooks are passed over: whoever could change the file could have
given themselves a key, or have all events sent to themselves. With --keys and
--webhooks they are taken in; take files that you trust only.

A file is looked over before anything is changed. If the import is cut short, also
by a kill, --resume goes on: nobody is entered twice, and nobody left out. Of
standard input that is cut short, what could be read has been taken in: the exit
status is then 1, and --skip-known takes in the rest.`
}

// Run imports the file.
func (c *importStoreCmd) Run(a *app) error {
	conf, err := c.load(a)
	if err != nil {
		return err
	}
	conf.create = c.Create
	if c.File == "-" && c.Resume {
		return usageError{errors.New("--resume: standard input cannot be read from the middle: use --skip-known")}
	}
	in, closer, err := c.open(a)
	if err != nil {
		return err
	}
	began := time.Now()
	var summary transfer.Summary
	entered := false
	err = errors.Join(fits(in.Header, conf), c.sameSecret(in.Header, conf), c.keepState(conf))
	if err == nil {
		err = conf.withRoll(a, func(r *rollcall.Roll) error {
			entered = true
			return c.enter(a, in, r, &summary)
		})
	}
	err = errors.Join(err, in.Close(), closer())
	if entered {
		err = errors.Join(err, c.report(a, &summary, time.Since(began)))
	}
	if err != nil && entered {
		again := "--resume"
		if c.File == "-" {
			again = "--skip-known"
		}
		fmt.Fprintf(a.stderr, "WARNING: the import is NOT complete. Run it again with %s once the cause is gone.\n", again)
	}
	return err
}

// keepState names the file that says how far the import has come, beside the data, and has what
// it says on disk before it says so.
func (c *importStoreCmd) keepState(conf *config) error {
	if c.File == "-" {
		return nil
	}
	conf.local.Durability = local.Always
	c.state = filepath.Join(conf.dataDir, "import-"+c.sum[:16]+".json")
	switch _, err := os.Stat(c.state); {
	case err == nil && c.SkipKnown && !c.Resume:
		return os.Remove(c.state) // it begins anew, and passes over who is known
	case err == nil && !c.Resume:
		return fmt.Errorf("an import of this file was cut short: go on with it by --resume, or remove %s", c.state)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	default:
		return nil
	}
}

// fits refuses an export that cannot be taken in as things are configured. It
// looks before the data is made, which fixes the time zone.
func fits(h transfer.Header, conf *config) error {
	if zone := conf.roll.Timezone.String(); h.Timezone != zone {
		return usageError{fmt.Errorf("the days of the export are days of %s, and those of the data would be of %s: set timezone to %s", h.Timezone, zone, h.Timezone)}
	}
	return nil
}

// sameSecret refuses an export that was made under another secret. It looks
// before a secret is made, or noted with the data.
func (c *importStoreCmd) sameSecret(h transfer.Header, conf *config) error {
	if c.NewSecret {
		return nil
	}
	secret := conf.secret
	if secret == nil {
		var err error
		if secret, err = conf.readSecret(); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if secret == nil || rollcall.SecretID(secret) != h.SecretID {
		return fmt.Errorf(`the secret is another one than that of the export: copy the file %q beside the store it comes from to %s, configure the same secret, or give up bans of erased users with --new-secret`, secretFile, conf.dataDir)
	}
	return nil
}

func (c *importStoreCmd) enter(a *app, in *transfer.Stream, r *rollcall.Roll, summary *transfer.Summary) error {
	ctx, stop := a.ctx, func() {}
	if c.File != "-" { // a signal cannot end the wait for standard input
		ctx, stop = interruptible(ctx)
	}
	defer stop()
	shown := newProgress(a)
	defer shown.finish()
	if err := r.Audit(ctx, rollcall.NewAuditEntry{Action: rollcall.AuditStoreImported}); err != nil {
		return err
	}
	var err error
	*summary, err = in.Import(ctx, r, transfer.Options{SkipKnown: c.SkipKnown, Keys: c.Keys, Webhooks: c.Webhooks, Progress: shown.users, State: c.state, Sum: c.sum})
	return err
}

// open opens the export. A file is read to its end first, so that nothing is
// changed if it is not whole.
func (c *importStoreCmd) open(a *app) (*transfer.Stream, func() error, error) {
	if c.File == "-" {
		in, err := transfer.Open(a.stdin)
		return in, func() error { return nil }, err
	}
	f, err := os.Open(c.File)
	if err != nil {
		return nil, nil, err
	}
	in, err := c.whole(f)
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return in, f.Close, nil
}

// whole looks a file over and opens it anew.
func (c *importStoreCmd) whole(f *os.File) (*transfer.Stream, error) {
	in, err := transfer.Open(f)
	if err == nil {
		if _, err = in.Verify(); err != nil {
			_ = in.Close() // it was only read
		} else {
			c.sum = in.Sum()
			err = in.Close()
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%s: nothing was changed: %w", f.Name(), err)
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	return transfer.Open(f)
}

func (c *importStoreCmd) report(a *app, s *transfer.Summary, taken time.Duration) error {
	if c.JSON {
		return json.NewEncoder(a.stdout).Encode(struct {
			File string `json:"file"`
			transfer.Counts
			Hooks     int                   `json:"webhooks_of_the_file"`
			KnownHook int                   `json:"known_webhooks"`
			Skipped   int                   `json:"skipped"`
			Before    int                   `json:"before"`
			ResumedAt int                   `json:"resumed_at,omitempty"`
			KnownKeys int                   `json:"known_api_keys"`
			Keys      map[rollcall.Role]int `json:"api_keys_of_the_file"`
			Complete  bool                  `json:"complete"`
			Seconds   float64               `json:"seconds"`
		}{c.File, s.Counts, s.FoundWebhooks, s.KnownWebhooks, s.Skipped, s.Before, s.ResumedAt, s.KnownKeys, s.Keys, s.Complete, taken.Seconds()})
	}
	fmt.Fprintf(a.stdout, "Imported %s in %s.\n", countsText(s.Counts), taken.Round(100*time.Millisecond))
	if s.ResumedAt > 0 {
		fmt.Fprintf(a.stdout, "Went on at line %s; %s had been entered before.\n", humanize.Comma(int64(s.ResumedAt)+1), counted(int64(s.Before), "user"))
	}
	if s.Skipped > 0 {
		fmt.Fprintf(a.stdout, "Passed over %s known before.\n", counted(int64(s.Skipped), "user"))
	}
	if text := keysText(s.Keys); text != "" && c.Keys {
		fmt.Fprintf(a.stdout, "API keys of the file: %s; %d of them known before.\n", text, s.KnownKeys)
	} else if text != "" {
		fmt.Fprintf(a.stdout, "Passed over API keys: %s. To take them in, run it again with\n--skip-known --keys.\n", text)
	}
	c.reportWebhooks(a, s)
	return nil
}

// reportWebhooks says what became of the webhooks of the file.
func (c *importStoreCmd) reportWebhooks(a *app, s *transfer.Summary) {
	switch {
	case s.FoundWebhooks == 0:
	case !c.Webhooks:
		fmt.Fprintf(a.stdout, "Passed over %s. To take them in, run it again with\n--skip-known --webhooks.\n", counted(int64(s.FoundWebhooks), "webhook"))
	default:
		fmt.Fprintf(a.stdout, "Webhooks of the file: %d; %d of them known before.\n", s.FoundWebhooks, s.KnownWebhooks)
		if c.NewSecret && s.Webhooks > 0 {
			fmt.Fprintln(a.stdout, "Under another secret they sign by other ones: rotate each, and give it to its receiver.")
		}
	}
}

// keysText says how many API keys there are of each role.
func keysText(keys map[rollcall.Role]int) string {
	var parts []string
	for _, role := range slices.Sorted(maps.Keys(keys)) {
		parts = append(parts, fmt.Sprintf("%d %s", keys[role], role))
	}
	return strings.Join(parts, ", ")
}
