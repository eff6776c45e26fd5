// Package backupfile packs files into one stream and back.
//
// # Form
//
// A tar archive (POSIX.1-2001, regular files only), packed with zstd. Its last file is
// SHA256SUMS: a line "hex␠␠name" for each file before it, as sha256sum writes and reads
// them. A stream without it has been cut short. So "tar --zstd -xf" unpacks a backup, and
// "sha256sum -c SHA256SUMS" checks it, also where this program is not at hand.
package backupfile
