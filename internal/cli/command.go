package cli

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode"
)

// Command is a verb; the root is the program.
type Command struct {
	Name   string
	Help   string // a sentence
	Detail string // paragraphs
	Hidden bool
	Parent *Command // nil for the program

	Commands []*Command
	Args     []*Value

	flags  []*Value // its own; those of its parents count too
	group  string
	groups []Group // of the program
	target any
}

// Group is a heading of the help, and the key by which tags name it.
type Group struct{ Key, Title string }

// New builds a program from a pointer to its struct. An error says what is wrong with
// a tag.
func New(name, help string, program any, groups ...Group) (*Command, error) {
	v := reflect.ValueOf(program)
	if v.Kind() != reflect.Pointer || v.Elem().Kind() != reflect.Struct {
		return nil, fmt.Errorf("a program is a pointer to a struct, not %T", program)
	}
	c := &Command{Name: name, Help: help, groups: groups}
	asked := &Value{Name: "help", Short: 'h', Help: "Show context-sensitive help.", field: reflect.ValueOf(new(bool)).Elem()}
	c.flags = append(c.flags, asked)
	if err := c.build(v.Elem()); err != nil {
		return nil, err
	}
	return c, nil
}

// Target returns a pointer to the struct that the command fills.
func (c *Command) Target() any { return c.target }

// Path returns the words that name the command, without the program's.
func (c *Command) Path() string {
	if c.Parent == nil {
		return ""
	}
	return strings.TrimSpace(c.Parent.Path() + " " + c.Name)
}

// Flags returns the flags that the command takes: those of the program first, its own
// last.
func (c *Command) Flags() []*Value {
	if c.Parent == nil {
		return slices.Clone(c.flags)
	}
	return append(c.Parent.Flags(), c.flags...)
}

// Flag returns the flag of a word such as --user or -y; nil if there is none.
func (c *Command) Flag(word string) *Value {
	for _, f := range c.Flags() {
		if slices.Contains(f.words(), word) {
			return f
		}
	}
	return nil
}

// Command returns the verb of that name directly below c; nil if there is none.
func (c *Command) Command(name string) *Command {
	for _, child := range c.Commands {
		if child.Name == name {
			return child
		}
	}
	return nil
}

// leaves returns the verbs below c that have none below them and are not hidden.
func (c *Command) leaves() []*Command {
	var out []*Command
	for _, child := range c.Commands {
		switch {
		case child.Hidden:
		case len(child.Commands) == 0:
			out = append(out, child)
		default:
			out = append(out, child.leaves()...)
		}
	}
	return out
}

// heading returns the key of the group below which the command is listed.
func (c *Command) heading() string {
	if c.group != "" || c.Parent == nil {
		return c.group
	}
	return c.Parent.heading()
}

// program returns the command at the top.
func (c *Command) program() *Command {
	if c.Parent == nil {
		return c
	}
	return c.Parent.program()
}

// build makes the command's verbs, flags and arguments of a struct.
func (c *Command) build(v reflect.Value) error {
	c.target = v.Addr().Interface()
	if told, ok := c.target.(interface{ Help() string }); ok {
		c.Detail = told.Help()
	}
	if err := c.addFields(v); err != nil {
		return err
	}
	return c.check()
}

func (c *Command) addFields(v reflect.Value) error {
	for i := range v.NumField() {
		field, tag := v.Field(i), v.Type().Field(i)
		_, verb := tag.Tag.Lookup("cmd")
		switch {
		case tag.Anonymous && field.Kind() == reflect.Struct:
			if err := c.addFields(field); err != nil {
				return err
			}
		case !tag.IsExported():
		case verb:
			if err := c.addCommand(field, tag); err != nil {
				return err
			}
		default:
			if err := c.addValue(field, tag); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *Command) addCommand(v reflect.Value, field reflect.StructField) error {
	if v.Kind() != reflect.Struct {
		return fmt.Errorf("%s: a verb is a struct, not %s", field.Name, v.Type())
	}
	_, hidden := field.Tag.Lookup("hidden")
	child := &Command{
		Name: nameOf(field), Help: field.Tag.Get("help"), Hidden: hidden, group: field.Tag.Get("group"), Parent: c,
	}
	c.Commands = append(c.Commands, child)
	if err := child.build(v); err != nil {
		return fmt.Errorf("%s: %w", child.Name, err)
	}
	return nil
}

// check finds what no command line could mean.
func (c *Command) check() error {
	var names []string
	for _, child := range c.Commands {
		names = append(names, child.Name)
	}
	for _, f := range c.Flags() {
		names = append(names, f.words()...)
	}
	slices.Sort(names)
	for i := 1; i < len(names); i++ {
		if names[i] == names[i-1] {
			return fmt.Errorf("%s stands for two things", names[i])
		}
	}
	if len(c.Args) > 0 && len(c.Commands) > 0 {
		return errors.New("a verb has arguments or verbs below it, not both")
	}
	for i, arg := range c.Args {
		if i == 0 {
			continue
		}
		if before := c.Args[i-1]; before.many() || arg.Required && !before.Required {
			return fmt.Errorf("nothing can come behind %s", before)
		}
	}
	return nil
}

// nameOf returns the name that a field has on the command line.
func nameOf(field reflect.StructField) string {
	if name := field.Tag.Get("name"); name != "" {
		return name
	}
	runes := []rune(field.Name)
	var b strings.Builder
	for i, r := range runes {
		// A word begins at a capital behind a small letter, or before one.
		if i > 0 && unicode.IsUpper(r) && (!unicode.IsUpper(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1])) {
			b.WriteByte('-')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}
