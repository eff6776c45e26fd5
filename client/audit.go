package client

import (
	"context"
	"iter"
	"net/http"
	"strconv"
	"time"

	"github.com/rollcall/rollcall"
)

// auditEntry is an entry of the audit trail on the wire.
type auditEntry struct {
	Seq    uint64
	At     time.Time
	Actor  string
	Action rollcall.AuditAction
	Target string
	Detail map[string]string
	Hash   rollcall.AuditHash
}

func (e auditEntry) domain() rollcall.AuditEntry { return rollcall.AuditEntry(e) }

// AuditTrail returns entries of the audit trail, newest first; see
// [rollcall.Roll.AuditTrail].
func (c *Client) AuditTrail(ctx context.Context, q rollcall.AuditQuery) (rollcall.AuditPage, error) {
	p := newParams()
	p.text("user", q.User)
	p.text("limit", strconv.Itoa(q.Limit))
	p.text("cursor", q.Cursor)
	var answer struct {
		Items []auditEntry
		Next  string
	}
	err := c.do(ctx, call{method: http.MethodGet, path: "/v1/audit", query: p.Values}, &answer)
	return rollcall.AuditPage{Items: each(answer.Items, auditEntry.domain), Next: answer.Next}, err
}

// AllAudit walks the audit trail from its newest entry back: all of it, or what is about a
// user. A Limit is the size of a page, 1,000 unless said.
func (c *Client) AllAudit(ctx context.Context, q rollcall.AuditQuery) iter.Seq2[rollcall.AuditEntry, error] {
	return walk(rollcall.PageRequest{Limit: q.Limit, Cursor: q.Cursor}, func(p rollcall.PageRequest) (rollcall.Page[rollcall.AuditEntry], error) {
		q.Limit, q.Cursor = p.Limit, p.Cursor
		found, err := c.AuditTrail(ctx, q)
		return rollcall.Page[rollcall.AuditEntry]{Items: found.Items, Next: found.Next}, err
	})
}
