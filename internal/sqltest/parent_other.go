//go:build unix && !linux

package sqltest

import "syscall"

// endWithParent does nothing: only Linux can do that. A server outlives a test
// that was killed.
func endWithParent(*syscall.SysProcAttr) {}
