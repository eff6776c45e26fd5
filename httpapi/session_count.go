package httpapi

import (
	"context"

	"github.com/rollcall/rollcall"
)

type sessionCountsInput struct {
	By    string `query:"by" required:"true" enum:"app,device,kind" doc:"the field whose values are counted"`
	Limit int    `query:"limit" default:"20" minimum:"1" maximum:"1000" doc:"values in the answer"`
}

// sessionCounts are the live sessions by the values of a field.
type sessionCounts struct {
	By      string       `json:"by" enum:"app,device,kind"`
	Items   []valueCount `json:"items" nullable:"false" doc:"most sessions first, ties by value"`
	Other   int          `json:"other" doc:"sessions of values that are not among the items"`
	Total   int          `json:"total" doc:"all live sessions"`
	Partial bool         `json:"partial,omitempty" doc:"there are more values than the server looks at: the counts are exact, but a value may be missing"`
}

type valueCount struct {
	Value    string `json:"value" doc:"empty for sessions without one"`
	Sessions int    `json:"sessions"`
}

func (s *Server) registerSessionCounts() {
	register(s, op("GET /v1/sessions/counts", "count-sessions", "Sessions", "How many live sessions there are by app, device or kind"), s.sessionCounts)
}

func (s *Server) sessionCounts(ctx context.Context, in *sessionCountsInput) (sessionCounts, error) {
	found, err := s.view(ctx).SessionCounts(ctx, rollcall.SessionCountQuery{By: rollcall.SessionField(in.By), Limit: in.Limit})
	return sessionCounts{
		By: in.By, Items: each(found.Items, func(c rollcall.ValueCount) valueCount { return valueCount(c) }),
		Other: found.Other, Total: found.Total, Partial: found.Partial,
	}, err
}
