#!/bin/sh
# For CI: puts the certificate and the notary's credentials into a keychain of their own, which becomes the default.
#
#   KVDESK_CERTIFICATE, KVDESK_CERTIFICATE_PASSWORD   a "Developer ID Application" certificate with its key: .p12, base64
#   APPLE_ID, APPLE_TEAM_ID, APPLE_APP_PASSWORD       for `notarytool`; they become the profile "kvdesk"
set -eu
keychain=$RUNNER_TEMP/kvdesk.keychain-db
password=$(uuidgen)
certificate=$RUNNER_TEMP/certificate.p12
trap 'rm -f "$certificate"' EXIT
printf '%s' "$KVDESK_CERTIFICATE" | base64 --decode > "$certificate"

security create-keychain -p "$password" "$keychain"
security set-keychain-settings -lut 21600 "$keychain"
security unlock-keychain -p "$password" "$keychain"
security import "$certificate" -P "$KVDESK_CERTIFICATE_PASSWORD" -f pkcs12 -k "$keychain" -T /usr/bin/codesign
security set-key-partition-list -S apple-tool:,apple: -s -k "$password" "$keychain" > /dev/null
security list-keychains -d user -s "$keychain" login.keychain
security default-keychain -s "$keychain"
xcrun notarytool store-credentials kvdesk \
    --apple-id "$APPLE_ID" --team-id "$APPLE_TEAM_ID" --password "$APPLE_APP_PASSWORD"
