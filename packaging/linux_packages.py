"""The packages for Linux: the tree that is installed, as a .deb and as a self-extracting .run.

    PREFIX/lib/kvdesk/…                            the bundle
    PREFIX/bin/kvdesk                              a link to its program
    PREFIX/share/applications, icons, mime, metainfo, doc

Owns where files go. The .deb needs no scripts of its own: desktop files, icons and MIME types have triggers in Debian.
"""

from __future__ import annotations

import gzip
import os
import shutil
from pathlib import Path

import libraries
import setup

HERE = Path(__file__).resolve().parent
ICON_SIZES = (16, 22, 24, 32, 48, 64, 96, 128, 256, 512)
CONTROL = """\
Package: kvdesk{suffix}
Version: {version}
Architecture: amd64
Maintainer: The kvdesk developers <maintainers@kvdesk.invalid>
Installed-Size: {kilobytes}
Depends: {depends}
Recommends: xkb-data
Suggests: fonts-noto-color-emoji, fonts-noto-cjk
Conflicts: {other}
Replaces: {other}
Section: misc
Priority: optional
Description: chat with GGUF models and watch what the KV cache does
 kvdesk runs language models on a laptop's processor with llama.cpp and shows,
 while you chat, what the KV cache does: every cell, every position, every
 token per second.
"""


def make(bundle: Path, build: Path, dist: Path, version: str) -> list[Path]:
    """Both packages without the embedded model, and with it; answers their files. The tree is left whole."""
    files = []
    for suffix in ("-without-model", ""):
        tree = build / "tree"
        lay_out(bundle, build / "icons", tree)
        if suffix:
            shutil.rmtree(tree / "lib/kvdesk/_internal/models")
        files += [make_deb(tree, build, dist, version, suffix), make_run(tree, build, dist, version, suffix)]
    return files


def lay_out(bundle: Path, icons: Path, tree: Path) -> None:
    """Everything below PREFIX, with the modes it will have."""
    shutil.rmtree(tree, ignore_errors=True)
    shutil.copytree(bundle, tree / "lib/kvdesk", symlinks=True)
    (tree / "bin").mkdir()
    (tree / "bin/kvdesk").symlink_to("../lib/kvdesk/kvdesk")
    share = tree / "share"
    copies = {
        "linux/kvdesk.desktop": "applications/kvdesk.desktop",
        "linux/kvdesk.metainfo.xml": "metainfo/io.github.kvdesk.kvdesk.metainfo.xml",
        "linux/kvdesk-mime.xml": "mime/packages/kvdesk.xml",
        "../resources/kvdesk.svg": "icons/hicolor/scalable/apps/kvdesk.svg",
    }
    for source, target in copies.items():
        _copy(HERE / source, share / target)
    for size in ICON_SIZES:
        _copy(icons / f"{size}.png", share / f"icons/hicolor/{size}x{size}/apps/kvdesk.png")
    doc = share / "doc/kvdesk"
    doc.mkdir(parents=True)
    (doc / "copyright").symlink_to("../../../lib/kvdesk/_internal/NOTICE.txt")
    changes = (HERE.parent / "CHANGELOG.md").read_bytes()
    (doc / "changelog.gz").write_bytes(gzip.compress(changes, 9, mtime=0))
    for path in tree.rglob("*"):
        if not path.is_symlink():
            program = path.is_dir() or path == tree / "lib/kvdesk/kvdesk"
            path.chmod(0o755 if program else 0o644)


def make_deb(tree: Path, build: Path, dist: Path, version: str, suffix: str) -> Path:
    root = build / "deb"
    shutil.rmtree(root, ignore_errors=True)
    shutil.copytree(tree, root / "usr", symlinks=True, copy_function=os.link)
    (root / "DEBIAN").mkdir()
    files = [path for path in tree.rglob("*") if path.is_file() and not path.is_symlink()]
    control = CONTROL.format(
        suffix=suffix,
        other="kvdesk" if suffix else "kvdesk-without-model",
        version=version,
        kilobytes=sum(path.stat().st_size for path in files) // 1024,
        depends=libraries.depends(tree / "lib/kvdesk"),
    )
    (root / "DEBIAN/control").write_text(control, encoding="utf-8")
    file = dist / f"kvdesk{suffix}_{version}_amd64.deb"
    setup.step("the .deb", ["dpkg-deb", "--root-owner-group", "-Zxz", "-z6", "--build", root, file])
    return file


def make_run(tree: Path, build: Path, dist: Path, version: str, suffix: str) -> Path:
    """A shell script that carries the tree as an archive behind its last line."""
    archive = build / "tree.tar.xz"
    pack = f"tar --sort=name --owner=0 --group=0 -C '{tree}' -cf - . | xz -6 -T0 > '{archive}'"
    setup.step("the archive of the .run", ["sh", "-c", pack])
    head = (HERE / "linux/install.sh").read_text(encoding="utf-8").replace("@VERSION@", version)
    n_lines = head.count("\n") + 1
    file = dist / f"kvdesk{suffix}-{version}-x86_64.run"
    with file.open("wb") as target, archive.open("rb") as source:
        target.write(head.replace("@LINES@", str(n_lines)).encode())
        shutil.copyfileobj(source, target)
    file.chmod(0o755)
    return file


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)
