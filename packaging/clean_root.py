"""A Debian root of its own, with nothing in it but the base system: where an installed package is tried.

Owns making it (debootstrap, from the mirror that apt uses here), running commands in it and listing its files. Every
command has its own mounts, which end with it. Needs root.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import setup

MOUNTS = """
mount -t proc proc "$0/proc" && mount -t tmpfs tmpfs "$0/dev/shm" && mount -t tmpfs tmpfs "$0/run" || exit 97
chroot "$0" "$@" # not by exec: an X server sends no signal to process 1
"""
CHANGING = (
    "proc",
    "sys",
    "dev",
    "run",
    "tmp",
    "var/log",
    "var/cache",
    "var/lib/apt",
    "var/lib/dpkg",
    "var/tmp",
    "root",
)
"""Folders whose content says nothing about what a package left."""
USER = "person"
LIMIT_S = 900


class CleanRoot:
    """The root in `folder`. The base system is made once and kept as an archive beside it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._base = folder.with_suffix(".base.tar")

    def make(self) -> None:
        """A fresh one, whatever was there."""
        self.remove()
        if not self._base.exists():
            mirror, codename = mirror_of_apt()
            bootstrap = ["debootstrap", "--variant=minbase", codename, str(self.folder), mirror]
            setup.step(f"a root with Debian {codename} alone", bootstrap)
            part = self._base.with_suffix(".part")
            setup.step("keeping it", ["tar", "-C", str(self.folder), "-cf", str(part), "."])
            part.rename(self._base)
        else:
            self.folder.mkdir(parents=True)
            setup.step("a fresh root", ["tar", "-C", str(self.folder), "-xpf", str(self._base)])
        for name in ("resolv.conf", "hosts"):
            if Path("/etc", name).exists():
                shutil.copy(Path("/etc", name), self.folder / "etc" / name)
        for file in Path("/etc/apt/apt.conf.d").glob("*"):  # proxies, expiry
            if file.read_text(encoding="utf-8", errors="replace").lstrip().startswith("Acquire::"):
                shutil.copy(file, self.folder / "etc/apt/apt.conf.d" / file.name)
        self.run(["useradd", "--create-home", USER])
        self.run(["apt-get", "update", "-q"])

    def remove(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    def run(
        self, command: Sequence[str], *, user: str = "root", env: Mapping[str, str] | None = None, check: bool = True
    ) -> subprocess.CompletedProcess[str]:
        """Run a command in it. Raises SetupError with what it said when it fails."""
        home = "/root" if user == "root" else f"/home/{user}"
        inside = {
            "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            "HOME": home,
            "LANG": "C.UTF-8",
            "DEBIAN_FRONTEND": "noninteractive",
            **{name: value for name, value in os.environ.items() if name.lower().endswith("_proxy")},
            **(env or {}),
        }
        chroot = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", MOUNTS, str(self.folder)]
        drop = [] if user == "root" else ["setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups"]
        full = [*chroot, *drop, *command]
        try:
            result = subprocess.run(
                full, capture_output=True, text=True, env=inside, stdin=subprocess.DEVNULL, check=False, timeout=LIMIT_S
            )
        except subprocess.TimeoutExpired as error:
            raise setup.SetupError(f"{' '.join(command)} did not come to an end within {LIMIT_S} s") from error
        if check and result.returncode:
            raise setup.SetupError(
                f"{' '.join(command)}: exit code {result.returncode}\n{result.stdout}{result.stderr}"
            )
        return result

    def install(self, *packages: str) -> None:
        """With what they depend on and nothing else."""
        self.run(["apt-get", "install", "-q", "-y", "--no-install-recommends", *packages])

    def has(self, *programs: str) -> list[str]:
        """Those of the programs that are there."""
        return [name for name in programs if self.run(["sh", "-c", f"command -v {name}"], check=False).returncode == 0]

    def files(self) -> set[str]:
        """Every path, but those below folders that change anyway."""
        found = set()
        for top, folders, names in os.walk(self.folder):
            where = os.path.relpath(top, self.folder)
            folders[:] = [name for name in folders if os.path.normpath(f"{where}/{name}") not in CHANGING]
            found |= {os.path.normpath(f"/{where}/{name}") for name in (*names, *folders)}
        return found


def mirror_of_apt() -> tuple[str, str]:
    """Where apt gets this Debian from, and its name."""
    release = dict(
        line.split("=", 1) for line in Path("/etc/os-release").read_text(encoding="utf-8").splitlines() if "=" in line
    )
    codename = release.get("VERSION_CODENAME", "").strip('"')
    asked = ["apt-get", "indextargets", "--format", "$(REPO_URI) $(CODENAME) $(COMPONENT)", "Created-By: Packages"]
    for line in subprocess.run(asked, capture_output=True, text=True, check=True).stdout.splitlines():
        uri, name, component = line.split()
        if (name, component) == (codename, "main"):
            return uri.rstrip("/"), codename
    raise setup.SetupError(f"apt knows no mirror for {codename or 'this system'}.")
