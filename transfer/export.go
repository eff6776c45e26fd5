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

	"github.com/rollcall/rollcall"
)

// Source is what an export reads: a [rollcall.Roll].
type Source interface {
	ExportParts(ctx context.Context, first int, visit func(rollcall.UserSnapshot) error, done func(next, parts int) error) error
	EventsAfter(ctx context.Context, after rollcall.EventID, limit int, families ...rollcall.EventFamily) ([]rollcall.Event, error)
	LastEvent(ctx context.Context) (rollcall.EventID, error)
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

// Export writes everything to w and says how much that was. progress, if not
// nil, is told now and then. After an error w holds a stream without a trailer,
// which no import takes for a whole one, and which [Resume] goes on with.
func Export(ctx context.Context, from Source, w io.Writer, progress func(Progress)) (Counts, error) {
	x := &export{frames: frameWriter{out: w}, hash: sha256.New(), progress: progress}
	err := x.begin(ctx, from)
	if err == nil {
		err = x.run(ctx, from)
	}
	return x.mark.Counts, err
}

// export is a stream on its way out.
type export struct {
	text
	frames   frameWriter
	hash     hash.Hash
	mark     mark // how far it has come
	unmarked int  // bytes of text since then
	total    int
	progress func(Progress)
}

// begin writes the header.
func (x *export) begin(ctx context.Context, from Source) error {
	stats, err := from.Stats(ctx)
	if err != nil {
		return err
	}
	if x.mark.LastEvent, err = from.LastEvent(ctx); err != nil {
		return err
	}
	x.total = stats.Users
	return x.line("export", Header{
		Version: Version, CreatedAt: from.Now(), Engine: stats.Engine, Timezone: from.Timezone().String(),
		SecretID: from.SecretID(), Users: stats.Users, Sessions: stats.Sessions,
	})
}

// run writes what follows the mark.
func (x *export) run(ctx context.Context, from Source) error {
	err := from.ExportParts(ctx, x.mark.Next, func(d rollcall.UserSnapshot) error {
		from := len(x.b)
		x.snapshot(&d)
		if n := len(x.b) - from; n > maxLine {
			return fmt.Errorf("the snapshot of %q takes %d MiB, over the limit of %d MiB of an import", d.User, n>>20, maxLine>>20)
		}
		x.mark.Counts.add(&d)
		return x.flush(frameText)
	}, x.endPart)
	if err != nil {
		return err
	}
	counts := &x.mark.Counts
	keys, err := from.Keys(ctx)
	if err != nil {
		return err
	}
	for _, k := range keys {
		x.key(&k)
		counts.APIKeys++
	}
	hooks, err := from.Webhooks(ctx)
	if err != nil {
		return err
	}
	for i := range hooks {
		if err := x.line("webhook", webhookLine(&hooks[i])); err != nil {
			return err
		}
		counts.Webhooks++
	}
	if err := x.flush(0); err != nil {
		return err
	}
	end := trailer{Counts: *counts, SHA256: hex.EncodeToString(x.hash.Sum(nil))}
	return errors.Join(x.line("end", end), x.flush(0))
}

// endPart ends a part of the engine. An export that is cut short behind a mark goes on with the
// next part.
func (x *export) endPart(next, parts int) error {
	if x.mark.Parts != 0 && parts != x.mark.Parts {
		return fmt.Errorf("the export that was cut short had %d parts, and this engine has %d: begin anew", x.mark.Parts, parts)
	}
	if x.unmarked+len(x.b) < markEvery {
		return nil
	}
	if err := x.flush(0); err != nil {
		return err
	}
	x.unmarked = 0
	x.mark.Next, x.mark.Parts, x.mark.SHA256 = next, parts, hex.EncodeToString(x.hash.Sum(nil))
	return x.frames.mark(&x.mark)
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
	x.unmarked += len(x.b)
	err := x.frames.frame(x.b)
	x.b = x.b[:0]
	if x.progress != nil {
		x.progress(Progress{x.mark.Counts.Snapshots, max(x.total, x.mark.Counts.Snapshots)})
	}
	return err
}
