package httpapi

import "slices"

// nameSet is a set of users in the order of their bytes. It is a list, as there are many
// sets that change little: a map would take twice as much.
type nameSet []string

func (s nameSet) has(name string) bool {
	_, found := slices.BinarySearch(s, name)
	return found
}

// add adds a name, and reports whether it was not there. Room is made for a few more.
func (s *nameSet) add(name string) bool {
	at, found := slices.BinarySearch(*s, name)
	if found {
		return false
	}
	if n := len(*s); n == cap(*s) {
		grown := make(nameSet, n, n+n/8+4)
		copy(grown, *s)
		*s = grown
	}
	*s = slices.Insert(*s, at, name)
	return true
}

// remove removes a name, and reports whether it was there.
func (s *nameSet) remove(name string) bool {
	at, found := slices.BinarySearch(*s, name)
	if found {
		*s = slices.Delete(*s, at, at+1)
	}
	return found
}
