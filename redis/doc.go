// Package redis is the distributed engine of Rollcall: any number of servers
// share one Redis, standalone, behind Sentinel, or as a Cluster.
//
// Users are spread over partitions by the hash of their id. Every key of a
// partition carries its hash tag, so a command about one user is one script in
// one slot, and atomic. What spans users is asked of every partition in one
// pipelined round and merged here: exact at one instant for each partition.
// The scripts are in the folder lua, each with what it takes, answers and costs.
//
// Durability is what Redis is set up for: a command that returned is where
// Redis put it, and a failover can lose it. Options.Wait asks for more.
package redis
