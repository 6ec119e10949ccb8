"""Makes the pictures of docs/ from the running application: `make screenshots`.

Each is a step of the guided tour (kvdesk/dev/tour.py), photographed from the real window with the real model. A new
picture is one line here and a `yield from self._picture(name)` there.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
IMAGES = ROOT / "docs" / "images"
SMALL, LARGE, DOUBLE = ("1280x800", "1"), ("1920x1080", "1"), ("1280x800", "2")  # size of the window, scale
CHATS = ("continued", "attachment", "compared", "branches", "arranged", "deleted", "found", "import")
SERVERS = ("serving", "connect")
HELP = ("palette", "shortcuts", "log", "about", "report", "tour")
STATES = ("two-conversations", "by-hand", "compacted", "graphs", "timeline", "by-position")
PICTURES = {
    # name in docs/images: (theme, size and scale, step of the tour)
    "window": ("dark", SMALL, "two-conversations"),
    "loaded": ("light", SMALL, "loaded"),
    "second-turn": ("light", SMALL, "second-turn"),
    "forgotten": ("light", SMALL, "forgotten"),
    "prefilled-again": ("light", SMALL, "prefilled-again"),
    "chat-parameters": ("light", SMALL, "chat-parameters"),
    "chat-parameters-dark": ("dark", SMALL, "chat-parameters"),
    **{f"{step}": ("light", SMALL, step) for step in (*CHATS, *SERVERS, *HELP, *STATES)},
    **{f"{step}-dark": ("dark", SMALL, step) for step in (*CHATS, *SERVERS, *HELP)},
    "settings": ("light", SMALL, "settings"),
    "settings-dark": ("dark", SMALL, "settings"),
    "all-settings": ("light", SMALL, "all-settings"),
    "all-settings-dark": ("dark", SMALL, "all-settings"),
    "formulas": ("light", SMALL, "formulas"),
    "formulas-dark": ("dark", SMALL, "formulas"),
    **{f"{step}-dark": ("dark", SMALL, step) for step in STATES[1:]},
    **{f"{step}-large-{theme}": (theme, LARGE, step) for step in STATES[1:4] for theme in ("light", "dark")},
    **{f"{step}-double-{theme}": (theme, DOUBLE, step) for step in STATES[1:3] for theme in ("light", "dark")},
}

CHINESE = {
    # name in docs/images: (theme, page), of `kvdesk demo --pages`
    "zh-window": ("dark", "chat"),
    "zh-chat-parameters": ("light", "parameters-prompt"),
    "zh-graphs": ("light", "graphs"),
    "zh-timeline": ("light", "timeline"),
    "zh-settings": ("light", "settings"),
    **{f"zh-{page}-{theme}": (theme, page) for page in ("downloads", "lab", "serving") for theme in ("light", "dark")},
}


def main() -> int:
    IMAGES.mkdir(parents=True, exist_ok=True)
    looks = sorted({(theme, size) for theme, size, _ in PICTURES.values()})
    with tempfile.TemporaryDirectory(prefix="kvdesk-screenshots-") as folder:
        done = all(
            _tour(
                Path(folder, f"{theme}-{size}-{scale}"),
                ["--theme", theme, "--size", size],
                scale,
                {name: step for name, (*wanted, step) in PICTURES.items() if wanted == [theme, (size, scale)]},
            )
            for theme, (size, scale) in looks
        ) and all(
            _tour(
                Path(folder, f"chinese-{theme}"),
                ["--theme", theme, "--size", SMALL[0], "--language", "zh_CN", "--pages"],
                SMALL[1],
                {name: page for name, (wanted, page) in CHINESE.items() if wanted == theme},
            )
            for theme in ("light", "dark")
        )
    return 0 if done else 1


def _tour(out: Path, options: list[str], scale: str, wanted: dict[str, str]) -> bool:
    """Run the tour and keep the pictures of these steps, by their name in docs/images. False: it failed."""
    tour = [sys.executable, "-m", "kvdesk", "demo", "--offscreen", *options, "--out", str(out)]
    if subprocess.run(tour, cwd=ROOT, env=os.environ | {"QT_SCALE_FACTOR": scale}, check=False).returncode:
        print(f"The tour failed; its report is:\n{(out / 'report.json').read_text(encoding='utf-8')}")
        return False
    for name, step in wanted.items():
        (found,) = out.glob(f"[0-9][0-9]-{step}.png")
        shutil.copy(found, IMAGES / f"{name}.png")
        print(f"docs/images/{name}.png")
    return True


if __name__ == "__main__":
    raise SystemExit(main())
