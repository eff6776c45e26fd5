//go:build !unix

package main

func ownFilesOnly() {}
