package redis

import "github.com/rollcall/rollcall"

// env packs what every script of a partition is told: see env.lua.
func (e *Engine) env(part int, now int64) string {
	var p packer
	p.u64(uint64(max(0, now)))
	p.u64(uint64(max(0, e.life.lastAlive(part))))
	p.b = append(p.b, e.setup...)
	return p.text()
}

// packSetup packs the part of env that does not change.
func (e *Engine) packSetup(s rollcall.Settings) {
	var p packer
	p.u64(uint64(int64((s.Window + s.OfflineGrace).Seconds())))
	p.u64(uint64(s.RestartGrace.Milliseconds()))
	p.u64(uint64(s.EndedKeep.Milliseconds()))
	p.u64(uint64(s.LeaveGrace.Milliseconds()))
	p.flag(s.PresenceEvents)
	p.flag(!s.OwnClock)
	e.setup = p.b
}
