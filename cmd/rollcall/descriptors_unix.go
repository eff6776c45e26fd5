//go:build unix

package main

import "syscall"

// descriptorLimit returns how many file descriptors the process may have; false if
// that is not known. Go has raised the soft limit to the hard one at start.
func descriptorLimit() (int, bool) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0, false
	}
	return int(min(limit.Cur, 1<<20)), true //nolint:gosec // bounded just now
}
