// Package redistest starts real redis-servers for tests: one alone, a Cluster
// of three masters with a replica each, or a master with two replicas watched by
// three sentinels. They run on free loopback ports in temporary directories and
// are stopped by their process ids.
package redistest
