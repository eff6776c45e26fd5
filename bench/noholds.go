//go:build !holds

package main

// longestHold is measured by a build with the tag holds only.
func longestHold() string { return "" }
