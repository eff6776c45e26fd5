package client

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/rollcall/rollcall"
)

// backupSilence is how long a server may send nothing of a backup. Before the first byte it
// writes its tables.
const backupSilence = 5 * time.Minute

// Backup writes a backup of the server's data to w, as it comes: a tar archive packed with
// zstd. An error of w ends it. It is not tried again, as w may have some of it. A backup that
// was cut short lacks its last file, SHA256SUMS, and is an error.
func (c *Client) Backup(ctx context.Context, w io.Writer) error {
	bounded, stop := context.WithCancel(ctx)
	defer stop()
	silence := time.AfterFunc(backupSilence, stop)
	defer silence.Stop()
	req, err := c.request(bounded, &call{method: http.MethodGet, path: "/v1/backup"}, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Accept", "*/*")
	res, err := c.http.Do(req)
	if err != nil {
		return c.unreached(ctx, err).err
	}
	defer func() { _ = res.Body.Close() }() // it is read to its end, or given up
	if res.StatusCode != http.StatusOK {
		answer, err := io.ReadAll(io.LimitReader(res.Body, maxFrame))
		if err != nil {
			return c.unreached(ctx, err).err
		}
		return c.refused(res, answer).err
	}
	body := &heardBody{Reader: res.Body, silence: silence}
	if _, err := io.Copy(w, body); err != nil {
		if body.err != nil {
			return &rollcall.Error{Code: rollcall.CodeUnavailable, Detail: "the backup was cut short", Err: body.err}
		}
		return err
	}
	return nil
}

// heardBody is the body of an answer that must not fall silent. It keeps its own error, to be
// told from one of the writer.
type heardBody struct {
	io.Reader
	silence *time.Timer
	err     error
}

func (b *heardBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	b.silence.Reset(backupSilence)
	if err != nil && !errors.Is(err, io.EOF) {
		b.err = err
	}
	return n, err
}
