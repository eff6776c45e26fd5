package transfer

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/rollcall/rollcall"
)

// Source is what an export reads: a [rollcall.Roll].
type Source interface {
	Export(ctx context.Context, visit func(rollcall.UserSnapshot) error) error
	Keys(ctx context.Context) ([]rollcall.APIKey, error)
	Webhooks(ctx context.Context) ([]rollcall.Webhook, error)
	Stats(ctx context.Context) (rollcall.Stats, error)
	Timezone() *time.Location
	SecretID() string
	Now() time.Time
}

// Progress is how far an export or import has come. Total is the number of
// users there were when the export began: about as many snapshots as to come.
type Progress struct {
	Snapshots, Total int
}

// flushAt is how much text is gathered before it is packed.
const flushAt = 64 << 10

// Export writes everything to w and says how much that was. progress, if not
// nil, is told now and then. After an error w holds a stream without a trailer,
// which no import takes for a whole one.
func Export(ctx context.Context, from Source, w io.Writer, progress func(Progress)) (Counts, error) {
	packed, err := zstd.NewWriter(w, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(2))
	if err != nil {
		return Counts{}, err
	}
	x := &export{out: packed, hash: sha256.New(), progress: progress}
	if err := x.run(ctx, from); err != nil {
		_ = packed.Close() // without a trailer it is nothing to rely on
		return x.counts, err
	}
	return x.counts, packed.Close()
}

// export is a stream on its way out.
type export struct {
	text
	out      io.Writer
	hash     hash.Hash
	counts   Counts
	total    int
	progress func(Progress)
}

func (x *export) run(ctx context.Context, from Source) error {
	stats, err := from.Stats(ctx)
	if err != nil {
		return err
	}
	x.total = stats.Users
	header := Header{
		Version: Version, CreatedAt: from.Now(), Engine: stats.Engine, Timezone: from.Timezone().String(),
		SecretID: from.SecretID(), Users: stats.Users, Sessions: stats.Sessions,
	}
	if err := x.line("export", header); err != nil {
		return err
	}
	err = from.Export(ctx, func(d rollcall.UserSnapshot) error {
		from := len(x.b)
		x.snapshot(&d)
		if n := len(x.b) - from; n > maxLine {
			return fmt.Errorf("the snapshot of %q takes %d MiB, over the limit of %d MiB of an import", d.User, n>>20, maxLine>>20)
		}
		x.counts.add(&d)
		return x.flush(flushAt)
	})
	if err != nil {
		return err
	}
	keys, err := from.Keys(ctx)
	if err != nil {
		return err
	}
	for _, k := range keys {
		x.key(&k)
		x.counts.APIKeys++
	}
	hooks, err := from.Webhooks(ctx)
	if err != nil {
		return err
	}
	for i := range hooks {
		if err := x.line("webhook", webhookLine(&hooks[i])); err != nil {
			return err
		}
		x.counts.Webhooks++
	}
	if err := x.flush(0); err != nil {
		return err
	}
	end := trailer{Counts: x.counts, SHA256: hex.EncodeToString(x.hash.Sum(nil))}
	return errors.Join(x.line("end", end), x.flush(0))
}

// line writes a line through the standard library.
func (x *export) line(name string, v any) error {
	b, err := json.Marshal(map[string]any{name: v})
	x.b = append(append(x.b, b...), '\n')
	return err
}

func (x *export) key(k *rollcall.APIKey) {
	x.b = append(x.b, `{"api_key":{`...)
	x.string("id", k.ID)
	x.hex("hash", k.Hash[:])
	x.string("name", k.Name)
	x.string("role", string(k.Role))
	x.time("created_at", k.CreatedAt)
	x.time("expires_at", k.ExpiresAt)
	x.b = append(x.b, "}}\n"...)
}

// flush packs what has been written if it is more than a limit.
func (x *export) flush(limit int) error {
	if len(x.b) <= limit {
		return nil
	}
	x.hash.Write(x.b)
	_, err := x.out.Write(x.b)
	x.b = x.b[:0]
	if x.progress != nil {
		x.progress(Progress{x.counts.Snapshots, max(x.total, x.counts.Snapshots)})
	}
	return err
}
