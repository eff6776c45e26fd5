// Package local is the embedded engine: memory answers, Pebble remembers.
//
// Users are spread over a fixed number of partitions by the hash of their id. In its
// partition every user has a dense number. What is known of users is in columns and
// bitmaps over numbers: memory without pointers, which the garbage collector does not
// walk. A lock guards each partition.
//
// Files of one noun share its name. These heads tell how the hard parts work, and what a
// crash between two steps leaves:
//
//   - tx.go: the way of a command to the disk.
//   - store.go: the journal and Pebble's tables.
//   - session_expire.go: how sessions end by themselves.
//   - event_announce.go: how users are announced online and offline, each change once.
//   - outage.go: why downtime is not absence.
//   - upkeep_sweep.go, upkeep_roll.go: upkeep when much is due; rolling snapshots.
//   - days_offload.go: how a day leaves for the archive.
//   - days_figurecache.go: the figures that are kept.
//   - user_erase.go: how a user is erased.
//   - transfer_import.go: how users come from another engine.
//   - repair.go: how a damaged store is repaired.
package local
