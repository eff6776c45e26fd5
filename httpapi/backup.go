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
	out := &backupAnswer{ResponseWriter: w, at: s.roll.Now()}
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

// backupAnswer writes the header with the first byte.
type backupAnswer struct {
	http.ResponseWriter
	at    time.Time
	begun bool
}

func (a *backupAnswer) Write(b []byte) (int, error) {
	if !a.begun {
		a.begun = true
		h := a.Header()
		h.Set("Content-Type", backupType)
		h.Set("Content-Disposition", `attachment; filename="rollcall-`+a.at.UTC().Format("20060102T150405Z")+`.tar.zst"`)
	}
	return a.ResponseWriter.Write(b)
}
