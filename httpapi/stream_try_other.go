//go:build !unix

package httpapi

import "syscall"

// canTry says that tryWrite works here: a goroutine waits for each write instead.
const canTry = false

func tryWrite(syscall.RawConn, []byte) (int, error) { return 0, nil }
