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

// visitName is a name that has visitors.
type visitName struct {
	Name      string  `json:"name"`
	LastVisit instant `json:"last_visit" doc:"when the newest hour with visitors began"`
}

// KindInput is the path of a kind.
type KindInput struct {
	Kind string `path:"kind"`
}

// VisitNameInput is the path of a name of visits.
type VisitNameInput struct {
	Name string `path:"name" doc:"percent-encoded"`
}

func (s *Server) registerNames() {
	register(s, op("GET /v1/kinds", "list-kinds", "Administration", "The kinds of users and what is of them; there may be 64"), s.listKinds)
	registerQuiet(s, op("DELETE /v1/kinds/{kind}", "delete-kind", "Administration", "Remove a kind that nothing is of"), s.deleteKind)
	register(s, op("GET /v1/visits/names", "list-visit-names", "Administration", "The names that have visitors; there may be 1,000"), s.listVisitNames)
	registerQuiet(s, op("DELETE /v1/visits/names/{name}", "delete-visit-name", "Administration", "Forget a name and all that was counted under it"), s.deleteVisitName)
}

func (s *Server) listKinds(ctx context.Context, _ *struct{}) (items[kindUse], error) {
	kinds, err := s.view(ctx).Kinds(ctx)
	return items[kindUse]{each(kinds, func(k rollcall.KindUse) kindUse { return kindUse(k) })}, err
}

func (s *Server) deleteKind(ctx context.Context, in *KindInput) error {
	return s.view(ctx).DeleteKind(ctx, in.Kind)
}

func (s *Server) listVisitNames(ctx context.Context, _ *struct{}) (items[visitName], error) {
	names, err := s.view(ctx).VisitNames(ctx)
	return items[visitName]{each(names, func(n rollcall.VisitName) visitName {
		return visitName{Name: n.Name, LastVisit: instantOf(n.Last)}
	})}, err
}

func (s *Server) deleteVisitName(ctx context.Context, in *VisitNameInput) error {
	return s.view(ctx).DeleteVisitName(ctx, in.Name)
}
