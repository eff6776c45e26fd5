// Package local is the embedded engine: memory answers, Pebble remembers.
//
// Users are spread over a fixed number of partitions by the hash of their id.
// In its partition every user has a dense number, and what is known about users
// is columns and bitmaps over numbers: plain memory without pointers, which the
// garbage collector does not have to look into. Every command builds one Pebble
// batch, applies it and its change of memory under the partition's lock, and
// waits for the group-committed sync outside of it.
//
// What is where: a partition's parts are one file each (sessions, presence,
// users, friends, attendance), what the partitions share is the store, the
// event log, the outages and the counters; store_keys.go lays out the store.
package local
