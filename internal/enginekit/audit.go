package enginekit

import (
	"encoding/json"
	"errors"

	"github.com/rollcall/rollcall"
)

// EncodeAudit writes an entry of the audit trail as it is kept.
func EncodeAudit(e rollcall.AuditEntry) ([]byte, error) { return json.Marshal(e) }

// DecodeAudit reads what EncodeAudit wrote.
func DecodeAudit(b []byte) (e rollcall.AuditEntry, err error) {
	if err = json.Unmarshal(b, &e); err == nil && (e.Seq == 0 || e.Action == "") {
		err = errors.New("it has no number or no action")
	}
	e.At = e.At.UTC()
	return e, err
}

// ChainAudit fills in what links an entry to the one before, which has seq and hash.
func ChainAudit(e *rollcall.AuditEntry, seq uint64, hash rollcall.AuditHash) {
	e.Seq = seq + 1
	e.Hash = e.HashAfter(hash)
}
