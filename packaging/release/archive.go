package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"io"
	"path"
	"time"
)

// entry is a file of an archive.
type entry struct {
	name    string
	data    []byte
	program bool // that is run
}

func (e entry) mode() int64 {
	if e.program {
		return 0o755
	}
	return 0o644
}

// tarball packs files in a folder. Owner, order and time are the same whoever packs.
func tarball(folder string, files []entry, at time.Time) ([]byte, error) {
	var out bytes.Buffer
	packed := gzip.NewWriter(&out)
	w := tar.NewWriter(packed)
	for _, f := range files {
		head := &tar.Header{
			Typeflag: tar.TypeReg, Name: path.Join(folder, f.name), Size: int64(len(f.data)), Mode: f.mode(),
			ModTime: at, Format: tar.FormatUSTAR,
		}
		if err := w.WriteHeader(head); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.data); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	if err := packed.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// zipped is tarball for Windows.
func zipped(folder string, files []entry, at time.Time) ([]byte, error) {
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, f := range files {
		head := &zip.FileHeader{Name: path.Join(folder, f.name), Method: zip.Deflate, Modified: at}
		head.SetMode(0o644)
		if f.program {
			head.SetMode(0o755)
		}
		to, err := w.CreateHeader(head)
		if err != nil {
			return nil, err
		}
		if _, err := io.Copy(to, bytes.NewReader(f.data)); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
