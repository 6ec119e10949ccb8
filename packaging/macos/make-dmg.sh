#!/bin/sh
# Signs kvdesk.app, packs it into a disk image and has Apple notarise that: make-dmg.sh APP DMG.
#
#   KVDESK_CODESIGN_IDENTITY   "Developer ID Application: …"; without it the signature is ad hoc, for this machine only
#   KVDESK_NOTARY_PROFILE      made once with `xcrun notarytool store-credentials`; without it nothing is sent to Apple
set -eu
app=$1
dmg=$2
identity=${KVDESK_CODESIGN_IDENTITY:--}
timestamp=--timestamp
[ "$identity" = - ] && timestamp=--timestamp=none

# PyInstaller has signed everything inside; the notice came after that, so the whole is sealed again.
codesign --force "$timestamp" --options runtime \
    --entitlements "$(dirname "$0")/entitlements.plist" --sign "$identity" "$app"
codesign --verify --deep --strict "$app"

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cp -R "$app" "$folder/"
ln -s /Applications "$folder/Applications"
rm -f "$dmg"
hdiutil create -volname kvdesk -srcfolder "$folder" -format ULMO -ov "$dmg"

if [ "$identity" != - ]; then codesign --force "$timestamp" --sign "$identity" "$dmg"; fi
if [ -n "${KVDESK_NOTARY_PROFILE:-}" ]; then
    xcrun notarytool submit "$dmg" --keychain-profile "$KVDESK_NOTARY_PROFILE" --wait
    xcrun stapler staple "$dmg"
fi
