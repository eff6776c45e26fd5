package main

import (
	"maps"
	"strings"

	"github.com/rollcall/rollcall"
)

// knownStarts is how far back auditConfiguration looks for an entry that says the same.
const knownStarts = 100

// auditConfiguration writes the configuration to the audit trail, unless the newest entry
// about it says the same: a server that is started again and again does not fill the trail.
// A server that cannot write starts all the same, as it can still answer.
func (s *server) auditConfiguration() {
	detail := s.config.values.audited()
	detail["version"] = version()
	err := func() error {
		found, err := s.roll.AuditTrail(s.app.ctx, rollcall.AuditQuery{Limit: knownStarts})
		if err != nil {
			return err
		}
		for _, e := range found.Items {
			if e.Action == rollcall.AuditConfigReloaded {
				break
			}
			if e.Action == rollcall.AuditConfigStarted && maps.Equal(e.Detail, detail) {
				return nil
			}
		}
		return s.roll.Audit(s.app.ctx, rollcall.NewAuditEntry{Action: rollcall.AuditConfigStarted, Detail: detail})
	}()
	if err != nil {
		s.log.Warn("the configuration is not in the audit trail", "error", err)
	}
}

// auditReload writes to the audit trail what a reload is about to change.
func (s *server) auditReload(conf *config) error {
	detail := map[string]string{"policies": "as before"}
	if text := conf.values.get("policies"); text != s.config.values.get("policies") {
		detail["policies"] = "changed: " + text
	}
	if s.cert != nil {
		detail["certificate"] = "read again"
	}
	return s.roll.Audit(s.app.ctx, rollcall.NewAuditEntry{Action: rollcall.AuditConfigReloaded, Detail: detail})
}

// audited returns the settings that were given, as the audit trail has them: of secrets only
// that they are set.
func (v values) audited() map[string]string {
	out := make(map[string]string)
	for _, x := range v {
		if x.source != "default" && x.text != "" {
			out[x.key] = strings.ToValidUTF8(x.shown()[:min(len(x.shown()), rollcall.MaxAuditText)], "")
		}
	}
	return out
}
