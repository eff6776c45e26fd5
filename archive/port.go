package archive

import (
	"context"
	"errors"

	"github.com/rollcall/rollcall"
)

// Port is a DB as the domain asks it for days that have left the hot store.
type Port struct {
	*DB
	// Departures is the log that erased users are taken out of as well; nil for
	// none.
	Departures *DepartureLog
}

var _ rollcall.Archive = (*Port)(nil)

// Each implements [rollcall.Archive].
func (p *Port) Each(ctx context.Context, kind string, m Month, visit func(rollcall.MonthMap) error) error {
	return p.DB.Each(ctx, kind, m, func(r Row) error { return visit(rollcall.MonthMap(r)) })
}

// User implements [rollcall.Archive].
func (p *Port) User(ctx context.Context, user, kind string, from, to Month) ([]rollcall.MonthMap, error) {
	rows, err := p.DB.User(ctx, user, kind, from, to)
	if err != nil {
		return nil, err
	}
	maps := make([]rollcall.MonthMap, len(rows))
	for i, r := range rows {
		maps[i] = rollcall.MonthMap(r)
	}
	return maps, nil
}

// EraseUser implements [rollcall.Archive]. The log is cleared even if the
// database does not answer.
func (p *Port) EraseUser(ctx context.Context, user string) error {
	err := p.DB.EraseUser(ctx, user)
	if p.Departures != nil {
		err = errors.Join(err, p.Departures.EraseUser(user))
	}
	return err
}
