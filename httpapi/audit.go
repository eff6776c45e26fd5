package httpapi

import (
	"context"

	"github.com/rollcall/rollcall"
)

// AuditRecord is an entry of the audit trail on the wire.
type AuditRecord struct {
	Seq    uint64               `json:"seq" doc:"from 1, without gaps"`
	At     instant              `json:"at"`
	Actor  string               `json:"actor" doc:"who did it: key: and the id of an API key, server, command line, local"`
	Action rollcall.AuditAction `json:"action" doc:"such as key.created; outcome says what became of the entry that detail.of names"`
	Target string               `json:"target,omitempty" doc:"what it was done to; a user stands as user: and a pseudonym"`
	Detail map[string]string    `json:"detail,omitempty"`
	Hash   string               `json:"hash" pattern:"^[0-9a-f]{64}$" doc:"SHA-256 over the hash of the entry before and this one, in hex"`
}

func auditOf(e rollcall.AuditEntry) AuditRecord {
	return AuditRecord{Seq: e.Seq, At: instantOf(e.At), Actor: e.Actor, Action: e.Action, Target: e.Target, Detail: e.Detail, Hash: e.Hash.String()}
}

type auditInput struct {
	User   string `query:"user" doc:"only entries about this user, who must not have been erased"`
	Limit  int    `query:"limit" default:"20" minimum:"1" maximum:"1000" doc:"items on a page"`
	Cursor string `query:"cursor" doc:"next of the page before"`
}

// auditPage is a part of the audit trail.
type auditPage struct {
	Items []AuditRecord `json:"items" nullable:"false"`
	Next  string        `json:"next,omitempty" doc:"cursor to what follows; absent on the last page. With user a page may be short and have a next"`
}

func (s *Server) registerAudit() {
	list := op("GET /v1/audit", "list-audit", "Administration", "What administrators did, newest first")
	list.Description = "Entries are only added. Each has the hash of the one before in its own: `rollcall audit verify` checks the chain. An entry is written before its act; if that fails, or counts something, an entry `outcome` follows."
	register(s, list, s.listAudit)
}

func (s *Server) listAudit(ctx context.Context, in *auditInput) (auditPage, error) {
	found, err := s.roll.AuditTrail(ctx, rollcall.AuditQuery{User: in.User, Limit: in.Limit, Cursor: in.Cursor})
	return auditPage{Items: each(found.Items, auditOf), Next: found.Next}, err
}
