package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Value is a flag or an argument.
type Value struct {
	Name     string
	Short    rune // a flag's letter; 0 for none
	Help     string
	Enum     []string // the values it may have; nil for any
	Required bool

	arg         bool
	aliases     []string
	placeholder string
	fallback    string // the default
	group       string
	whole       bool // a list's values may contain commas
	path        bool
	hidden      bool
	given       bool // on the command line
	field       reflect.Value
}

// addValue makes a flag or an argument of a field.
func (c *Command) addValue(v reflect.Value, field reflect.StructField) error {
	tag := field.Tag
	_, arg := tag.Lookup("arg")
	_, required := tag.Lookup("required")
	_, optional := tag.Lookup("optional")
	_, hidden := tag.Lookup("hidden")
	value := &Value{
		Name: nameOf(field), Help: tag.Get("help"), Enum: list(tag.Get("enum")), Required: required || arg && !optional,
		arg: arg, aliases: list(tag.Get("aliases")), placeholder: tag.Get("placeholder"), fallback: tag.Get("default"),
		group: tag.Get("group"), whole: tag.Get("sep") == "none", path: tag.Get("type") == "path", hidden: hidden, field: v,
	}
	for _, r := range tag.Get("short") {
		value.Short = r
	}
	if value.fallback != "" {
		if err := value.set(value.fallback); err != nil {
			return fmt.Errorf("the default of %w", err)
		}
	} else if !value.settable() {
		return fmt.Errorf("%s: no command line fills %s", value, v.Type())
	}
	if arg {
		c.Args = append(c.Args, value)
	} else {
		c.flags = append(c.flags, value)
	}
	return nil
}

// list splits what a tag holds at its commas.
func list(tag string) []string {
	if tag == "" {
		return nil
	}
	return strings.Split(tag, ",")
}

// String names the value as errors do: --flag, <argument>, <argument> ... for several,
// in brackets if it need not be given.
func (v *Value) String() string {
	if !v.arg {
		return "--" + v.Name
	}
	text := "<" + v.Name + ">"
	if v.many() {
		text += " ..."
	}
	if !v.Required {
		text = "[" + text + "]"
	}
	return text
}

// Bool reports whether the value is a flag that stands alone.
func (v *Value) Bool() bool { return v.field.Kind() == reflect.Bool }

// many reports whether the value may be given more than once.
func (v *Value) many() bool {
	return v.field.Kind() == reflect.Slice || v.field.Kind() == reflect.Map
}

// words returns what may stand for a flag on the command line.
func (v *Value) words() []string {
	words := []string{"--" + v.Name}
	if v.Short != 0 {
		words = append(words, "-"+string(v.Short))
	}
	for _, alias := range v.aliases {
		words = append(words, "--"+alias)
	}
	return words
}

// sample returns what stands for the value in the help: --name=SOMETHING.
func (v *Value) sample() string {
	if v.arg || v.Bool() {
		return v.String()
	}
	text := v.placeholder
	switch {
	case text != "":
	case v.fallback != "" && v.field.Kind() == reflect.String:
		text = strconv.Quote(v.fallback)
	case v.fallback != "":
		text = v.fallback
	case v.field.Kind() == reflect.Map:
		text = "KEY=VALUE"
	default:
		text = strings.ToUpper(v.Name)
	}
	if v.field.Kind() == reflect.Slice && !v.whole {
		text += ",..."
	}
	return v.String() + "=" + text
}

// settable reports whether set knows the type of the field.
func (v *Value) settable() bool {
	kinds := []reflect.Kind{reflect.String, reflect.Bool, reflect.Int, reflect.Int64, reflect.Uint64, reflect.Float64}
	t := v.field.Type()
	switch t.Kind() {
	case reflect.Map:
		return t.Key().Kind() == reflect.String && t.Elem().Kind() == reflect.String
	case reflect.Slice:
		return slices.Contains(kinds, t.Elem().Kind())
	default:
		return slices.Contains(kinds, t.Kind())
	}
}

// give takes a value from the command line.
func (v *Value) give(text string) error {
	v.given = true
	return v.set(text)
}

// set puts a text into the field; in a list or a map it is added.
func (v *Value) set(text string) error {
	var err error
	switch v.field.Kind() {
	case reflect.Slice:
		err = v.add(text)
	case reflect.Map:
		err = v.put(text)
	default:
		err = v.parse(v.field, text)
	}
	if err != nil {
		return fmt.Errorf("%s %w", v, err)
	}
	return nil
}

// add appends what a text lists. An argument is one value, whatever it contains.
func (v *Value) add(text string) error {
	texts := []string{text}
	if !v.whole && !v.arg {
		texts = strings.Split(text, ",")
	}
	for _, one := range texts {
		item := reflect.New(v.field.Type().Elem()).Elem()
		if err := v.parse(item, one); err != nil {
			return err
		}
		v.field.Set(reflect.Append(v.field, item))
	}
	return nil
}

// put enters KEY=VALUE.
func (v *Value) put(text string) error {
	key, value, ok := strings.Cut(text, "=")
	if !ok {
		return fmt.Errorf("must be KEY=VALUE, is %q", text)
	}
	if v.field.IsNil() {
		v.field.Set(reflect.MakeMap(v.field.Type()))
	}
	v.field.SetMapIndex(reflect.ValueOf(key), reflect.ValueOf(value))
	return nil
}

// parse reads one value into a field or an item of a list.
func (v *Value) parse(into reflect.Value, text string) error {
	if v.Enum != nil && !slices.Contains(v.Enum, text) {
		return fmt.Errorf("must be one of %s, is %q", strings.Join(v.Enum, ", "), text)
	}
	switch into.Kind() {
	case reflect.String:
		if v.path {
			text = expand(text)
		}
		into.SetString(text)
	case reflect.Bool:
		on, err := strconv.ParseBool(text)
		if err != nil {
			return fmt.Errorf("must be true or false, is %q", text)
		}
		into.SetBool(on)
	case reflect.Int, reflect.Int64:
		n, err := strconv.ParseInt(text, 10, into.Type().Bits())
		if err != nil {
			return notANumber("a whole number", text, err)
		}
		into.SetInt(n)
	case reflect.Uint64:
		n, err := strconv.ParseUint(text, 10, into.Type().Bits())
		if err != nil {
			return notANumber("a whole number from 0 on", text, err)
		}
		into.SetUint(n)
	case reflect.Float64:
		n, err := strconv.ParseFloat(text, into.Type().Bits())
		if err != nil {
			return notANumber("a number", text, err)
		}
		into.SetFloat(n)
	default:
		return fmt.Errorf("cannot be %s", into.Type())
	}
	return nil
}

// notANumber says what a number has to be, and whether the text is one that is too
// large.
func notANumber(wanted, text string, err error) error {
	if errors.Is(err, strconv.ErrRange) {
		return fmt.Errorf("is out of range: %s", text)
	}
	return fmt.Errorf("must be %s, is %q", wanted, text)
}

// expand replaces ~/ at the beginning of a path, where the shell has not done so.
func expand(path string) string {
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		if home, err := os.UserHomeDir(); err == nil {
			return filepath.Join(home, rest)
		}
	}
	return path
}
