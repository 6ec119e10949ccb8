#!/bin/sh
# An AppImage from the tree that `make package` laid out: make-appimage.sh TREE FILE. Needs appimagetool.
set -eu
tree=$1
file=$2
app=$(mktemp -d)/kvdesk.AppDir
trap 'rm -rf "$(dirname "$app")"' EXIT
mkdir -p "$app"
cp -a "$tree" "$app/usr"
ln -s usr/share/applications/kvdesk.desktop "$app/kvdesk.desktop"
ln -s usr/share/icons/hicolor/256x256/apps/kvdesk.png "$app/kvdesk.png"
ln -s kvdesk.png "$app/.DirIcon"
ln -s usr/bin/kvdesk "$app/AppRun"
ARCH=x86_64 appimagetool --comp zstd "$app" "$file"
