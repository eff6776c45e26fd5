#!/usr/bin/env bash
# Makes the pictures of the README anew: runs the demo with a fixed seed, opens its console
# in Chromium, and writes Now, Sessions and Attendance, light and dark, beside this file.
# It takes about three minutes. The numbers follow from the time of day. The fonts are Inter
# and Noto: fonts-inter, fonts-noto-core and fonts-noto-cjk of Debian.
set -euo pipefail
cd "$(dirname "$0")/../.."
export FONTCONFIG_FILE=$PWD/docs/images/fonts.conf
if [[ $(fc-match system-ui) != *Inter* ]]; then
    printf 'make.sh: install fonts-inter, fonts-noto-core and fonts-noto-cjk first\n' >&2
    exit 1
fi
go test -count=1 -tags pictures -run '^TestPictures$' -timeout 15m ./e2e
ls -l docs/images/*.png
