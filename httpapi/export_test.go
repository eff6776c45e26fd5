package httpapi

import "time"

// KeyCheck sets how often streams look whether their credentials still work.
func (s *Server) KeyCheck(d time.Duration) { s.streams.credentials.every = d }

// LookEvery sets how often streams look at their friends.
func (s *Server) LookEvery(d time.Duration) { s.streams.lookEvery = d }
