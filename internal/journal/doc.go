// Package journal is a write-ahead log: records under rising numbers, joined
// into groups, each group written and synced at once.
//
// # The problem
//
// Many callers append records at one time, and each has to know when its record
// is on disk. The disk may fail or fill in the middle of it, and get well again
// while the process runs. After a crash the records that were confirmed must all
// be there, in order and without a gap; what was not confirmed may be missing
// from some record on. Nobody may read record n+1 where record n is missing.
//
// # The invariants
//
//   - One goroutine, the committer, writes. It writes a group only after the
//     group before it has been synced. So a valid group proves that everything
//     before it in the journal was confirmed.
//   - A segment's header is synced before the segment gets its name, and it says
//     which record the segment continues from. So a header proves that every
//     earlier record was confirmed, and it supersedes anything in older segments
//     at or after that number.
//   - After a failed write or sync a segment is never written again. The records
//     in memory go into a new segment.
//   - A segment has its full size before it is used. So a shorter file was cut.
//
// From these follows what reading has to find: a bad group with anything valid
// behind it, in its segment or a later one, is damage in what was confirmed, and
// reading refuses with file and offset. A bad group with nothing behind it is a
// torn tail, which nobody was told of; it is left out and reported.
//
// # The order of steps
//
//	step                                  crash after it: what reading finds
//	1 Append: number, queue in memory     the record is missing
//	2 write the group                     it is missing, torn (reported) or there
//	3 sync                                it is there
//	4 confirm: waiters return             it is there
//
//	a new segment:
//	1 make or take a file, header, sync   a file of another name, which is ignored
//	2 rename, sync the directory          an empty segment, or as before
//	3 first group                         as above
//
// A failed step 2 or 3 makes waiters return with the error at once and refuses
// further records, until the committer has written what memory still holds into
// a new segment. It tries again and again, at growing distances.
//
// # Form
//
// All numbers are big-endian. A segment begins with a block of 4,096 bytes: magic
// "journal1", segment id 8 B, number of its first record 8 B, size 8 B, CRC-32C of
// these, zeros. A group is magic "grp1", length of the payload 4 B, number of the
// first record 8 B, count of records 4 B, segment id 8 B, newest confirmed record
// 8 B, CRC-32C 4 B of all this, its offset and the payload; then the payload, each
// record behind its length as a varint; then 16 zeros, which the next group
// overwrites. Files that are no longer needed are kept under another name, to be
// overwritten by later segments: that syncs faster than new files do. As long as there
// is none, a new file is made while the segment before it is written: nobody waits for it.
package journal
