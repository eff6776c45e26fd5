package httpapi

import "time"

// LookEvery sets how often streams look at their friends.
func (s *Server) LookEvery(d time.Duration) { s.streams.lookEvery = d }
