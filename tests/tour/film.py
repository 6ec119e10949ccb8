"""Films of what only motion explains, one class each; `FILMS` has their names."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

from PySide6.QtCore import QPoint, QTimer
from PySide6.QtGui import QColor, QPainter
from PySide6.QtWidgets import QAbstractButton, QWidget

from kvdesk.app.controller import Controller
from kvdesk.cache.compaction import Layout
from kvdesk.message import ConversationId
from kvdesk.protocol.cache import Forget
from kvdesk.session.operation_specs import REMOVE
from kvdesk.settings import ContextSettings
from kvdesk.ui.map import frame_clock
from kvdesk.ui.shell.main_window import MainWindow
from tests.tour import command
from tests.tour.serving_steps import Condition
from tests.tour.tour import TICK_MS, Tour

FRAME_MS = 180
LOOK_S = 1.5
_LETTERS = 3
"""Typed at once, every `TICK_MS`."""
DRAWN_FRAMES = 60
_POINTER_PX = 12
SYSTEM = (
    "You are the assistant of a small library by the sea. The library is open from nine to five, on Mondays it is "
    "closed. It lends books for three weeks, films for one week and maps for a day. A lost book costs what it cost "
    "when it was new. Children borrow without a card. The reading room on the first floor is quiet; groups meet in the "
    "cellar, which has room for twelve. The catalogue lists every book by author, title and shelf. Shelves one to nine "
    "are fiction, ten to fourteen are the sea, ships and weather, fifteen is the history of this town. If you do not "
    "know a book, say so. Answer in one or two short sentences, and name the shelf if you know it."
)
"""What two chats share."""


class Film(Tour):
    """As the tour, without captions. Frames go into `folder` as frame-MS.bmp, MS being the time since the first: what
    is quickly written takes no time from the answers that it shows.
    """

    settings: ClassVar[dict[str, Any]] = {}
    """Of the application, beside those of every film."""

    def __init__(self, window: MainWindow, controller: Controller, folder: Path, *others: Any) -> None:
        super().__init__(window, controller, folder, *others)
        self._began = 0.0
        self._shown: QWidget = window
        self._pressed: QAbstractButton | None = None
        self._chats: list[ConversationId] = []
        self._shutter = QTimer(self, interval=FRAME_MS)
        self._shutter.timeout.connect(self._expose)

    def _steps(self) -> Iterator[Condition]:
        self._say("Loading the model")
        yield lambda: "model" in self._report and bool(self._ready) and self._view is not None
        yield from self._before()
        self._began = time.monotonic()
        self._shutter.start()
        yield from self._scenes()
        yield self._after(LOOK_S)
        self._shutter.stop()

    def _before(self) -> Iterator[Condition]:
        """What has happened when the film begins."""
        yield from ()

    def _scenes(self) -> Iterator[Condition]:
        """What is filmed."""
        raise NotImplementedError

    def _ask(self, text: str) -> Iterator[Condition]:
        """Type a question and send it."""
        composer = self._window.chat.composer
        for end in range(_LETTERS, len(text) + _LETTERS, _LETTERS):
            composer.set_text(text[:end])
            yield self._after(TICK_MS / 1000)
        yield self._after(0.4)
        composer.submit()

    def _at_once(self, *questions: str) -> Iterator[Condition]:
        """A chat for each question; all are answered at once."""
        n = len(self._ended) + len(questions)
        for question in questions:
            self._window.commands.new_chat()
            self._chats.append(self._selected())
            self._window.commands.conversations.send(self._chats[-1], question)
        yield lambda: len(self._ended) == n
        yield self._after(LOOK_S)

    def _press(self, button: QAbstractButton) -> Iterator[Condition]:
        """Press a button under a pointer, which a frame would not have otherwise."""
        yield button.isEnabled
        self._pressed = button
        button.setDown(True)
        yield self._after(0.6)
        button.setDown(False)
        self._pressed = None
        button.click()

    def _forget(self, conversation: ConversationId) -> Iterator[Condition]:
        used = self._used()
        self._window.commands.submit(Forget(conversation))
        yield lambda: self._used() < used

    def _operated(self, name: str) -> Iterator[Condition]:
        """Wait for an operation by hand that has just been asked for."""
        n = len(self._operations)
        yield lambda: any(done.name == name and done.effect is not None for done in self._operations[n:])
        yield self._after(LOOK_S)

    def _expose(self) -> None:
        ms = round((time.monotonic() - self._began) * 1000)
        frame = self._shown.grab()
        if self._pressed is not None:
            at = self._pressed.mapTo(self._shown, self._pressed.rect().center() + QPoint(0, _POINTER_PX // 2))
            painter = QPainter(frame)
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.setBrush(QColor(230, 80, 30, 150))
            painter.setPen(QColor("white"))
            painter.drawEllipse(at, _POINTER_PX, _POINTER_PX)
            painter.end()
        frame.save(str(self._folder / f"frame-{ms:06d}.bmp"))

    def _say(self, what: str) -> None:
        self._report["steps"].append(what)


class Filling(Film):
    """A file is read while another chat answers, and the next question about it is answered at once: the picture at the
    top of the README.
    """

    settings: ClassVar[dict[str, Any]] = {"context": ContextSettings(n_ctx=2048)}

    def _before(self) -> Iterator[Condition]:
        yield from self._at_once("Explain to a child in six sentences why the sky is blue.")

    def _scenes(self) -> Iterator[Condition]:
        composer, attachments = self._window.chat.composer, self._window.chat.attachments
        self._window.commands.new_chat()
        first = self._selected()
        yield self._after(LOOK_S)
        attachments.give([frame_clock.__file__])
        yield lambda: bool(composer.attachments.attachments)
        yield from self._ask("What is this file for? Two sentences.")
        yield self._after(2 * LOOK_S)
        self._window.commands.new_chat()
        yield from self._ask("In two sentences: what is a KV cache for?")
        yield lambda: len(self._ended) == 3
        yield self._after(LOOK_S)
        self._window.commands.select(first)
        yield from self._ask("How often may it refresh?")
        yield lambda: len(self._ended) == 4


class Sharing(Film):
    """Two chats begin with the same system prompt: the second one's answer starts at once, in shared cells."""

    settings: ClassVar[dict[str, Any]] = {"system_prompt": SYSTEM}

    def _before(self) -> Iterator[Condition]:
        yield from self._at_once("When do you close?")

    def _scenes(self) -> Iterator[Condition]:
        yield self._after(2 * LOOK_S)
        self._window.commands.new_chat()
        yield from self._ask("Where are books about ships?")
        yield lambda: len(self._ended) == 2


class Compaction(Film):
    """One of three chats is forgotten, and what is left moves to the front."""

    settings: ClassVar[dict[str, Any]] = {"all_instruments": True}

    def _before(self) -> Iterator[Condition]:
        self._shown = self._window.inspector
        yield from self._at_once(
            "Write a story about a lighthouse.", "Write a story about a beach.", "Write a story about the tide."
        )

    def _scenes(self) -> Iterator[Condition]:
        yield self._after(LOOK_S)
        yield from self._forget(self._chats[1])
        yield self._after(LOOK_S)
        self._window.action_set.run("cache.compact")
        card = self._window.inspector.cache.instruments.compaction
        card.choose(Layout.BY_CONVERSATION)
        yield card.compact_button.isEnabled
        yield self._after(2 * LOOK_S)
        yield from self._press(card.compact_button)
        yield from self._operated("compact")


class Undone(Film):
    """Positions are removed by hand, what that did is compared, and all of it is undone."""

    settings: ClassVar[dict[str, Any]] = {"all_instruments": True}

    def _before(self) -> Iterator[Condition]:
        self._shown = self._window.inspector
        yield from self._at_once("Write five sentences about a lighthouse.")

    def _scenes(self) -> Iterator[Condition]:
        instruments = self._window.inspector.cache.instruments
        yield self._after(LOOK_S)
        instruments.operations.set_open(True)
        seq_id = next(iter(self._ended.values())).stats.seq_id
        for end in range(44, 97, 4):
            self._window.store.choose_range(seq_id, 40, end)
            yield self._after(0.1)
        yield self._after(LOOK_S)
        yield from self._press(instruments.operations.button(REMOVE))
        yield from self._operated("seq_rm")
        yield self._after(LOOK_S)
        yield from self._press(instruments.effect.undo_button)
        yield from self._operated("undo")


class Playback(Film):
    """The slider of the time line is drawn over all operations, and the map is as it was after each."""

    def _before(self) -> Iterator[Condition]:
        self._shown = self._window.inspector
        yield from self._at_once("Write a story about a lighthouse.", "Write a story about a beach.")
        yield from self._forget(self._chats[0])
        yield from self._at_once("Write a story about the tide.")
        self._window.inspector.show_all(True)
        self._window.inspector.show_tab("Timeline")
        yield self._after(LOOK_S)

    def _scenes(self) -> Iterator[Condition]:
        slider = self._window.inspector.timeline.scrubber.slider
        yield self._after(LOOK_S)
        first, last = slider.minimum(), slider.maximum()
        for step in range(DRAWN_FRAMES + 1):
            slider.setValue(first + round((last - first) * step / DRAWN_FRAMES))
            yield self._after(FRAME_MS / 1000)


_FILMS: tuple[type[Film], ...] = (Filling, Sharing, Compaction, Undone, Playback)
FILMS = dict(zip(command.FILMS, _FILMS, strict=True))
