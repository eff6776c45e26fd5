#!/usr/bin/env bash
# Makes the pictures of the README anew: runs the demo with a fixed seed, opens its console
# in Chromium, and writes Now, Sessions and Attendance, light and dark, beside this file.
# It takes about three minutes. The numbers follow from the time of day.
set -euo pipefail
cd "$(dirname "$0")/../.."
go test -count=1 -tags pictures -run '^TestPictures$' -timeout 15m ./e2e
ls -l docs/images/*.png
