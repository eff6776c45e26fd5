//go:build unix

package main

import "syscall"

// ownFilesOnly makes every file of this process its owner's alone, also those
// that libraries make.
func ownFilesOnly() { syscall.Umask(0o077) }
