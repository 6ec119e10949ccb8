"""Makes the pictures of docs/ from the running application: `make screenshots`, with `MODEL=FILE` by another model than
the embedded one. `make screenshots-check` lists those that are older than the views they show.

Each is a step of the guided tour (tests/tour/tour.py), photographed from the real window with the real model. A new
picture is one line here and a `yield from self._picture(name)` there. What only motion explains is a film: a line here,
and a class in tests/tour/film.py. `make screenshots NAMES="sharing undo"` makes these alone.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from itertools import pairwise
from pathlib import Path

from PIL import Image

ROOT = Path(__file__).resolve().parent.parent
IMAGES = ROOT / "docs" / "images"
SIZE = "1280x800"
CHATS = ("continued", "attachment", "compared", "branches", "arranged", "deleted", "found", "import")
SERVERS = ("serving", "connect")
HELP = ("palette", "shortcuts", "log", "about", "report", "tour")
STATES = ("two-conversations", "by-hand", "compacted", "graphs", "timeline", "by-position", "attention")
PICTURES = {
    # name in docs/images: (theme, step of the tour)
    "loaded": ("light", "loaded"),
    "second-turn": ("light", "second-turn"),
    "forgotten": ("light", "forgotten"),
    "prefilled-again": ("light", "prefilled-again"),
    "chat-parameters": ("light", "chat-parameters"),
    "chat-parameters-dark": ("dark", "chat-parameters"),
    **{f"{step}": ("light", step) for step in (*CHATS, *SERVERS, *HELP, *STATES)},
    **{f"{step}-dark": ("dark", step) for step in (*CHATS, *SERVERS, *HELP)},
    "settings": ("light", "settings"),
    "settings-dark": ("dark", "settings"),
    "all-settings": ("light", "all-settings"),
    "all-settings-dark": ("dark", "all-settings"),
    "probabilities-dark": ("dark", "probabilities"),
    "formulas": ("light", "formulas"),
    "formulas-dark": ("dark", "formulas"),
    **{f"{step}-dark": ("dark", step) for step in STATES[1:]},
}

FILMS = {
    # name in docs/images: (theme, film), of `kvdesk demo --film`
    "kvdesk": ("dark", "kvdesk"),
    **{film: ("light", film) for film in ("sharing", "compaction", "undo", "playback")},
}
FRAME_AT_MOST_MS, LAST_FRAME_MS = 1000, 3000

CHINESE = {
    # name in docs/images: (theme, page), of `kvdesk demo --pages`
    "zh-window": ("dark", "chat"),
    "zh-chat-parameters": ("light", "parameters-prompt"),
    "zh-graphs": ("light", "graphs"),
    "zh-timeline": ("light", "timeline"),
    "zh-settings": ("light", "settings"),
    **{f"zh-{page}-{theme}": (theme, page) for page in ("downloads", "lab", "serving") for theme in ("light", "dark")},
}
ALL = PICTURES | CHINESE | FILMS
EVERY_NAME = tuple(ALL)

EVERY = ("kvdesk/ui/widgets", "kvdesk/ui/shell", "kvdesk/ui/chat", "kvdesk/ui/chat_list", "kvdesk/ui/messages")
MAP = ("kvdesk/ui/map", "kvdesk/ui/cache", "kvdesk/viewmodel/palette.py")
VIEWS = {
    # a step, page or film: the sources of what it shows beside EVERY and MAP, or in their place (for dialogs)
    **dict.fromkeys(("by-hand", "compacted", "compaction", "undo"), (*EVERY, *MAP, "kvdesk/ui/operations")),
    "graphs": (*EVERY, "kvdesk/ui/graphs"),
    **dict.fromkeys(("timeline", "playback"), (*EVERY, *MAP, "kvdesk/ui/timeline")),
    "attention": (*EVERY, *MAP, "kvdesk/ui/attention"),
    "compared": (*EVERY, *MAP, "kvdesk/ui/messages"),
    "attachment": (*EVERY, *MAP, "kvdesk/ui/composer"),
    "formulas": (*EVERY, *MAP, "kvdesk/ui/markdown"),
    "lab": ("kvdesk/ui/widgets", "kvdesk/ui/lab"),
    "downloads": ("kvdesk/ui/widgets", "kvdesk/ui/models"),
    **dict.fromkeys(("connect", "serving"), ("kvdesk/ui/widgets", "kvdesk/ui/settings", "kvdesk/ui/server")),
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
    if unknown := set(args.names) - set(EVERY_NAME):
        parser.error(f"no such picture: {', '.join(sorted(unknown))}")
    if args.check:
        return check()
    return make(set(args.names or EVERY_NAME), args.model)


def sources(name: str) -> tuple[str, ...]:
    """The files and folders that draw what a picture shows."""
    _, step = ALL[name]
    return VIEWS.get(step, (*EVERY, *MAP))


def file_of(name: str) -> str:
    """A picture's place in the project."""
    return f"docs/images/{name}.{'webp' if name in FILMS else 'png'}"


def check() -> int:
    """List the pictures that were committed before their views. 1: there are some."""
    old = [name for name in EVERY_NAME if is_older(committed_at(file_of(name)), name)]
    for name in old:
        print(f"{file_of(name)} is older than {' '.join(sources(name))}")
    print(f"{len(old)} of {len(EVERY_NAME)} pictures are older than the views that they show.")
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
    plain: list[str] = []
    chinese = ["--language", "zh_CN", "--pages"]
    with tempfile.TemporaryDirectory(prefix="kvdesk-screenshots-") as made:
        for pictures, options in ((PICTURES, plain), (CHINESE, chinese)):
            out = Path(made, str(len(options)))
            wanted = {name: of for name, of in pictures.items() if name in names}
            if wanted and not _demo(out, ["--theme", "both", *options, *answering]):
                return 1
            for name, (theme, step) in wanted.items():
                (found,) = out.glob(f"[0-9][0-9]-{step}-{theme}.png")
                _keep(found, name)
        for name, (theme, film) in FILMS.items():
            if name in names:
                frames = Path(made, film)
                if not _demo(frames, ["--film", film, "--theme", theme, *answering]):
                    return 1
                _keep(join(frames), name)
    return 0


def _keep(made: Path, name: str) -> None:
    shutil.copy(made, ROOT / file_of(name))
    print(file_of(name))


def _demo(out: Path, options: list[str]) -> bool:
    """Run `kvdesk demo`. False: it failed."""
    demo = [sys.executable, "-m", "kvdesk", "demo", "--offscreen", "--size", SIZE, *options, "--out", str(out)]
    if subprocess.run(demo, cwd=ROOT, env=os.environ | {"QT_SCALE_FACTOR": "1"}, check=False).returncode == 0:
        return True
    print(f"The tour failed; its report is:\n{(out / 'report.json').read_text(encoding='utf-8')}")
    return False


def join(folder: Path) -> Path:
    """Make one animated picture of the frames in a folder, frame-MS.bmp, that repeats for ever."""
    frames = sorted(folder.glob("frame-*.bmp"))
    times = [int(frame.stem.rpartition("-")[2]) for frame in frames]
    shown = [min(later - time, FRAME_AT_MOST_MS) for time, later in pairwise(times)]
    first, *others = (Image.open(frame) for frame in frames)
    film = folder / "film.webp"
    first.save(
        film, save_all=True, append_images=others, duration=[*shown, LAST_FRAME_MS], loop=0, quality=70, method=4
    )
    return film


if __name__ == "__main__":
    raise SystemExit(main())
