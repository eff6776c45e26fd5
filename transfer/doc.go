// Package transfer writes all that an engine knows about its users, its API keys
// and its webhooks, into one stream, and enters such a stream into another engine: it is
// how data moves between the embedded and the distributed engine, and from one
// Redis to another.
//
// The stream is JSON Lines, packed with zstd: a header, the snapshots, the API
// keys, the webhooks, and a trailer with counts and a SHA-256 of all before it. Any tool for
// text reads it once it is unpacked; docs/formats.md describes the fields. What
// no [rollcall.UserSnapshot] holds is not in it.
package transfer
