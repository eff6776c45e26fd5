package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rollcall/rollcall/internal/cli"
)

type completionCmd struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

// Help is the verb's own part of its help.
func (completionCmd) Help() string {
	return `Writes what a shell needs to complete rollcall's verbs, flags and contexts:
  bash   source <(rollcall completion bash)            in ~/.bashrc
  zsh    source <(rollcall completion zsh)             in ~/.zshrc, after compinit
  fish   rollcall completion fish | source             in config.fish`
}

// Each script asks the program itself for the words, so that it always fits it. The
// answer has a line for each word: the word, a tab, what it is.
const bashCompletion = `_rollcall() {
  local IFS=$'\n' words
  words=$(rollcall complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null | cut -f 1)
  COMPREPLY=($(compgen -W "$words" -- "${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _rollcall rollcall
`

const zshCompletion = `_rollcall() {
  local -a found
  local line
  while IFS= read -r line; do
    found+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}")
  done < <(rollcall complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)
  if (( $#found )); then _describe rollcall found; else _files; fi
}
compdef _rollcall rollcall
`

const fishCompletion = `function __rollcall_words
    set -l before (commandline -opc)
    set -l found (rollcall complete -- $before[2..] (commandline -ct) 2>/dev/null)
    if test (count $found) -gt 0
        printf '%s\n' $found
    else
        __fish_complete_path (commandline -ct)
    end
end
complete -c rollcall -f -a '(__rollcall_words)'
`

// Run writes the script of a shell.
func (c *completionCmd) Run(a *app) error {
	script := map[string]string{"bash": bashCompletion, "zsh": zshCompletion, "fish": fishCompletion}[c.Shell]
	_, err := fmt.Fprint(a.stdout, script)
	return err
}

// completeCmd is what the scripts call.
type completeCmd struct {
	Words []string `arg:"" optional:""`
}

// Run writes the words that the last one may become. It says nothing about faults:
// whoever presses the tab key wants no message.
func (c *completeCmd) Run(a *app) error {
	program, err := commandLine(new(commands))
	if err != nil {
		return err
	}
	words := c.Words
	if len(words) == 0 {
		words = []string{""}
	}
	for _, w := range complete(program, words, contextNames) {
		fmt.Fprintf(a.stdout, "%s\t%s\n", w.text, w.about)
	}
	return nil
}

// word is something that may stand on the command line, and what it is.
type word struct{ text, about string }

// contextNames returns the user's contexts; none if they cannot be read.
func contextNames() []word {
	all, err := readContexts()
	if err != nil {
		return nil
	}
	var out []word
	for _, name := range sortedKeys(all.Contexts) {
		out = append(out, word{name, all.Contexts[name].Server})
	}
	return out
}

// complete returns what the last word may become, after those before it.
func complete(node *cli.Command, words []string, contexts func() []word) []word {
	last := words[len(words)-1]
	var value *cli.Value // that the next word is the value of
	places := 0          // positional words so far
	for _, w := range words[:len(words)-1] {
		switch {
		case value != nil:
			value = nil
		case strings.HasPrefix(w, "-"):
			if f := node.Flag(w); f != nil && !f.Bool() {
				value = f
			}
		default:
			if child := node.Command(w); child != nil {
				node, places = child, 0
			} else {
				places++
			}
		}
	}
	var out []word
	switch name, _, assigned := strings.Cut(last, "="); {
	case value != nil:
		out = valuesOf(value, "", contexts)
	case assigned && strings.HasPrefix(last, "-"):
		if f := node.Flag(name); f != nil {
			out = valuesOf(f, name+"=", contexts)
		}
	case strings.HasPrefix(last, "-"):
		out = flagsOf(node)
	default:
		out = placeOfWord(node, places, contexts)
	}
	return slices.DeleteFunc(out, func(w word) bool { return !strings.HasPrefix(w.text, last) })
}

// placeOfWord returns the verbs below a node, or what its next argument may be.
func placeOfWord(node *cli.Command, places int, contexts func() []word) []word {
	var out []word
	for _, child := range node.Commands {
		if !child.Hidden {
			out = append(out, word{child.Name, child.Help})
		}
	}
	switch {
	case len(out) > 0 || places >= len(node.Args):
		return out
	case node.Parent != nil && node.Parent.Name == "context" && node.Name != "add":
		return contexts()
	}
	return valuesOf(node.Args[places], "", contexts)
}

// valuesOf returns the values that a flag or an argument may have, if they can be
// told.
func valuesOf(v *cli.Value, before string, contexts func() []word) []word {
	var out []word
	if v.Name == "context" {
		for _, c := range contexts() {
			out = append(out, word{before + c.text, c.about})
		}
		return out
	}
	for _, text := range v.Enum {
		out = append(out, word{before + text, ""})
	}
	return out
}

func flagsOf(node *cli.Command) []word {
	var out []word
	for _, f := range node.Flags() {
		out = append(out, word{"--" + f.Name, f.Help})
	}
	slices.SortFunc(out, func(a, b word) int { return strings.Compare(a.text, b.text) })
	return out
}
