package local

// tableInfo says what a table of the store holds, for those who look at all of
// them: check and repair.
type tableInfo struct {
	table  byte
	name   string // of its records
	keyLen int    // 0 if they differ
	part   bool   // the partition follows the table's byte
	number bool   // and a user's number the partition
}

// tableInfos lists every table, in the order of the store.
func tableInfos() []tableInfo {
	return []tableInfo{
		{table: tabHasArchived, name: "notes of who has archived marks", keyLen: 3, part: true},
		{table: tabSeen, name: "last-seen times", keyLen: 5, part: true},
		{table: tabOffloaded, name: "notes of archived days", keyLen: 6},
		{table: tabErasure, name: "unfinished erasures", keyLen: 10, part: true},
		{table: tabFirst, name: "first days", keyLen: 8, part: true},
		{table: tabHeard, name: "latest signs of life", keyLen: 5, part: true, number: true},
		{table: tabPresLine, name: "presence events by user", keyLen: lineKeyLen},
		{table: tabBan, name: "bans", keyLen: 18, part: true},
		{table: tabSilent, name: "notes of who was announced offline", keyLen: 2, part: true},
		{table: tabID, name: "new user ids", keyLen: 5, part: true, number: true},
		{table: tabPass, name: "passes to the console", keyLen: 33},
		{table: tabTouched, name: "touches by slot", keyLen: 5, part: true},
		{table: tabFigures, name: "figures of past days", keyLen: 6},
		{table: tabEndedTok, name: "tokens of ended sessions", keyLen: 18, part: true},
		{table: tabLost, name: "notes of days with lost marks", keyLen: 6},
		{table: tabRetryDue, name: "times of retried logins", keyLen: 41},
		{table: tabAuditSalt, name: "salts of users in the audit trail"},
		{table: tabDay, name: "days of attendance", keyLen: 8, part: true},
		{table: tabBeat, name: "beats", keyLen: 6, part: true},
		{table: tabKind, name: "kinds of users", keyLen: 2},
		{table: tabEnded, name: "ended sessions", keyLen: 18, part: true},
		{table: tabEvent, name: "session events", keyLen: 9},
		{table: tabFriend, name: "friends", keyLen: 9, part: true, number: true},
		{table: tabGone, name: "notes of who left", keyLen: 5, part: true, number: true},
		{table: tabDirty, name: "notes of maps to archive", keyLen: 8, part: true},
		{table: tabKey, name: "API keys"},
		{table: tabSessionLine, name: "session events by user", keyLen: lineKeyLen},
		{table: tabHookState, name: "states of webhooks"},
		{table: tabQuiet, name: "notes of who was announced offline last", keyLen: 10, part: true},
		{table: tabMeta, name: "what holds for the whole store"},
		{table: tabBlock, name: "user ids", keyLen: 5, part: true},
		{table: tabForgot, name: "notes of forgotten last-seen times", keyLen: 5, part: true, number: true},
		{table: tabPresEvent, name: "presence events", keyLen: 9},
		{table: tabTouch, name: "touches", keyLen: 10, part: true},
		{table: tabNamedBy, name: "who names whom as friend", keyLen: 9, part: true, number: true},
		{table: tabSession, name: "live sessions", keyLen: 18, part: true},
		{table: tabAudit, name: "entries of the audit trail", keyLen: 9},
		{table: tabUser, name: "settings of users", keyLen: 5, part: true, number: true},
		{table: tabVisit, name: "hours of visits"},
		{table: tabWebhook, name: "webhooks"},
		{table: tabEndedDue, name: "times of ended sessions", keyLen: 26},
		{table: tabRetry, name: "retried logins", keyLen: 33},
		{table: tabSample, name: "samples of minutes and hours", keyLen: 6},
	}
}

// infoOf returns what a table holds; false if there is no such table.
func infoOf(table byte) (tableInfo, bool) {
	for _, info := range tableInfos() {
		if info.table == table {
			return info, true
		}
	}
	return tableInfo{}, false
}
