package cli

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// ErrHelp is the error of a command line that asks for help.
var ErrHelp = errors.New("help was asked for")

// Parse reads a command line, without the program's name, and returns the verb that it
// names. The verb is told with an error as well, as far as it was understood. A program
// reads one command line.
func (c *Command) Parse(args []string) (*Command, error) {
	l := line{at: c, rest: args}
	for len(l.rest) > 0 {
		if err := l.step(); err != nil {
			return l.at, err
		}
	}
	if l.at.Flag("--help").given {
		return l.at, ErrHelp
	}
	return l.at, l.at.complete()
}

// line is a command line that is being read.
type line struct {
	at       *Command
	rest     []string // what has not been read
	place    int      // of the next argument of at
	verbatim bool     // behind --, where nothing is a flag
}

// step reads a word, and the value of a flag behind it.
func (l *line) step() error {
	word := l.rest[0]
	l.rest = l.rest[1:]
	switch {
	case l.verbatim || !isFlag(word):
		return l.readWord(word)
	case word == "--":
		l.verbatim = true
		return nil
	case strings.HasPrefix(word, "--"):
		return l.readLong(word)
	default:
		return l.readShort(word)
	}
}

// isFlag reports whether a word looks like a flag. A dash alone is standard input.
func isFlag(word string) bool { return len(word) > 1 && word[0] == '-' }

// readWord takes a word as the next argument, else as the name of a verb.
func (l *line) readWord(word string) error {
	if l.place < len(l.at.Args) {
		arg := l.at.Args[l.place]
		if !arg.many() {
			l.place++
		}
		return arg.give(word)
	}
	if child := l.at.Command(word); child != nil {
		l.at, l.place = child, 0
		return nil
	}
	var known []string
	for _, child := range l.at.Commands {
		if !child.Hidden {
			known = append(known, child.Name)
		}
	}
	return fmt.Errorf("unexpected argument %s%s", word, meant(word, known))
}

// readLong takes --flag, --flag=value or --flag value.
func (l *line) readLong(word string) error {
	name, text, assigned := strings.Cut(word, "=")
	flag := l.at.Flag(name)
	if flag == nil {
		return l.unknown(name)
	}
	if assigned {
		return flag.give(text)
	}
	return l.readValue(flag)
}

// readShort takes -y, several letters at once such as -fy, -n5 or -n 5.
func (l *line) readShort(word string) error {
	letters := []rune(word[1:])
	for i, letter := range letters {
		flag := l.at.Flag("-" + string(letter))
		switch {
		case flag == nil:
			return l.unknown("-" + string(letter))
		case flag.Bool():
			if err := flag.give("true"); err != nil {
				return err
			}
		case i+1 < len(letters):
			return flag.give(strings.TrimPrefix(string(letters[i+1:]), "="))
		default:
			return l.readValue(flag)
		}
	}
	return nil
}

// readValue takes the word behind a flag as its value. What looks like a flag is none,
// lest a value that was forgotten swallows it, unless it is one of the values allowed.
func (l *line) readValue(flag *Value) error {
	if flag.Bool() {
		return flag.give("true")
	}
	if len(l.rest) == 0 {
		return fmt.Errorf("%s needs a value", flag)
	}
	word := l.rest[0]
	if isFlag(word) && !slices.Contains(flag.Enum, word) {
		return fmt.Errorf("%s needs a value; if %s is it, write %s=%s", flag, word, flag, word)
	}
	l.rest = l.rest[1:]
	return flag.give(word)
}

func (l *line) unknown(flag string) error {
	var known []string
	for _, f := range l.at.Flags() {
		if !f.hidden {
			known = append(known, f.words()...)
		}
	}
	return fmt.Errorf("unknown flag %s%s", flag, meant(flag, known))
}

// complete returns an error that names what the command line lacks.
func (c *Command) complete() error {
	var missing []string
	for _, f := range c.Flags() {
		if f.Required && !f.given {
			missing = append(missing, f.sample())
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("missing flags: %s", strings.Join(missing, ", "))
	}
	for _, arg := range c.Args {
		if arg.Required && !arg.given {
			missing = append(missing, arg.String())
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("expected %s", strings.Join(missing, " "))
	}
	for _, child := range c.Commands {
		if !child.Hidden {
			missing = append(missing, strconv.Quote(child.Name))
		}
	}
	if len(missing) == 0 {
		return nil
	}
	const told = 5
	if len(missing) > told {
		missing = append(missing[:told], "...")
	}
	return fmt.Errorf("expected one of %s", strings.Join(missing, ", "))
}

// meant asks whether one of the words that are known was meant: those that begin so, or
// are at most two letters away, if that is not more than half of the word.
func meant(word string, known []string) string {
	far := min(2, len(word)/2)
	if len(word) < 3 {
		far = 0 // each flag of one letter is near every other
	}
	var near []string
	for _, k := range known {
		if strings.HasPrefix(k, word) || distance(k, word) <= far {
			near = append(near, strconv.Quote(k))
		}
	}
	switch len(near) {
	case 0:
		return ""
	case 1:
		return ", did you mean " + near[0] + "?"
	default:
		return ", did you mean one of " + strings.Join(near, ", ") + "?"
	}
}

// distance is Levenshtein's: how many letters must be added, removed or changed to make
// one word of the other.
func distance(a, b string) int {
	from, to := []rune(a), []rune(b)
	row := make([]int, len(to)+1) // from the letters of a so far to each beginning of b
	for j := range row {
		row[j] = j
	}
	for i := range from {
		diagonal := row[0]
		row[0] = i + 1
		for j := range to {
			changed := diagonal
			if from[i] != to[j] {
				changed++
			}
			diagonal = row[j+1]
			row[j+1] = min(changed, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(to)]
}
