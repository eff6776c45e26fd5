package archive

import (
	"context"
	"errors"

	"github.com/rollcall/rollcall"
)

// Adapter is a DB as the domain asks it for days that have left the hot store.
type Adapter struct {
	*DB
	// OffloadLog is the log that erased users are taken out of as well; nil for
	// none.
	OffloadLog *OffloadLog
}

var _ rollcall.Archive = (*Adapter)(nil)

// Each implements [rollcall.Archive].
func (a *Adapter) Each(ctx context.Context, kind string, m Month, visit func(rollcall.MonthMap) error) error {
	return a.DB.Each(ctx, kind, m, func(r Row) error { return visit(rollcall.MonthMap(r)) })
}

// User implements [rollcall.Archive].
func (a *Adapter) User(ctx context.Context, user, kind string, from, to Month) ([]rollcall.MonthMap, error) {
	rows, err := a.DB.User(ctx, user, kind, from, to)
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
func (a *Adapter) EraseUser(ctx context.Context, user string) error {
	err := a.DB.EraseUser(ctx, user)
	if a.OffloadLog != nil {
		err = errors.Join(err, a.OffloadLog.EraseUser(user))
	}
	return err
}
