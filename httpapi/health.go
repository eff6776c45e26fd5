package httpapi

import (
	"context"
	"errors"

	"github.com/rollcall/rollcall"
)

// health is the answer of the health checks when all is well.
type health struct {
	Status string `json:"status" example:"ok"`
}

// errDraining marks the answer of a server that is about to stop.
var errDraining = errors.New("draining")

func (s *Server) registerHealth() {
	register(s, op("GET /healthz", "healthz", "Operation", "Whether the process answers"), s.healthz)
	register(s, op("GET /readyz", "readyz", "Operation", "Whether reads and writes work, and new requests are welcome"), s.readyz)
}

func (s *Server) healthz(context.Context, *struct{}) (health, error) {
	return health{"ok"}, nil
}

func (s *Server) readyz(ctx context.Context, _ *struct{}) (health, error) {
	if s.draining.Load() {
		return health{}, &rollcall.Error{Code: rollcall.CodeUnavailable, Detail: "shutting down", Err: errDraining}
	}
	err := s.roll.Ready(ctx)
	if err == nil {
		return health{"ready"}, nil
	}
	if e := (*rollcall.Error)(nil); errors.As(err, &e) && e.Code == rollcall.CodeStorageFull {
		return health{}, err
	}
	return health{}, &rollcall.Error{Code: rollcall.CodeUnavailable, Detail: "the engine cannot read or write; the log says why", Err: err}
}
