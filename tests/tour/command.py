"""`kvdesk demo`: a guided tour of the window with the real model; pictures and report.json are kept."""

import os
import sys
import tempfile
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kvdesk.cli.parser import Parser
from kvdesk.settings import ThemeChoice
from kvdesk.translation import tr

PAUSE_S = 2.5
FILM_N_CTX = 1024
"""Few cells, so that a person sees the map fill."""
FILM_INSPECTOR_PX = 620
"""Cells of eight pixels."""
FILM_TOKENS, ANSWER_TOKENS = 200, 240
"""At most. Most answers of a model of 1.5 billion parameters are shorter."""
FILMS = ("kvdesk", "sharing", "compaction", "undo", "playback")
"""Each a class of `tests.tour.film`."""
BOTH = "both"


def main(argv: Sequence[str]) -> int:
    """Exit code 0 when every step did what it should, 1 when one did not, 2 for bad input."""
    parser = Parser("demo", tr("A guided tour of the window with the real model; pictures and report.json are kept."))
    parser.add_argument("--offscreen", action="store_true", help=tr("draw into memory: needs no display"))
    parser.add_argument("--out", type=Path, default=Path("demo-out"), metavar="DIR", help=tr("default: demo-out"))
    parser.add_argument("--size", default="1280x800", metavar="WxH", help=tr("size of the window (default 1280x800)"))
    parser.add_argument("--model", type=Path, metavar="FILE", help=tr("a GGUF file in the place of the embedded model"))
    parser.add_argument(
        "--theme",
        choices=[*ThemeChoice, BOTH],
        default=ThemeChoice.SYSTEM,
        help=tr("both: every picture is made in dark and in light"),
    )
    parser.add_argument("--language", default="system", metavar="CODE", help=tr('such as "en" or "zh_CN"'))
    parser.add_argument("--zoom", type=int, default=100, choices=range(50, 201), metavar="PERCENT")
    parser.add_argument(
        "--pages", action="store_true", help=tr("photograph every page and dialog in place of the tour")
    )
    parser.add_argument("--film", choices=FILMS, help=tr("film one thing that moves, in place of the tour"))
    args = parser.parse_args(argv)
    try:
        width, height = (int(part) for part in args.size.split("x"))
        if not (640 <= width <= 7680 and 480 <= height <= 4320):
            raise ValueError
        args.out.mkdir(parents=True, exist_ok=True)
        for kind in ("[0-9][0-9]-*.png", "frame-*.bmp", "report.json"):
            for old in args.out.glob(kind):
                old.unlink()  # of an earlier tour
    except ValueError:
        print(tr("--size takes a width and a height from 640x480 on, such as 1280x800."), file=sys.stderr)
        return 2
    except OSError as error:
        print(
            tr("The folder {out} cannot be made: {strerror}.").format(out=args.out, strerror=error.strerror),
            file=sys.stderr,
        )
        return 2
    if args.offscreen:
        os.environ["QT_QPA_PLATFORM"] = "offscreen"
    with tempfile.TemporaryDirectory(prefix="kvdesk-demo-") as home:  # a tour leaves nothing in the person's chats
        os.environ["KVDESK_HOME"] = home
        return _run(args, (width, height), 0.0 if args.offscreen else PAUSE_S)


def _run(args: Namespace, size: tuple[int, int], pause_s: float) -> int:
    from kvdesk import paths
    from kvdesk.app.application import build, owned_process
    from kvdesk.app.display import has_display
    from kvdesk.errors import UserError
    from kvdesk.settings import CachePolicy, ContextSettings, Sampling, Settings, WindowPlace
    from kvdesk.store.settings_file import save_settings
    from tests.tour import film
    from tests.tour.pages import Pages
    from tests.tour.tour import Tour

    if not has_display():
        print(tr("There is no display; `kvdesk demo --offscreen` needs none."), file=sys.stderr)
        return 2
    sampling = Sampling(temperature=0.0, max_tokens=FILM_TOKENS if args.film else ANSWER_TOKENS)
    themes = (ThemeChoice.DARK, ThemeChoice.LIGHT) if args.theme == BOTH else ()
    look = Settings(
        theme=themes[0] if themes else ThemeChoice(args.theme),
        language=args.language,
        zoom=args.zoom,
        sampling=sampling,
        cache=CachePolicy(save_idle_requests=False),  # what it shows stays in the cache
    )
    shown: dict[str, Any] = {"all_instruments": True}
    if args.film:
        window = WindowPlace(inspector_width=FILM_INSPECTOR_PX)
        shown = {"context": ContextSettings(n_ctx=FILM_N_CTX), "window": window, **film.FILMS[args.film].settings}
    save_settings(look.model_copy(update=shown), paths.settings_file())
    out = args.out
    try:
        with owned_process():
            parts = build(None if args.model is None else str(args.model.resolve()))
            parts.window.resize(*size)
            parts.window.show()
            script = film.FILMS[args.film] if args.film else Pages if args.pages else Tour
            tour = script(parts.window, parts.controller, out, pause_s, themes)
            tour.finished.connect(lambda passed: parts.qt.exit(0 if passed else 1))
            tour.start()
            code = parts.qt.exec()
            parts.controller.shut_down()
    except UserError as error:
        print(error, file=sys.stderr)
        return 2
    report = out / "report.json"
    print(
        tr("The tour is over; its pictures and {report} are in {out}.").format(report=report, out=out)
        if report.is_file()
        else tr("The tour was ended.")
    )
    return int(code)
