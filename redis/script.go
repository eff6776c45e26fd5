package redis

import (
	"crypto/sha1" //nolint:gosec // the name Redis gives a script, no protection
	"embed"
	"encoding/hex"
	"fmt"
	"maps"
	"strings"
	"sync"
)

//go:embed lua/*.lua lua/lib/*.lua
var sources embed.FS

// script is a program that Redis carries out in one step.
type script struct {
	name, text, sha string
	// keeps says that a second run would do, say or count something else than
	// the first: the answer is kept for a while, see env.lua.
	keeps bool
	// writes says that every run writes: an answer proves that writes are taken.
	writes bool
	// emits says that it may append events.
	emits bool
}

// scripts has all of them, each put together from its parts and its file.
type scripts struct {
	sessionStart, sessionTouch, sessionLookup, sessionChange, sessionEnd, sessionCount, sessionCounts, sessionLeave,
	sessionDrainCutoff, sessionExpire, sessionOfUser script

	presenceBeat, presenceCount, presenceOnline, presenceWalk, presenceHidden, presenceStatus,
	presenceClear script

	kindUse, kindAdd script

	visitForget, visitAdd, visitCount, visitAddName script

	userChange, userVisibility, userUnban, userErase, userNoteErasure, userFreeNumbers script

	eventRedact, eventSettle script

	friendListNamers, friendList, friendNoteChange, friendNoteWrite, friendReverseAdd, friendAdd,
	friendStage, friendSwap, friendRemove, friendRemoveAll, friendFindLeftover, friendReverseRemove,
	friendForgetLeftover script

	upkeepResumeErasures, upkeepStamp, upkeepSweep script

	daysMark, daysUnmark, daysRead, daysSpan, daysOfUser, daysExport script

	figuresGet, figuresPut script

	archiveReadMaps, archiveListDirty, archiveMarkDirty, archiveClearDirty, archiveOffload,
	archiveRestore, archiveClearOffloaded, archiveHasDays, archiveRecordRun script

	listPage, listMatching, listIntersect, listBySeen script

	apikeyPut script

	sampleClaim, samplePut script

	consolePut, consoleExtend, consoleTake script

	auditAppend script

	webhookPut, webhookList, webhookLease, webhookSave script

	retryClaim, retryRelease script

	storeMeta, storeProbe script

	transferRead, transferEnter script

	all []*script
}

// named lists the scripts by the names of their files.
func (s *scripts) named() map[string]*script {
	all := s.namedOfUsers()
	maps.Copy(all, s.namedOfData())
	return all
}

// namedOfUsers lists the scripts about users and their sessions.
func (s *scripts) namedOfUsers() map[string]*script {
	return map[string]*script{
		"session_start":          &s.sessionStart,
		"session_touch":          &s.sessionTouch,
		"session_lookup":         &s.sessionLookup,
		"session_change":         &s.sessionChange,
		"session_leave":          &s.sessionLeave,
		"session_end":            &s.sessionEnd,
		"session_count":          &s.sessionCount,
		"session_counts":         &s.sessionCounts,
		"session_drain_cutoff":   &s.sessionDrainCutoff,
		"session_expire":         &s.sessionExpire,
		"session_of_user":        &s.sessionOfUser,
		"presence_beat":          &s.presenceBeat,
		"presence_count":         &s.presenceCount,
		"presence_online":        &s.presenceOnline,
		"presence_walk":          &s.presenceWalk,
		"presence_hidden":        &s.presenceHidden,
		"presence_status":        &s.presenceStatus,
		"presence_clear":         &s.presenceClear,
		"kind_use":               &s.kindUse,
		"kind_add":               &s.kindAdd,
		"visit_forget":           &s.visitForget,
		"visit_add":              &s.visitAdd,
		"visit_count":            &s.visitCount,
		"visit_add_name":         &s.visitAddName,
		"user_change":            &s.userChange,
		"user_visibility":        &s.userVisibility,
		"user_unban":             &s.userUnban,
		"user_erase":             &s.userErase,
		"user_note_erasure":      &s.userNoteErasure,
		"user_free_numbers":      &s.userFreeNumbers,
		"event_redact":           &s.eventRedact,
		"event_settle":           &s.eventSettle,
		"friend_list_namers":     &s.friendListNamers,
		"friend_list":            &s.friendList,
		"friend_note_change":     &s.friendNoteChange,
		"friend_note_write":      &s.friendNoteWrite,
		"friend_reverse_add":     &s.friendReverseAdd,
		"friend_add":             &s.friendAdd,
		"friend_stage":           &s.friendStage,
		"friend_swap":            &s.friendSwap,
		"friend_remove":          &s.friendRemove,
		"friend_remove_all":      &s.friendRemoveAll,
		"friend_find_leftover":   &s.friendFindLeftover,
		"friend_reverse_remove":  &s.friendReverseRemove,
		"friend_forget_leftover": &s.friendForgetLeftover,
	}
}

// namedOfData lists the scripts about all else.
func (s *scripts) namedOfData() map[string]*script {
	return map[string]*script{
		"upkeep_resume_erasures":  &s.upkeepResumeErasures,
		"upkeep_stamp":            &s.upkeepStamp,
		"upkeep_sweep":            &s.upkeepSweep,
		"days_mark":               &s.daysMark,
		"days_unmark":             &s.daysUnmark,
		"days_read":               &s.daysRead,
		"days_span":               &s.daysSpan,
		"days_of_user":            &s.daysOfUser,
		"days_export":             &s.daysExport,
		"figures_get":             &s.figuresGet,
		"figures_put":             &s.figuresPut,
		"archive_read_maps":       &s.archiveReadMaps,
		"archive_list_dirty":      &s.archiveListDirty,
		"archive_mark_dirty":      &s.archiveMarkDirty,
		"archive_clear_dirty":     &s.archiveClearDirty,
		"archive_offload":         &s.archiveOffload,
		"archive_restore":         &s.archiveRestore,
		"archive_clear_offloaded": &s.archiveClearOffloaded,
		"archive_has_days":        &s.archiveHasDays,
		"archive_record_run":      &s.archiveRecordRun,
		"list_page":               &s.listPage,
		"list_matching":           &s.listMatching,
		"list_intersect":          &s.listIntersect,
		"list_by_seen":            &s.listBySeen,
		"apikey_put":              &s.apikeyPut,
		"sample_claim":            &s.sampleClaim,
		"sample_put":              &s.samplePut,
		"console_put":             &s.consolePut,
		"console_extend":          &s.consoleExtend,
		"console_take":            &s.consoleTake,
		"audit_append":            &s.auditAppend,
		"webhook_put":             &s.webhookPut,
		"webhook_list":            &s.webhookList,
		"webhook_lease":           &s.webhookLease,
		"webhook_save":            &s.webhookSave,
		"retry_claim":             &s.retryClaim,
		"retry_release":           &s.retryRelease,
		"store_meta":              &s.storeMeta,
		"store_probe":             &s.storeProbe,
		"transfer_read":           &s.transferRead,
		"transfer_enter":          &s.transferEnter,
	}
}

// loadScripts returns all scripts. They are put together once: nobody changes them, and
// they are a megabyte of text.
var loadScripts = sync.OnceValues(readScripts)

func readScripts() (*scripts, error) {
	s := &scripts{}
	for name, into := range s.named() {
		text, err := sources.ReadFile("lua/" + name + ".lua")
		if err != nil {
			return nil, fmt.Errorf("redis: %w", err)
		}
		into.name = name
		if err := into.assemble(string(text)); err != nil {
			return nil, err
		}
		sum := sha1.Sum([]byte(into.text)) //nolint:gosec // see the import
		into.sha = hex.EncodeToString(sum[:])
		s.all = append(s.all, into)
	}
	s.classify()
	return s, nil
}

// assemble puts a script together: each line "-- needs: part part" is followed by those parts
// that do not stand there yet. The first line has what every run needs; one within a branch
// what that branch needs besides, so that the others do not pay for functions that they never
// call.
func (s *script) assemble(text string) error {
	var out strings.Builder
	has := make(map[string]bool)
	for line := range strings.Lines(text) {
		out.WriteString(line)
		for _, part := range needs(line) {
			if has[part] {
				continue
			}
			has[part] = true
			lib, err := sources.ReadFile("lua/lib/" + part + ".lua")
			if err != nil {
				return fmt.Errorf("redis: %s.lua: %w", s.name, err)
			}
			out.Write(lib)
		}
	}
	s.text, s.emits = out.String(), has["event"]
	return nil
}

// needs returns the parts that a line asks for.
func needs(line string) []string {
	parts, found := strings.CutPrefix(strings.TrimSpace(line), "-- needs: ")
	if !found {
		return nil
	}
	return strings.Fields(parts)
}

// classify says which scripts keep their answers for a repetition (call.go), and which of the
// others write with every run.
func (s *scripts) classify() {
	for _, c := range []*script{
		&s.sessionEnd, &s.sessionChange, &s.sessionLeave, &s.presenceClear, &s.userChange, &s.userUnban, &s.userNoteErasure, &s.userErase, &s.friendAdd, &s.friendSwap, &s.friendRemove, &s.friendRemoveAll,
		&s.daysMark, &s.daysUnmark, &s.archiveMarkDirty, &s.archiveClearDirty, &s.archiveOffload, &s.archiveRestore, &s.archiveRecordRun, &s.transferEnter,
	} {
		c.keeps = true
	}
	for _, c := range []*script{&s.presenceBeat, &s.upkeepStamp, &s.upkeepSweep} {
		c.writes = true
	}
}
