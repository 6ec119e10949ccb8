"""Makes the pictures of docs/ from the running application: `make screenshots`, with `MODEL=FILE` by another model than
the embedded one. `make screenshots-check` lists those that are older than the views they show.

Each is a step of the guided tour (kvdesk/dev/tour.py), photographed from the real window with the real model. A new
picture is one line here and a `yield from self._picture(name)` there.
"""

from __future__ import annotations

import argparse
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


EVERY = ("kvdesk/ui/widgets", "kvdesk/ui/shell", "kvdesk/ui/chat", "kvdesk/ui/chat_list", "kvdesk/ui/messages")
MAP = ("kvdesk/ui/map", "kvdesk/ui/cache", "kvdesk/viewmodel/palette.py")
VIEWS = {
    # a step or page: the sources of what it shows beside EVERY and MAP, or in their place (for dialogs)
    **dict.fromkeys(("by-hand", "compacted"), (*EVERY, *MAP, "kvdesk/ui/operations")),
    "graphs": (*EVERY, "kvdesk/ui/graphs"),
    "timeline": (*EVERY, *MAP, "kvdesk/ui/timeline"),
    "compared": (*EVERY, *MAP, "kvdesk/ui/messages"),
    "attachment": (*EVERY, *MAP, "kvdesk/ui/composer"),
    "formulas": (*EVERY, *MAP, "kvdesk/ui/markdown"),
    "lab": ("kvdesk/ui/widgets", "kvdesk/ui/lab"),
    "downloads": ("kvdesk/ui/widgets", "kvdesk/ui/models"),
    "connect": ("kvdesk/ui/widgets", "kvdesk/ui/models"),
    "serving": ("kvdesk/ui/widgets", "kvdesk/ui/server"),
    "import": ("kvdesk/ui/widgets", "kvdesk/ui/chat_list/import_dialog.py"),
    **dict.fromkeys(("settings", "all-settings"), ("kvdesk/ui/widgets", "kvdesk/ui/settings")),
    **dict.fromkeys(("chat-parameters", "parameters-prompt"), ("kvdesk/ui/widgets", "kvdesk/ui/parameters")),
    **dict.fromkeys(("about", "report"), ("kvdesk/ui/widgets", "kvdesk/ui/shell")),
}


def main() -> int:
    parser = argparse.ArgumentParser(description="Makes the pictures of docs/.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these pictures (default: all)")
    parser.add_argument("--model", type=Path, metavar="FILE", help="a GGUF file (default: the embedded model)")
    parser.add_argument("--check", action="store_true", help="list the pictures that are older than their views")
    args = parser.parse_args()
    if unknown := set(args.names) - set(PICTURES) - set(CHINESE):
        parser.error(f"no such picture: {', '.join(sorted(unknown))}")
    if args.check:
        return check()
    return make(set(args.names) or {*PICTURES, *CHINESE}, args.model)


def sources(name: str) -> tuple[str, ...]:
    """The files and folders that draw what a picture shows."""
    step = PICTURES[name][2] if name in PICTURES else CHINESE[name][1]
    return VIEWS.get(step, (*EVERY, *MAP))


def check() -> int:
    """List the pictures that were committed before their views. 1: there are some."""
    old = [name for name in (*PICTURES, *CHINESE) if is_older(committed_at(f"docs/images/{name}.png"), name)]
    for name in old:
        print(f"docs/images/{name}.png is older than {' '.join(sources(name))}")
    print(f"{len(old)} of {len(PICTURES) + len(CHINESE)} pictures are older than the views that they show.")
    return 1 if old else 0


def is_older(made_at: int, name: str) -> bool:
    """Whether what draws a picture was committed after it. `made_at`: 0 for a picture that is not committed."""
    return made_at < committed_at(*sources(name))


def committed_at(*places: str) -> int:
    """Seconds since 1970 of the last commit that changed one of these; 0 without any."""
    log = ["git", "log", "-1", "--format=%ct", "--", *places]
    said = subprocess.run(log, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
    return int(said) if said else 0


def make(names: set[str], model: Path | None) -> int:
    """Make these pictures. 1: a tour failed."""
    IMAGES.mkdir(parents=True, exist_ok=True)
    answering = [] if model is None else ["--model", str(model.resolve())]
    looks = sorted({(theme, size) for name, (theme, size, _) in PICTURES.items() if name in names})
    with tempfile.TemporaryDirectory(prefix="kvdesk-screenshots-") as folder:
        done = all(
            _tour(
                Path(folder, f"{theme}-{size}-{scale}"),
                ["--theme", theme, "--size", size, *answering],
                scale,
                {
                    name: step
                    for name, (*wanted, step) in PICTURES.items()
                    if name in names and wanted == [theme, (size, scale)]
                },
            )
            for theme, (size, scale) in looks
        ) and all(
            _tour(
                Path(folder, f"chinese-{theme}"),
                ["--theme", theme, "--size", SMALL[0], "--language", "zh_CN", "--pages", *answering],
                SMALL[1],
                {name: page for name, (wanted, page) in CHINESE.items() if name in names and wanted == theme},
            )
            for theme in sorted({theme for name, (theme, _) in CHINESE.items() if name in names})
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
