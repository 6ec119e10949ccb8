"""Films two chats that answer at once and a second turn that starts at once: the picture at the top of the README."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from PySide6.QtCore import QTimer

from kvdesk.app.controller import Controller
from kvdesk.ui.shell.main_window import MainWindow
from tests.tour.serving_steps import Condition
from tests.tour.tour import TICK_MS, Tour

FRAME_MS = 180
LOOK_S = 1.5
_LETTERS = 3
"""Typed at once, every `TICK_MS`."""


class Film(Tour):
    """As the tour, without captions. Frames go into `folder` as frame-MS.png, MS being the time since the first."""

    def __init__(self, window: MainWindow, controller: Controller, folder: Path, *others: Any) -> None:
        super().__init__(window, controller, folder, *others)
        self._began = 0.0
        self._shutter = QTimer(self, interval=FRAME_MS)
        self._shutter.timeout.connect(self._expose)

    def _steps(self) -> Iterator[Condition]:
        self._say("Loading the model")
        yield lambda: "model" in self._report and bool(self._ready) and self._view is not None
        self._began = time.monotonic()
        self._shutter.start()
        first = self._selected()
        yield from self._ask("Write a Python function is_prime(n). Code only.")
        yield lambda: self._said(first) > 100
        self._window.commands.new_chat()
        yield from self._ask("In one sentence: what is a KV cache?")
        yield lambda: len(self._ended) == 2
        yield self._after(LOOK_S)
        self._window.commands.select(first)
        yield from self._ask("What does it return for 1? One sentence.")
        yield lambda: len(self._ended) == 3
        yield self._after(LOOK_S)
        self._shutter.stop()

    def _ask(self, text: str) -> Iterator[Condition]:
        """Type a question and send it."""
        composer = self._window.chat.composer
        for end in range(_LETTERS, len(text) + _LETTERS, _LETTERS):
            composer.set_text(text[:end])
            yield self._after(TICK_MS / 1000)
        yield self._after(0.4)
        composer.submit()

    def _expose(self) -> None:
        ms = round((time.monotonic() - self._began) * 1000)
        self._window.grab().save(str(self._folder / f"frame-{ms:06d}.png"), None, 90)

    def _say(self, what: str) -> None:
        self._report["steps"].append(what)
