"""A wheel has the icons, fonts and languages, and kvdesk finds them in it."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

from tests.places import ROOT

FIND = """
from kvdesk import paths
folder = paths.resources_dir()
print(folder, len(list((folder / "icons").glob("*.svg"))), len(list((folder / "fonts").glob("*.ttf"))))
print(sorted(paths.catalogues()), (folder / "kvdesk.svg").is_file())
"""


def test_a_wheel_has_the_resources_and_kvdesk_finds_them(tmp_path: Path) -> None:
    built = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert built.returncode == 0, built.stderr
    (wheel,) = tmp_path.glob("*.whl")
    installed = tmp_path / "installed"
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        archive.extractall(installed)
    ours = [file for file in (ROOT / "resources").rglob("*") if file.is_file()]
    assert {f"kvdesk/{file.relative_to(ROOT).as_posix()}" for file in ours} <= names
    assert not any(name.startswith("resources/") for name in names)
    found = subprocess.run(
        [sys.executable, "-c", FIND], cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(installed)},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    n_icons = len(list((ROOT / "resources" / "icons").glob("*.svg")))
    n_fonts = len(list((ROOT / "resources" / "fonts").glob("*.ttf")))
    place, languages = found.stdout.splitlines()
    assert place == f"{installed / 'kvdesk' / 'resources'} {n_icons} {n_fonts}"
    assert languages == "['zh_CN'] True"
