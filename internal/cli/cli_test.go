package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// shared are flags of several verbs.
type shared struct {
	Server string `group:"where" placeholder:"URL" help:"Which server is asked."`
}

type showCmd struct {
	shared
	Users  []string          `arg:"" name:"user" help:"Whom to show."`
	Sort   string            `enum:"login,-login" default:"login" help:"In which order."`
	Only   []string          `aliases:"just" placeholder:"KIND" help:"Only these."`
	Whole  []string          `sep:"none" help:"As it is."`
	At     []int64           `help:"When."`
	Attr   map[string]string `help:"With this attribute."`
	Limit  int               `short:"n" default:"20" help:"How many."`
	Seed   uint64            `help:"Any number."`
	Rate   float64           `help:"How fast."`
	DryRun bool              `short:"d" help:"Change nothing."`
	Force  bool              `short:"f" help:"Do not ask."`
	Into   string            `type:"path" help:"A file."`
}

func (showCmd) Help() string {
	return "The first paragraph is\nof two lines.\n\nThe second has lines as they are:\n  show  alice\n  show  bob\nAnd goes on."
}

type addCmd struct {
	Name   string `arg:"" help:"The name."`
	Note   string `arg:"" optional:"" help:"A note."`
	Server string `required:"" placeholder:"URL" help:"Its address."`
}

type program struct {
	Show  showCmd `cmd:"" help:"Show users."`
	Group struct {
		Add    addCmd   `cmd:"" help:"Add one."`
		Secret struct{} `cmd:"" hidden:"" help:"Not listed."`
	} `cmd:"" group:"more"`
	Bare struct{} `cmd:"" help:"Do nothing."`
}

// parse reads a command line given as one text.
func parse(t *testing.T, text string) (*program, *Command, error) {
	t.Helper()
	filled := new(program)
	root, err := New("tool", "A tool.", filled, Group{Key: "more", Title: "More:"}, Group{Key: "where", Title: "Where:"})
	require.NoError(t, err)
	chosen, err := root.Parse(strings.Fields(text))
	return filled, chosen, err
}

func TestFlagsAndArgumentsFillTheStruct(t *testing.T) {
	filled, chosen, err := parse(t, "show alice --server=http://a --only x,y --just z --whole a,b --at 1,-2 --attr k=v=w --attr l= "+
		"-dfn5 bob --sort -login --seed 18446744073709551615 --rate 0.5 -- --carol -")
	require.NoError(t, err)
	require.Equal(t, "show", chosen.Path())
	require.Same(t, &filled.Show, chosen.Target())
	require.Equal(t, showCmd{
		shared: shared{Server: "http://a"}, Users: []string{"alice", "bob", "--carol", "-"}, Sort: "-login",
		Only: []string{"x", "y", "z"}, Whole: []string{"a,b"}, At: []int64{1, -2}, Attr: map[string]string{"k": "v=w", "l": ""},
		Limit: 5, Seed: 1<<64 - 1, Rate: 0.5, DryRun: true, Force: true,
	}, filled.Show)
}

func TestDefaultsStandWhereNothingIsGiven(t *testing.T) {
	filled, _, err := parse(t, "show alice")
	require.NoError(t, err)
	require.Equal(t, showCmd{Users: []string{"alice"}, Sort: "login", Limit: 20}, filled.Show)

	filled, chosen, err := parse(t, "group add --server x one")
	require.NoError(t, err)
	require.Equal(t, "group add", chosen.Path())
	require.Equal(t, addCmd{Name: "one", Server: "x"}, filled.Group.Add)
}

func TestFlagsStandAnywhere(t *testing.T) {
	for _, text := range []string{
		"show -d=true -n 7 alice", "show alice --limit=7 --dry-run=true", "show --limit 7 alice -d", "show -dn7 alice", "show -n=7 --dry-run alice",
	} {
		filled, _, err := parse(t, text)
		if strings.Contains(text, "-d=") { // a letter has no =
			require.EqualError(t, err, "unknown flag -=", text)
			continue
		}
		require.NoError(t, err, text)
		require.Equal(t, showCmd{Users: []string{"alice"}, Sort: "login", Limit: 7, DryRun: true}, filled.Show, text)
	}
	filled, _, err := parse(t, "show alice --dry-run=false")
	require.NoError(t, err)
	require.False(t, filled.Show.DryRun)
}

func TestAPathMayBeginAtHome(t *testing.T) {
	home, err := os.UserHomeDir()
	require.NoError(t, err)
	for text, want := range map[string]string{"~/a": filepath.Join(home, "a"), "a~/b": "a~/b", "./a": "./a", "-": "-"} {
		filled, _, err := parse(t, "show alice --into="+text)
		require.NoError(t, err)
		require.Equal(t, want, filled.Show.Into)
	}
}

func TestFaultsOfTheCallerAreNamed(t *testing.T) {
	for text, want := range map[string]string{
		"":                                   `expected one of "show", "group", "bare"`,
		"group":                              `expected one of "add"`,
		"shwo":                               `unexpected argument shwo, did you mean "show"?`,
		"bare extra":                         `unexpected argument extra`,
		"show":                               `expected <user> ...`,
		"show a --limt 3":                    `unknown flag --limt, did you mean "--limit"?`,
		"show a --s":                         `unknown flag --s, did you mean one of "--server", "--sort", "--seed"?`,
		"show a -x":                          `unknown flag -x`,
		"show a --sort up":                   `--sort must be one of login, -login, is "up"`,
		"show a --sort=":                     `--sort must be one of login, -login, is ""`,
		"show a --limit":                     `--limit needs a value`,
		"show a --limit -d":                  `--limit needs a value; if -d is it, write --limit=-d`,
		"show a --limit many":                `--limit must be a whole number, is "many"`,
		"show a --limit 1e9":                 `--limit must be a whole number, is "1e9"`,
		"show a --seed=-1":                   `--seed must be a whole number from 0 on, is "-1"`,
		"show a --rate fast":                 `--rate must be a number, is "fast"`,
		"show a --at 1,x":                    `--at must be a whole number, is "x"`,
		"show a --attr k":                    `--attr must be KEY=VALUE, is "k"`,
		"show a --dry-run=maybe":             `--dry-run must be true or false, is "maybe"`,
		"group add one":                      `missing flags: --server=URL`,
		"group add --server x":               `expected <name>`,
		"group add --server x 1 2 3":         `unexpected argument 3`,
		"show a --limit 9223372036854775808": `--limit is out of range: 9223372036854775808`,
	} {
		_, _, err := parse(t, text)
		require.EqualError(t, err, want, text)
	}
}

const showHelp = `Usage: tool show <user> ... [flags]

Show users.

The first paragraph is of two lines.

The second has lines as they are:

    show  alice
    show  bob

And goes on.

Arguments:
  <user> ...    Whom to show.

Flags:
  -h, --help              Show context-sensitive
                          help.

      --sort="login"      In which order.
      --only=KIND,...     Only these.
      --whole=WHOLE       As it is.
      --at=AT,...         When.
      --attr=KEY=VALUE    With this attribute.
  -n, --limit=20          How many.
      --seed=SEED         Any number.
      --rate=RATE         How fast.
  -d, --dry-run           Change nothing.
  -f, --force             Do not ask.
      --into=INTO         A file.

Where:
  --server=URL    Which server is asked.
`

const toolHelp = `Usage: tool <command>

A tool.

Flags:
  -h, --help    Show context-sensitive help.

Commands:
  show    Show users.
  bare    Do nothing.

More:
  group add    Add one.

Run "tool <command> --help" for more information on a command.
`

func TestHelp(t *testing.T) {
	for text, want := range map[string]string{
		"show --help": showHelp, "show -h --limit 3": showHelp, "--help show": showHelp, "--help": toolHelp,
		"group add -h": "Usage: tool group add --server=URL <name> [<note>]\n\nAdd one.\n\nArguments:\n  <name>      The name.\n  [<note>]    A note.\n\n" +
			"Flags:\n  -h, --help          Show context-sensitive help.\n\n      --server=URL    Its address.\n",
	} {
		_, chosen, err := parse(t, text)
		require.ErrorIs(t, err, ErrHelp, text)
		var b strings.Builder
		require.NoError(t, chosen.WriteHelp(&b, 51))
		require.Equal(t, want, b.String(), text)
	}
}

func TestNoLineOfHelpIsWiderThanAsked(t *testing.T) {
	_, chosen, err := parse(t, "show --help")
	require.ErrorIs(t, err, ErrHelp)
	for width := 48; width < 100; width++ {
		var b strings.Builder
		require.NoError(t, chosen.WriteHelp(&b, width))
		for line := range strings.Lines(b.String()) {
			require.LessOrEqual(t, utf8.RuneCountInString(strings.TrimRight(line, "\n")), width, line)
		}
	}
}

func TestAProgramThatNoCommandLineFillsIsRefused(t *testing.T) {
	for want, broken := range map[string]any{
		"a program is a pointer to a struct, not cli.program": program{},
		"--when: no command line fills complex128":            &struct{ When complex128 }{},
		"--size stands for two things": &struct {
			Size  int
			Other int `name:"size"`
		}{},
		"nothing can come behind <all> ...": &struct {
			All  []string `arg:""`
			Last string   `arg:""`
		}{},
		"nothing can come behind [<first>]": &struct {
			First string `arg:"" optional:""`
			Last  string `arg:""`
		}{},
		"a verb has arguments or verbs below it, not both": &struct {
			First string   `arg:""`
			Verb  struct{} `cmd:""`
		}{},
		"the default of --limit must be a whole number, is \"x\"": &struct {
			Limit int `default:"x"`
		}{},
		"Verb: a verb is a struct, not int": &struct {
			Verb int `cmd:""`
		}{},
	} {
		_, err := New("tool", "", broken)
		require.EqualError(t, err, want)
	}
}

func TestNamesOfFields(t *testing.T) {
	type names struct {
		DryRun, JSON, TLSCert, WarmUp, ID, Top2 bool
	}
	root, err := New("tool", "", new(names))
	require.NoError(t, err)
	var got []string
	for _, f := range root.Flags() {
		got = append(got, f.Name)
	}
	require.Equal(t, []string{"help", "dry-run", "json", "tls-cert", "warm-up", "id", "top2"}, got)
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{"show a -dfn5", "group add --server=x one -- two", "--help", "show -n", "show -", "show --=x", "- --"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		root, err := New("tool", "", new(program))
		if err != nil {
			t.Fatal(err)
		}
		chosen, err := root.Parse(strings.Split(text, " "))
		if chosen == nil {
			t.Fatal("no command, error ", err)
		}
	})
}
