//go:build !unix

package main

// descriptorLimit is for systems whose handles are bounded by memory alone.
func descriptorLimit() (int, bool) { return 1 << 14, true }
