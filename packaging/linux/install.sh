#!/bin/sh
# kvdesk @VERSION@: installs itself below a prefix. `sh kvdesk.run --help` says how. The archive begins at line @LINES@.
set -eu

usage() {
    echo "usage: $0 [--prefix DIR]   install kvdesk @VERSION@ (default: ~/.local, for root /usr/local)"
    echo "       DIR/lib/kvdesk/uninstall removes it again; chats and settings stay"
}

if [ "$(id -u)" -eq 0 ]; then prefix=/usr/local; else prefix=${HOME:?}/.local; fi
while [ $# -gt 0 ]; do
    case $1 in
        --prefix) prefix=${2:?--prefix needs a folder}; shift ;;
        --help) usage; exit 0 ;;
        *) usage >&2; exit 2 ;;
    esac
    shift
done
[ "$(uname -sm)" = "Linux x86_64" ] || { echo "This package is for Linux on x86-64." >&2; exit 1; }
command -v xz > /dev/null || { echo "Unpacking needs the program xz; install the package xz-utils." >&2; exit 1; }
if ! tail -n +@LINES@ "$0" | xz -t 2> /dev/null; then
    echo "This file is damaged or not complete. Nothing was changed." >&2
    exit 1
fi
mkdir -p "$prefix"
prefix=$(cd "$prefix" && pwd)
if [ -x "$prefix/lib/kvdesk/uninstall" ]; then "$prefix/lib/kvdesk/uninstall" > /dev/null; fi

list=$(mktemp)
trap 'rm -f "$list"' EXIT
tail -n +@LINES@ "$0" | xz -dc | tar -C "$prefix" -xvf - --no-same-owner > "$list"
desktop=$prefix/share/applications/kvdesk.desktop
place=$(printf '%s' "$prefix" | sed 's/[&|\\]/\\&/g')
sed -i "s|^Exec=kvdesk|Exec=\"$place/bin/kvdesk\"|; s|^Icon=kvdesk|Icon=$place/share/icons/hicolor/scalable/apps/kvdesk.svg|" "$desktop"

# What the system's tools make of our files; it goes with the last file that it was made of.
refresh='if ls "$prefix"/share/applications/*.desktop > /dev/null 2>&1; then
    if command -v update-desktop-database > /dev/null; then update-desktop-database "$prefix/share/applications" || true; fi
else
    rm -f "$prefix/share/applications/mimeinfo.cache"
fi
if ls "$prefix"/share/mime/packages/*.xml > /dev/null 2>&1; then
    if command -v update-mime-database > /dev/null; then update-mime-database "$prefix/share/mime" || true; fi
else
    rm -rf "$prefix/share/mime"
fi
rmdir "$prefix/share/applications" "$prefix/share" 2> /dev/null || true'
{
    echo '#!/bin/sh'
    echo '# Removes kvdesk and nothing else; folders go only when they are empty.'
    echo 'prefix=$(cd "$(dirname "$0")/../.." && pwd)'
    echo 'cd "$prefix"'
    echo 'while IFS= read -r path; do'
    echo '    if [ -d "$path" ] && [ ! -L "$path" ]; then rmdir "$path" 2> /dev/null; else rm -f "$path"; fi'
    echo "done << 'END'"
    printf '%s\n' ./lib/kvdesk/uninstall
    sort -r "$list" | sed '/^\.\/$/d; s|/$||'
    echo 'END'
    echo "$refresh"
    echo 'echo "kvdesk is removed; chats and settings stay in the folder for data of programs."'
} > "$prefix/lib/kvdesk/uninstall"
chmod 755 "$prefix/lib/kvdesk/uninstall"
eval "$refresh"

missing=$(find "$prefix/lib/kvdesk" -name '*.so*' -type f -exec ldd {} + 2> /dev/null | sed -n 's/^\t\(.*\) => not found/\1/p' | sort -u)
if [ -n "$missing" ]; then
    echo "This system lacks libraries that kvdesk needs; its package manager has them:"
    echo "$missing" | sed 's/^/    /'
fi
echo "kvdesk @VERSION@ is installed: $prefix/bin/kvdesk"
exit 0
