//go:build !holds

package local

import "sync"

// partitionLock guards a partition. Built with the tag holds it measures how long
// it is held; see partition_lock_holds.go.
type partitionLock = sync.RWMutex
