#!/bin/sh
# Mounts dist/kvdesk-*.dmg and runs the self-test of the application in it.
set -eu
folder=$(mktemp -d)
hdiutil attach -nobrowse -readonly -mountpoint "$folder" dist/kvdesk-*.dmg
trap 'hdiutil detach "$folder"' EXIT
"$folder/kvdesk.app/Contents/MacOS/kvdesk" selftest
