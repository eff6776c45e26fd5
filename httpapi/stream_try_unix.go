//go:build unix

package httpapi

import (
	"errors"
	"syscall"
)

// canTry says that tryWrite works here.
const canTry = true

// tryWrite writes what a socket takes without waiting, and returns how much that is.
func tryWrite(raw syscall.RawConn, b []byte) (n int, err error) {
	failed := raw.Write(func(fd uintptr) bool {
		for {
			if n, err = syscall.Write(int(fd), b); !errors.Is(err, syscall.EINTR) {
				return true // whatever it took: false would wait for the socket
			}
		}
	})
	switch {
	case failed != nil:
		return 0, failed
	case errors.Is(err, syscall.EAGAIN):
		return 0, nil
	case err != nil:
		return 0, err
	}
	return n, nil
}
