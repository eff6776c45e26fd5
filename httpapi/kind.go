package httpapi

import (
	"context"

	"github.com/rollcall/rollcall"
)

// kindUse is a kind of users and what is of it.
type kindUse struct {
	Kind     string `json:"kind"`
	Users    int    `json:"users" doc:"whose own kind it was made"`
	Sessions int    `json:"sessions" doc:"live ones"`
	Days     int    `json:"days" doc:"with marks of it"`
}

// KindInput is the path of a kind.
type KindInput struct {
	Kind string `path:"kind"`
}

func (s *Server) registerKinds() {
	register(s, op("GET /v1/kinds", "list-kinds", "Administration", "The kinds of users and what is of them; there may be 64"), s.listKinds)
	registerQuiet(s, op("DELETE /v1/kinds/{kind}", "delete-kind", "Administration", "Remove a kind that nothing is of"), s.deleteKind)
}

func (s *Server) listKinds(ctx context.Context, _ *struct{}) (items[kindUse], error) {
	kinds, err := s.view(ctx).Kinds(ctx)
	return items[kindUse]{each(kinds, func(k rollcall.KindUse) kindUse { return kindUse(k) })}, err
}

func (s *Server) deleteKind(ctx context.Context, in *KindInput) error {
	return s.view(ctx).DeleteKind(ctx, in.Kind)
}
