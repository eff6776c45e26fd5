#!/usr/bin/env bash
#
# Builds the console from console/ui:
#   console/build.sh          writes console/dist, which is committed and embedded
#   console/build.sh check    compares it with what is committed, and checks the types
#
# It takes Node.js 20.19 or later. Building the server takes none: it embeds dist.

set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/ui"

npm ci --no-fund
if [[ ${1:-} != check ]]; then
    npm run build
    exit
fi

npm run check
out=$(mktemp -d)
trap 'rm -rf -- "$out"' EXIT
CONSOLE_DIST=$out npm run build
if ! diff -r -- "$out" ../dist; then
    printf 'console/dist is not what console/ui gives: run console/build.sh and commit it\n'
    exit 1
fi
