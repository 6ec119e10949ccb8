"""A child: the real application, used by random numbers. `python -m tests.stress.driver TOLD SEED [--model FILE]`

What it shows and what the database has acknowledged goes to the file TOLD, a JSON object a line with `at`, the time of
`time.monotonic` (one clock for all processes of a Linux machine). Ends when the window is closed, with `--close S` by
itself S seconds after it was built.
"""

import argparse
import json
import os
import random
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any

from PySide6.QtCore import QTimer
from PySide6.QtGui import QCloseEvent

from kvdesk.app import application
from kvdesk.cache.compaction import Layout
from kvdesk.chat import Conversation
from kvdesk.errors import UserError
from kvdesk.message import ConversationId, Message
from kvdesk.protocol.cache import AuditCache, ContextReady, Forget
from kvdesk.protocol.chat import EngineDied, EngineRestarted, ModelLoading, TextDelta, TurnEnded
from kvdesk.protocol.messages import Event
from kvdesk.protocol.operations import ClearCache, Compact, HandOperation, Operate, SwapIn, SwapOut
from kvdesk.session import Changed
from kvdesk.settings import Overflow
from kvdesk.store.store import Store
from kvdesk.ui.shell.main_window import MainWindow

PACE_MS = 40
WORDS = [
    "the",
    "sea",
    "a lamp",
    "of",
    "glass",
    "gulls",
    "and nine",
    "under",
    "cold rain",
    "über dem",
    "海鷗",
    "🌊",
    "who waits",
]
MOST_CHATS = 6


class Told:
    """The file that outlives this process, unbuffered: what is written is there whatever happens next."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def __call__(self, what: str, **fields: Any) -> None:
        os.write(self._file, json.dumps({"at": time.monotonic(), "what": what, **fields}).encode() + b"\n")


def tell_what_is_stored(told: Told) -> None:
    """Every transaction is told of once it is committed: that is what the database has acknowledged."""
    written: list[tuple[str, str, str]] = []
    put_message, put_conversation = Store.put_message, Store.put_conversation
    delete, transaction = Store.delete_conversation, Store.transaction

    def note_message(store: Store, message: Message) -> None:
        put_message(store, message)
        written.append((message.id, message.conversation, message.text))

    def note_conversation(store: Store, conversation: Conversation) -> None:
        put_conversation(store, conversation)
        written.append((conversation.id, conversation.id, conversation.title))

    def note_deletion(store: Store, conversation: ConversationId) -> None:
        delete(store, conversation)
        written.append(("", conversation, ""))

    @contextmanager
    def told_transaction(store: Store) -> Iterator[None]:
        written.clear()
        with transaction(store):
            yield
        told("stored", rows=list(written))

    Store.put_message = note_message  # type: ignore[method-assign, assignment]
    Store.put_conversation = note_conversation  # type: ignore[method-assign, assignment]
    Store.delete_conversation = note_deletion  # type: ignore[method-assign, assignment]
    Store.transaction = told_transaction  # type: ignore[method-assign, assignment]


class Waits(threading.Thread):
    """From its start on: how long threads of this process, those that end meanwhile too, stood ready while others had
    the processor (proc(5), schedstat).
    """

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self._first = self._now()
        self._last = dict(self._first)

    @property
    def seconds(self) -> float:
        return sum(ns - self._first.get(task, 0) for task, ns in self._last.items()) / 1e9

    def start(self) -> None:
        self._first = self._now()
        self._last = dict(self._first)
        super().start()

    def run(self) -> None:
        while True:
            self._last |= self._now()
            time.sleep(0.02)

    @staticmethod
    def _now() -> dict[str, int]:
        found = {}
        for task in Path("/proc/self/task").glob("*/schedstat"):
            with suppress(OSError, IndexError, ValueError):  # a thread that has just ended
                found[task.parent.name] = int(task.read_bytes().split()[1])
        return found


class Driver:
    """Does what a person may do, one thing after another, by random numbers."""

    def __init__(self, parts: application.Parts, told: Told, seed: str, model: str) -> None:
        self.window = parts.window
        self._controller, self._told = parts.controller, told
        self._chats, self._model = parts.controller.chats, model
        self._conversations = parts.controller.conversations
        self._random = random.Random(seed)
        self._texts: dict[str, str] = {}
        self._ready = False
        self._acts = {
            self._send: 8, self._send_long: 3, self._edit: 3, self._regenerate: 2, self._stop: 2, self._delete: 2,
            self._new: 3, self._select: 4, self._operate: 6, self._fork: 2, self._forget: 1, self._type: 3,
            self._rename: 1, self._load: 1, self._rebuild: 1, self._change_settings: 1, self._audit: 1,
            self._toggle: 1,
        }  # fmt: skip
        self._controller.event_applied.connect(self._on_event)
        self._timer = QTimer(self.window, interval=PACE_MS)
        self._timer.timeout.connect(self._act)
        self._timer.start()

        self.window.closing.connect(self._timer.stop)

    def _on_event(self, event: Event) -> None:
        match event:
            case TextDelta():
                self._texts[event.answer] = self._texts.get(event.answer, "") + event.text
                self._told("shown", id=event.answer, where=event.conversation, text=self._texts[event.answer])
            case TurnEnded():
                self._told("ended", id=event.answer, state=event.state)
            case ModelLoading() if event.progress < 1.0:
                self._told("loading")
            case ContextReady():
                self._ready = True
                self._told("ready")
            case EngineRestarted() | EngineDied():
                self._told("died", detail=event.detail)
            case _:
                pass

    def _act(self) -> None:
        if not self._ready or self.window.store.selected is None or self._random.random() < 0.5:
            return
        (act,) = self._random.choices(list(self._acts), list(self._acts.values()))
        self._told("act", name=act.__name__)
        act()
        where = self.window.store.selected
        if act in (self._send, self._send_long, self._edit) and where is not None:
            for message in self._conversations.branch(where):
                if message.role == "user":
                    self._told("shown", id=message.id, where=where, text=message.text)

    # --- what a person does -------------------------------------------------------------------------------------------

    @property
    def _where(self) -> ConversationId:
        where = self.window.store.selected
        assert where is not None
        return where

    def _words(self, n: int) -> str:
        return " ".join(self._random.choices(WORDS, k=n))

    def _send(self) -> None:
        self.window.commands.conversations.send(self._where, self._words(self._random.randint(1, 12)))

    def _send_long(self) -> None:
        self.window.commands.conversations.send(self._where, self._words(self._random.randint(100, 400)))

    def _edit(self) -> None:
        if asked := [m for m in self._conversations.branch(self._where) if m.role == "user"]:
            self.window.commands.conversations.turns.edit(self._where, self._random.choice(asked).id, self._words(5))

    def _regenerate(self) -> None:
        self.window.commands.conversations.turns.regenerate(self._where, self._random.randint(1, 2))

    def _stop(self) -> None:
        self.window.commands.conversations.stop(self._where)

    def _new(self) -> None:
        if len(self._conversations) > MOST_CHATS:
            self._delete()
        self.window.commands.new_chat()

    def _delete(self) -> None:
        self._told("delete", where=self._where)
        self.window.commands.delete(self._where)
        self._random.choice([self._controller.deletions.finish, self._controller.deletions.undo, lambda: None])()

    def _select(self) -> None:
        self.window.commands.select(ConversationId(self._random.choice(self._all())))

    def _operate(self) -> None:
        where = ConversationId(self._random.choice(self._all()))
        layout = self._random.choice(list(Layout))
        operations: list[HandOperation] = [Compact(layout), SwapOut(where), SwapIn(where), ClearCache()]
        self.window.commands.submit(Operate(self._random.choice(operations)))

    def _fork(self) -> None:
        if len(self._conversations) <= MOST_CHATS:
            self.window.commands.fork(self._where, None)

    def _forget(self) -> None:
        self.window.commands.submit(Forget(self._where))

    def _type(self) -> None:
        self.window.commands.conversations.keep_draft(self._where, self._words(4))
        self.window.commands.conversations.turns.preview(self._where, self._words(4))

    def _rename(self) -> None:
        self.window.commands.conversations.rename(self._where, self._words(2))

    def _load(self) -> None:
        if self._model and self._random.random() < 0.5:
            self.window.commands.open_model(Path(self._model))
        else:
            self.window.commands.open_embedded()

    def _rebuild(self) -> None:
        keep = self._random.choice(["nothing", "tokens", "state"])
        self.window.commands.rebuild(self._controller.settings.context, keep)

    def _change_settings(self) -> None:
        store = self.window.store.settings
        settings = store.current
        sampling = settings.sampling.model_copy(update={"temperature": self._random.random()})
        cache = settings.cache.model_copy(update={"overflow": self._random.choice(list(Overflow))})
        store.change(sampling=sampling, cache=cache)

    def _audit(self) -> None:
        self.window.commands.submit(AuditCache())

    def _toggle(self) -> None:
        self.window.shown_settings.toggle_inspector()

    def _all(self) -> list[str]:
        return [known.id for known in self._conversations.conversations]


def hang(told: Told, at: int) -> None:
    """Call number `at` of llama_decode does not come back."""
    from kvdesk.backends.local.llama.binding import lib

    decode, calls = lib.llama_decode, count(1)

    def hangs(*args: Any) -> Any:
        if next(calls) == at:
            told("hangs")
            time.sleep(3600)
        return decode(*args)

    lib.llama_decode = hangs


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("told", type=Path)
    parser.add_argument("seed")
    parser.add_argument("--model", default="")
    parser.add_argument("--close", type=float)
    parser.add_argument("--hang", type=int, help="the decode of the first turns that never returns")
    args = parser.parse_args()
    told, waits = Told(args.told), Waits()
    tell_what_is_stored(told)
    build, drivers, close_event = application.build, list[Driver](), MainWindow.closeEvent

    def told_close_event(window: MainWindow, event: QCloseEvent) -> None:
        told("closing")
        waits.start()
        close_event(window, event)

    def build_and_drive(file: str | None) -> application.Parts:
        parts = build(file)
        store = parts.window.store
        store.listen(lambda c, _: told("unsaved", sentence=store.unsaved) if c & Changed.UNSAVED else None)
        drivers.append(Driver(parts, told, args.seed, args.model))
        if args.close is not None:
            QTimer.singleShot(round(1000 * args.close), parts.window, parts.window.close)
        if args.hang:
            hang(told, args.hang)
        told("built")
        return parts

    MainWindow.closeEvent = told_close_event  # type: ignore[method-assign, assignment]
    application.build = build_and_drive  # type: ignore[assignment]
    try:
        code = application.run(None)
    except UserError as error:  # as `kvdesk` itself says it
        sys.stderr.write(f"{error}\n")
        return 2
    told("closed", waited_s=waits.seconds)
    return code


if __name__ == "__main__":
    sys.exit(main())
