package loadgen

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/rollcall/rollcall"
)

// Operation is something that is done again and again, and measured by itself.
type Operation string

// The operations.
const (
	Beats   Operation = "beats"   // a beat of Options.Batch users
	Touches Operation = "touches" // a touch of a session
	Logins  Operation = "logins"  // a login, which replaces the user's last session
	Verify  Operation = "verify"  // is this session live?
	Lists   Operation = "lists"   // the first page of sessions, with the total
	Friends Operation = "friends" // the friends of a user who are online
)

// Operations returns all operations.
func Operations() []Operation { return []Operation{Beats, Touches, Logins, Verify, Lists, Friends} }

// Share says how many of all operations are this one: Weight of the sum of weights.
type Share struct {
	Operation Operation
	Weight    int
}

// Mix is a set of operations.
type Mix []Share

// maxWeight bounds one weight of a mix.
const maxWeight = 1_000_000

// NamedMix is a mix that has a name.
type NamedMix struct {
	Name string
	Mix  Mix
}

// NamedMixes returns the mixes that ParseMix knows by name.
func NamedMixes() []NamedMix {
	return []NamedMix{
		{"mixed", Mix{{Beats, 80}, {Logins, 5}, {Verify, 10}, {Lists, 3}, {Friends, 2}}},
		{"site", Mix{{Touches, 60}, {Verify, 30}, {Friends, 6}, {Logins, 3}, {Lists, 1}}},
		{"beats", Mix{{Beats, 1}}},
		{"logins", Mix{{Logins, 1}}},
		{"verify", Mix{{Verify, 1}}},
	}
}

// ParseMix reads a mix: the name of one, or weights such as
// "beats=80,logins=5,verify=10".
func ParseMix(text string) (Mix, error) {
	var names []string
	for _, named := range NamedMixes() {
		if named.Name == text {
			return named.Mix, nil
		}
		names = append(names, named.Name)
	}
	if !strings.Contains(text, "=") {
		return nil, rollcall.Invalid("mix", "%.40q is not one of %s; or give weights, such as beats=80,logins=5,verify=15", text, strings.Join(names, ", "))
	}
	var mix Mix
	for part := range strings.SplitSeq(text, ",") {
		name, weight, _ := strings.Cut(part, "=")
		n, err := strconv.Atoi(weight)
		if err != nil {
			return nil, rollcall.Invalid("mix", "%.40q is not an operation and its weight, such as beats=80", part)
		}
		mix = append(mix, Share{Operation(name), n})
	}
	return mix, mix.validate()
}

func (m Mix) validate() error {
	if len(m) == 0 {
		return rollcall.Invalid("mix", "names no operation")
	}
	for i, s := range m {
		switch {
		case !slices.Contains(Operations(), s.Operation):
			return rollcall.Invalid("mix", "%.40q is not an operation; there are %s", s.Operation, strings.Trim(fmt.Sprint(Operations()), "[]"))
		case s.Weight < 1 || s.Weight > maxWeight:
			return rollcall.Invalid("mix", "the weight of %s must be between 1 and %d, is %d", s.Operation, maxWeight, s.Weight)
		case m[:i].has(s.Operation):
			return rollcall.Invalid("mix", "names %s twice", s.Operation)
		}
	}
	return nil
}

// String returns the mix as ParseMix reads it.
func (m Mix) String() string {
	parts := make([]string, len(m))
	for i, s := range m {
		parts[i] = fmt.Sprintf("%s=%d", s.Operation, s.Weight)
	}
	return strings.Join(parts, ",")
}

// Only reports whether this is the one operation of the mix.
func (m Mix) Only(o Operation) bool { return len(m) == 1 && m[0].Operation == o }

// has reports whether one of these operations is in the mix.
func (m Mix) has(any ...Operation) bool {
	return slices.ContainsFunc(m, func(s Share) bool { return slices.Contains(any, s.Operation) })
}

// pick returns the index of the operation that a random number below the sum of all
// weights stands for.
func (m Mix) pick(n int) int {
	for i, s := range m {
		if n < s.Weight {
			return i
		}
		n -= s.Weight
	}
	return len(m) - 1
}

func (m Mix) sum() int {
	sum := 0
	for _, s := range m {
		sum += s.Weight
	}
	return sum
}
