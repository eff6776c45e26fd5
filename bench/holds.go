//go:build holds

package main

import (
	"fmt"
	"time"

	"github.com/rollcall/rollcall/local"
)

// longestHold names the longest hold of a partition's lock since the last call.
func longestHold() string {
	list := local.TakeHolds()
	if len(list) == 0 {
		return ""
	}
	return fmt.Sprintf("%s %s", list[0].Longest.Round(10*time.Microsecond), list[0].By)
}
