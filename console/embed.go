package console

import (
	"embed"
	"io/fs"
)

//go:embed all:dist
var built embed.FS

// New returns a handler of the pages that are built into the program.
func New() (*Handler, error) {
	dist, err := fs.Sub(built, "dist")
	if err != nil {
		return nil, err
	}
	return NewHandler(dist)
}
