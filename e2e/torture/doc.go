// Command torture drives the real binary with random commands while bad luck
// befalls it, and compares what it answers with a model made of plain maps:
//
//	go run ./e2e/torture -engine local -for 30m -seed 1
//
// It works in rounds. In a round eight workers, each with users of their own,
// send commands at once until an incident is over: the process is killed, the
// power is cut, the disk is full, the clock jumps, Redis is killed or cannot be
// reached, a slot of a Cluster moves, a master fails. Then every user is read and
// compared with the model, then what is asked about all of them, and now and then
// a few commands about all users follow: a kick of all, an export and import.
//
// The seed decides which commands and incidents there are. How many commands a
// round has is a matter of the machine's speed.
//
// # The model
//
// A [userModel] is what must be known of one user. A command that was answered
// changes it, and the answer is judged. A command that was not answered, or was
// refused for the moment, leaves two models: the user as before, and as the command
// would have made them. The next read decides which one fits; if neither does, that is
// a difference. Servers finish an erasure by themselves once it has started, so the
// next read waits, bounded, until none is under way.
//
// The model does not know to the millisecond when a server carried out a
// command. It knows a span of time, and what an answer says. What follows from
// that is certain, or possible, and only what is certain is held against a
// server. A machine that is slow makes spans longer and never an error.
//
// # Incidents of the embedded engine
//
//   - killed: SIGKILL in the middle of the work, and a start over the same data.
//   - power cut: the data lies on a file system of its own (ext4 in a file, on a
//     loop device, with commit=1000). The process is stopped, the file behind the
//     file system is copied, and the server goes on from the copy. The kernel
//     writes to that file what was synced, and little else: what only the page
//     cache held is gone. It simulates a disk that keeps what a flush confirmed,
//     not one that lies, and not sectors that are written by halves.
//   - full disk: a file takes what room there is, and is removed again.
//   - clock: the wall clock of the server jumps, forwards by up to days or
//     backwards by up to hours; the binary is built with a clock that reads how
//     far it is off from a file, see [build].
//   - stopped: SIGTERM and a start. Frozen: SIGSTOP for longer than a gap that is
//     no outage.
//   - moved: the data is exported and imported into an empty store.
//
// # Incidents of Redis
//
// Three servers share one Redis, or a Cluster of three masters with a replica
// each; every request goes to another one. Redis syncs each write, and clients
// reach it through a proxy.
//
//   - server killed, stopped, frozen; all servers killed.
//   - redis killed, frozen, full (maxmemory), cut off; replies lost: all
//     connections are cut at once; black hole: no byte passes for up to 8 s.
//   - slot moves: the slot of a partition goes to another master while all work.
//   - master fails over: a replica takes over in agreement with its master, which
//     loses nothing. A failover without that may lose what was acknowledged, as
//     the documentation says, and is measured elsewhere.
//   - moved: export, and import under another prefix.
//
// Incidents that need a mount are left out where none is allowed, and the run
// says so.
package main
