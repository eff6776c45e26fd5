// Package takeover moves systems that were built by hand on Redis to Rollcall.
//
// [Doctor] looks at such a system and says in numbers what is wrong with it. An
// [Importer] reads it and enters what it finds; it can follow the old system until
// the switch, and compares both sides. A [WriteBack] keeps the old keys as they would be after
// the switch, so that going back is one step.
//
// Five layouts are known. docs/taking-over.md describes what each looks like and
// what becomes of it:
//
//	online-zset     members user or user:session, by login time
//	last-seen-zset  members user, by the time of the last request
//	heartbeat-zset  members user, by the time of the last heartbeat
//	login-bitmaps   a bitmap for each user and month, a bit for each day
//	minute-sets     a set for each minute of the hour, of the users heard in it
//
// What is asked of the old Redis are reads in small portions, at a bounded rate:
// the SCAN family, and commands whose cost does not grow with the data. KEYS is
// never used, and nothing depends on keyspace notifications. Only WriteBack writes there.
package takeover
