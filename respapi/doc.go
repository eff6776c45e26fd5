// Package respapi serves Rollcall to programs that speak RESP, the protocol of Redis
// (versions 2 and 3 of https://redis.io/docs/latest/develop/reference/protocol-spec/).
//
// There are verbs of its own, such as BEAT, and a dialect: commands of Redis on names
// that the configuration binds to presence, sessions, friends or days, so that
// hand-built code only changes its address. See docs/resp.md.
//
// # A connection
//
// One goroutine serves a connection. It reads into one buffer, cuts commands out of it
// in place, and answers all that came together with one write. Signs of life that
// stand next to each other go to the engine in one call; their answers are written when
// that has returned, before any later command is looked at.
//
// # Bounds
//
// An announced length makes no room: the buffer grows as the bytes come. How many
// arguments a command has, how long each is and all are together is limited, and more
// narrowly before the client has said who it is. A client that stops inside a
// command, or does not read its answers, is cut off. See the constants in
// listener.go and request.go.
package respapi
