package httpapi

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/rollcall/rollcall"
)

// Backups makes backups of a server's data.
type Backups interface {
	// WriteBackup writes a backup while the server works. Nothing has been written if the
	// error is CodeConflict: another is being made, or the data is no files of this server.
	WriteBackup(ctx context.Context, w io.Writer) error
}

// backupType is the type of a backup on the wire: a tar archive, packed with zstd.
const backupType = "application/zstd"

func (s *Server) registerBackup() {
	backup := op("GET /v1/backup", "backup", "Administration", "A backup of the server's data")
	backup.Description = "A tar archive packed with zstd, of one instant, made while the server works. It ends with SHA256SUMS: " +
		"an answer without that has been cut short. `rollcall backup` fetches and checks it, `rollcall restore` unpacks it. " +
		"It holds ids, names and addresses of all users, and no token, key or secret: keep the server's secret too. " +
		"Only with the embedded engine; one at a time."
	backup.Responses = map[string]*huma.Response{"200": {
		Description: "OK", Content: map[string]*huma.MediaType{backupType: {Schema: &huma.Schema{Type: huma.TypeString}}},
	}}
	s.registerPlain(backup, s.backup)
}

// backup streams a backup. What fails behind its first byte cuts the answer short, so that
// nobody takes it for whole.
func (s *Server) backup(w http.ResponseWriter, r *http.Request) {
	if s.opts.Backups == nil {
		s.fail(w, r, &rollcall.Error{Code: rollcall.CodeConflict, Detail: "this server makes no backups"})
		return
	}
	out := &backupAnswer{ResponseWriter: w, at: s.roll.Now(), begin: time.Now(), now: time.Now}
	err := s.opts.Backups.WriteBackup(r.Context(), out)
	switch {
	case err == nil:
	case !out.begun:
		s.fail(w, r, err)
	default:
		if !errors.Is(err, context.Canceled) {
			s.opts.Logger.WarnContext(r.Context(), "a backup was cut short", "error", err)
		}
		panic(http.ErrAbortHandler)
	}
}

// A backup keeps files from being removed for as long as it is read. So who reads it slower
// than slowestBackup, in bytes a second, is cut off; backupGrace may be lost on the way.
const (
	slowestBackup = 64 << 10
	backupGrace   = time.Minute
)

var errSlowReader = errors.New("it is read slower than 64 KiB a second, and holds on to files meanwhile")

// backupAnswer writes the header with the first byte.
type backupAnswer struct {
	http.ResponseWriter
	at    time.Time // as the server's clock says
	begin time.Time // as now says, which nobody sets
	now   func() time.Time
	begun bool
	sent  int64
}

func (a *backupAnswer) Write(b []byte) (int, error) {
	if !a.begun {
		a.begun = true
		h := a.Header()
		h.Set("Content-Type", backupType)
		h.Set("Content-Disposition", `attachment; filename="rollcall-`+a.at.UTC().Format("20060102T150405Z")+`.tar.zst"`)
	}
	n, err := a.ResponseWriter.Write(b)
	a.sent += int64(n)
	if took := a.now().Sub(a.begin) - backupGrace; err == nil && took.Seconds()*slowestBackup > float64(a.sent) {
		err = errSlowReader
	}
	return n, err
}
