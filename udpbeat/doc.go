// Package udpbeat hears signs of life by UDP. It has the codec of both
// datagrams, for senders, and the listener of the server.
//
// # Datagrams
//
// All numbers are big-endian. MAC is the first 16 bytes of HMAC-SHA-256 over all
// bytes before it.
//
// A session beat is 41 bytes. Its key is the session's beat key, which a login
// answers with; see [rollcall.Roll.BeatKey].
//
//	offset  bytes
//	0       1      version, 0x01
//	1       16     session id, the bytes that its text form encodes
//	17      4      unix seconds of the sender's clock
//	21      4      counter
//	25      16     MAC
//
// A gateway beat names users. Its key is the beat key of an API key of role
// writer or admin, which is shown when the key is made; see
// [rollcall.Roll.KeyBeatKey]. It has at most 1,400 bytes and names at least one
// user.
//
//	offset  bytes
//	0       1      version, 0x02
//	1       8      API key id, the bytes that its hexadecimal form stands for
//	9       4      unix seconds of the sender's clock
//	13      8      counter
//	21      2      number of users
//	23             for each user: length (1 byte, 1–128), then the id in UTF-8
//	end-16  16     MAC
//
// # What is accepted
//
// The seconds may differ from the server's clock by 60 at most, so that a
// recorded datagram is worthless after two minutes. Within that time the counter
// tells repeats apart: each server accepts a counter of a sender once, in any
// order within the last 64, and none older than those. A sender that has not been
// heard for four minutes may start again from any counter. One that restarts
// sooner has to go on above its last counter; unix seconds for sessions, and
// nanoseconds for gateways, are a good first counter. Every gateway needs an API
// key of its own, as the counter belongs to the key.
//
// Of a session ten beats count in a second.
//
// The listener never answers, whatever comes.
package udpbeat
