"""Answers what a user asks about kvdesk itself: versions and licences, and a report of a problem."""

import logging
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

from PySide6.QtCore import QObject, Signal

from kvdesk import paths
from kvdesk.app.background import CLOSE_S, Background
from kvdesk.app.chat.chats import Chats
from kvdesk.cache.journal.recording import Recording
from kvdesk.protocol.cache import RecordingTaken, TakeRecording
from kvdesk.protocol.chat import LogLine, ModelLoaded
from kvdesk.protocol.messages import Event
from kvdesk.protocol.model import ModelInfo
from kvdesk.session.commands import ReportChoice
from kvdesk.translation import tr
from kvdesk.ui.shell.main_window import MainWindow
from kvdesk.ui.widgets.timers import once

_LEVELS: Final = ("debug", "info", "warning", "error")
JOURNAL_MS: Final = 3_000
"""So long a report waits for the journal: an engine that hangs must not keep it from being written."""


class _Relay(logging.Handler):
    """Gives lines of kvdesk's own log to the window's, from whatever thread they come."""

    def __init__(self, give: Callable[[object], None]) -> None:
        super().__init__(logging.INFO)
        self._give = give

    def emit(self, record: logging.LogRecord) -> None:
        level = min(max(record.levelno // 10 - 1, 0), len(_LEVELS) - 1)
        with suppress(RuntimeError):  # the window is gone
            self._give(LogLine(_LEVELS[level], f"{record.name}: {record.getMessage()}"))


class HelpDesk(QObject):
    """One report at a time. `close` waits for one that is being written."""

    logged = Signal(LogLine)  # from any thread

    def __init__(self, window: MainWindow, chats: Chats) -> None:
        super().__init__(window)
        self._window, self._chats, self._session = window, chats, window.store
        self._opened: ModelInfo | None = None  # last, also after the engine has died
        self._wanted: tuple[Path, ReportChoice] | None = None
        self._background = Background("report", self)
        self._waiting = once(self, JOURNAL_MS, self._write)
        self.logged.connect(self._on_logged)
        self._relay = _Relay(self.logged.emit)
        logging.getLogger("kvdesk").addHandler(self._relay)

    def _on_logged(self, line: LogLine) -> None:
        self._session.apply(line)

    def apply(self, event: Event) -> None:
        """Remember what is open, and take the journal that was asked for."""
        match event:
            case ModelLoaded():
                self._opened = event.model
            case RecordingTaken() if not event.is_over and self._wanted is not None:
                self._write(event.recording)

    def close(self) -> None:
        """Wait for a report that is being written, and hear no more of the log."""
        logging.getLogger("kvdesk").removeHandler(self._relay)
        self._background.wait(CLOSE_S)
        self._background.close(wait_s=0.0)

    def show_about(self) -> None:
        """Show versions and licences."""
        from kvdesk.app.models.installed import about_facts

        self._window.help.show_about(about_facts())

    def report(self, path: Path, choice: ReportChoice) -> None:
        """Write a report of a problem."""
        if self._wanted is not None:
            return
        self._wanted = path, choice
        if choice.journal and self._opened is not None:
            self._waiting.start()
            self._window.commands.submit(TakeRecording())
        else:
            self._write()

    def _write(self, journal: Recording | None = None) -> None:
        """Gather everything here, and write it beside the window's thread."""
        from kvdesk.app.models.installed import versions
        from kvdesk.app.report.problem_report import ReportSources, write_report

        self._waiting.stop()
        if self._wanted is None:
            return
        (path, choice), self._wanted = self._wanted, None
        sources = ReportSources(
            settings=self._session.settings.current,
            versions=versions(),
            model=self._opened,
            possible=tuple(self._session.possible.values()),
            log_dir=paths.log_dir(),
            engine_log=self._window.inspector.log.lines,
            journal=journal,
            private=tuple(self._private_texts()),
            chat=self._chat() if choice.texts else "",
        )

        say, sentence = self._session.notify, tr("The report was saved to {name}.").format(name=path)
        self._background.run(
            partial(write_report, path, sources, choice),
            lambda _written: say(sentence, "good", str(path)),
            lambda error: say(str(error), "danger", ""),
        )

    def _private_texts(self) -> list[str]:
        """Titles, drafts, prompts and messages that are in memory."""
        settings = self._session.settings.current
        texts = [settings.system_prompt]
        service = self._chats.service
        for one in service.conversations:
            texts += [one.title, one.draft, one.system_prompt, one.folder]
            texts += [queued.text for queued in one.queued]
            texts += [message.text for message in service.all_messages(one.id) or ()]
        return [text for text in texts if text]

    def _chat(self) -> str:
        """The chat that is shown, as Markdown; empty if none is."""
        from kvdesk.conversations.markdown_file import as_markdown

        selected, service = self._session.selected, self._chats.service
        known = service.get(selected) if selected is not None else None
        return as_markdown(known, service.branch(known.id)) if known is not None else ""
