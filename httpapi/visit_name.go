package httpapi

import (
	"context"

	"github.com/rollcall/rollcall"
)

// visitName is a name that has visitors.
type visitName struct {
	Name      string  `json:"name"`
	LastVisit instant `json:"last_visit" doc:"when the newest hour with visitors began"`
}

// VisitNameInput is the path of a name of visits.
type VisitNameInput struct {
	Name string `path:"name" doc:"percent-encoded"`
}

func (s *Server) registerVisitNames() {
	register(s, op("GET /v1/visits/names", "list-visit-names", "Administration", "The names that have visitors; there may be 1,000"), s.listVisitNames)
	registerQuiet(s, op("DELETE /v1/visits/names/{name}", "delete-visit-name", "Administration", "Forget a name and all that was counted under it"), s.deleteVisitName)
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
