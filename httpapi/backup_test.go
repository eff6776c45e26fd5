package httpapi_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/httpapi"
)

// fakeBackups writes text, and then fails if it is to.
type fakeBackups struct {
	text string
	err  error
}

func (b *fakeBackups) WriteBackup(_ context.Context, w io.Writer) error {
	if b.text != "" {
		if _, err := io.WriteString(w, b.text); err != nil {
			return err
		}
	}
	return b.err
}

func TestABackupIsStreamed(t *testing.T) {
	s := newSite(t, func(o *httpapi.Options) { o.Backups = &fakeBackups{text: "all the data"} })
	require.Equal(t, "all the data", s.ok(200, "admin", "GET", "/v1/backup", ""))
	s.refused(403, rollcall.CodeForbidden, "writer", "GET", "/v1/backup", "")
}

func TestABackupThatCannotBeginIsRefused(t *testing.T) {
	backups := &fakeBackups{err: &rollcall.Error{Code: rollcall.CodeConflict, Detail: "another backup is being made"}}
	s := newSite(t, func(o *httpapi.Options) { o.Backups = backups })
	require.Equal(t, "another backup is being made", s.refused(409, rollcall.CodeConflict, "admin", "GET", "/v1/backup", "").Detail)
	s = newSite(t)
	s.refused(409, rollcall.CodeConflict, "admin", "GET", "/v1/backup", "")
}

// TestABackupThatFailsInTheMiddleIsCutShort: a client must not take it for whole.
func TestABackupThatFailsInTheMiddleIsCutShort(t *testing.T) {
	s := newSite(t, func(o *httpapi.Options) {
		o.Backups = &fakeBackups{text: strings.Repeat("data", 100_000), err: errors.New("the disk is gone")}
	})
	listening := httptest.NewServer(s.server)
	defer listening.Close()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, listening.URL+"/v1/backup", nil)
	require.NoError(t, err)
	req.Header.Set("Authorization", "Bearer "+s.keys["admin"])
	res, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	require.Equal(t, 200, res.StatusCode)
	_, err = io.ReadAll(res.Body)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.NoError(t, res.Body.Close())
}

func TestBackupMetrics(t *testing.T) {
	var metrics *httpapi.Metrics
	s := newSite(t, func(o *httpapi.Options) { metrics = o.Metrics })
	require.Contains(t, s.ok(200, "", "GET", "/metrics", ""), "rollcall_backup_last_bytes NaN\n")
	metrics.BackedUp(noon, 4711)
	text := s.ok(200, "", "GET", "/metrics", "")
	require.Contains(t, text, "rollcall_backup_last_bytes 4711\n")
	require.NotContains(t, text, "rollcall_backup_last_success_timestamp_seconds NaN")
}
