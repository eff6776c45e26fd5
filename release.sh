#!/usr/bin/env bash
#
# Builds a release for Linux, macOS and Windows on amd64 and arm64 into dist/: archives of a
# static binary with the licences of all that is in it, a list of that for each (CycloneDX),
# and checksums:
# ./release.sh
#
# Only some of them: ./release.sh linux/arm64 windows/amd64
#
# The version is what git describes. The same commit and the same Go make the same bytes;
# the time in the files is that of the commit, or SOURCE_DATE_EPOCH.

set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")"
exec go run ./packaging/release "$@"
