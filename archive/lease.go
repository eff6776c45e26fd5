package archive

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rollcall/rollcall"
)

// Lease is the right to move days, which one process has at a time. It counts by
// the database's clock. One that has lapsed is still held as long as nobody else
// took it: nothing can have happened meanwhile. Once it is lost, what needs it
// fails with CodeConflict and [ErrLeaseLost] and changes nothing.
type Lease struct {
	db    *DB
	owner string
	ttl   time.Duration
	term  int64
}

// MaxLease is the longest a lease may last without being renewed.
const MaxLease = 24 * time.Hour

// Acquire takes the lease for ttl, from 100 ms to [MaxLease]. The owner, 1 to 128
// bytes of text, is shown to others and should differ from run to run. While
// another holds the lease the error has CodeConflict and [ErrHeld], and says who
// it is and until when.
func (db *DB) Acquire(ctx context.Context, owner string, ttl time.Duration) (*Lease, error) {
	return db.acquire(ctx, owner, ttl, "", nil)
}

// acquire is [DB.Acquire] by the process with the number holder. It also takes the
// lease from processes with the numbers dead, whatever time they have left.
func (db *DB) acquire(ctx context.Context, owner string, ttl time.Duration, holder string, dead []string) (*Lease, error) {
	if rollcall.CheckUser(owner) != nil {
		return nil, rollcall.Invalid("owner", "must be 1 to 128 bytes of UTF-8 without control characters")
	}
	if ttl < 100*time.Millisecond || ttl > MaxLease {
		return nil, rollcall.Invalid("ttl", "must be from 100ms to %s, is %s", MaxLease, ttl)
	}
	l := &Lease{db: db, owner: owner, ttl: ttl}
	err := db.write(ctx, func(s session) error {
		free := "owner = '' OR expires_at <= " + s.dialect.now
		args := []any{owner, holder}
		for _, d := range dead {
			free += " OR holder = ?"
			args = append(args, d)
		}
		took, err := s.exec("UPDATE rollcall_archive_lease SET owner = ?, holder = ?, term = term + 1, expires_at = "+
			s.dialect.later(ttl)+" WHERE name = 'runner' AND ("+free+")", args...)
		if err != nil {
			return err
		}
		var holder string
		var until stamp
		found, err := s.one([]any{&holder, &l.term, &until},
			"SELECT owner, term, expires_at FROM rollcall_archive_lease WHERE name = 'runner'")
		switch {
		case err != nil:
			return err
		case !found:
			return errNoLease
		case took == 0:
			return conflict(fmt.Sprintf("the archive is being worked on by %q until %s", holder, until.Format(time.RFC3339)), ErrHeld)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return l, nil
}

var errNoLease = errors.New("the row of rollcall_archive_lease is missing")

// Owner returns who Acquire was told holds the lease.
func (l *Lease) Owner() string { return l.owner }

// Renew makes the lease last its full time from now on. It waits while a write
// of the lease is under way.
func (l *Lease) Renew(ctx context.Context) error {
	return l.db.write(ctx, func(s session) error {
		return l.own(s.exec("UPDATE rollcall_archive_lease SET expires_at = "+s.dialect.later(l.ttl)+
			" WHERE name = 'runner' AND term = ? AND owner <> ''", l.term))
	})
}

// Release gives the lease up. Giving up one that was lost is no error.
func (l *Lease) Release(ctx context.Context) error {
	return l.db.write(ctx, func(s session) error {
		_, err := s.exec("UPDATE rollcall_archive_lease SET owner = '' WHERE name = 'runner' AND term = ?", l.term)
		return err
	})
}

// write runs f in a transaction that only the lease's holder gets, one at a time.
// Its first statement takes the lease's row, and with it everyone else's turn.
func (l *Lease) write(ctx context.Context, f func(session) error) error {
	return l.db.write(ctx, func(s session) error {
		err := l.own(s.exec("UPDATE rollcall_archive_lease SET writes = writes + 1"+
			" WHERE name = 'runner' AND term = ? AND owner <> ''", l.term))
		if err != nil {
			return err
		}
		return f(s)
	})
}

func (l *Lease) own(met int64, err error) error {
	if err == nil && met == 0 {
		return conflict("another process works on the archive now", ErrLeaseLost)
	}
	return err
}
