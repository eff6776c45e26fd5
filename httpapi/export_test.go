package httpapi

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// KeyCheck sets how often streams look whether their credentials still work.
func (s *Server) KeyCheck(d time.Duration) { s.streams.credentials.every = d }

// LookEvery sets how often streams look at their friends.
func (s *Server) LookEvery(d time.Duration) { s.streams.lookEvery = d }

// Described returns the statuses that the document names, by path and method, before
// it is written.
func (s *Server) Described() map[string]map[string][]string {
	out := map[string]map[string][]string{}
	for _, op := range operations(s.api.OpenAPI()) {
		if out[op.Path] == nil {
			out[op.Path] = map[string][]string{}
		}
		out[op.Path][strings.ToLower(op.Method)] = slices.Sorted(maps.Keys(op.Responses))
	}
	return out
}
