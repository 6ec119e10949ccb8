"""Files that a user attaches: read beside the window, a few at once, and given to the conversation.

Owns the work that waits for the processes that read. What cannot be read is one sentence over the message box.
"""

from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from threading import Event as Flag

from PySide6.QtCore import QObject

from kvdesk.app.background import Background
from kvdesk.attachments.reader import FileRead, ReadingCancelled, read_file, shown_name
from kvdesk.conversations.service import ConversationService
from kvdesk.errors import KvdeskError
from kvdesk.message import Attachment, ConversationId
from kvdesk.translation import tr
from kvdesk.ui.shell.main_window import MainWindow
from kvdesk.ui.widgets.access.announce import announce
from kvdesk.values import dataclass

AT_ONCE = 2
MOST_FILES = 20
"""At once: a folder dropped by mistake is not read file by file."""


@dataclass(frozen=True, slots=True)
class _Reading:
    """`replaced`: the attachment that the file is read for again, in another encoding."""

    conversation: ConversationId
    path: Path
    cancelled: Flag
    replaced: Attachment | None = None
    encoding: str = ""


class Attaching(QObject):
    """Of drafts; the store says which files are being read."""

    def __init__(self, window: MainWindow, service: ConversationService) -> None:
        super().__init__(window)
        self._window, self._store, self._service = window, window.store, service
        self._background = Background("attach", self, AT_ONCE)
        self._reading: dict[int, _Reading] = {}
        self._refused: list[KvdeskError] = []  # of the files that were given together
        self._files: dict[Attachment, tuple[Path, str]] = {}  # that may be read in another encoding than this
        self._n = 0
        self._show()

    def close(self) -> None:
        """Nothing is read any more."""
        for reading in self._reading.values():
            reading.cancelled.set()
        self._reading.clear()
        self._background.close()

    def attach(self, conversation: ConversationId, attachments: tuple[Attachment, ...]) -> None:
        """These are attached from now on."""
        self._service.attach(conversation, attachments)
        self._show()

    def read(self, conversation: ConversationId, paths: Sequence[str]) -> None:
        """Read files, and attach them."""
        if len(paths) > MOST_FILES:
            sentence = tr("{n} files at once are too many: at most {most} can be attached.")
            self._store.complain(sentence.format(n=len(paths), most=MOST_FILES))
            return
        if not self._reading:
            self._refused.clear()
        for path in map(Path, paths):
            self._start(_Reading(conversation, path, Flag()))

    def read_again(self, conversation: ConversationId, attachment: Attachment, encoding: str) -> None:
        """In another encoding."""
        if attachment in self._files:
            path, _before = self._files[attachment]
            self._start(_Reading(conversation, path, Flag(), attachment, encoding))

    def _start(self, reading: _Reading) -> None:
        self._n += 1
        self._reading[self._n] = reading
        answer = partial(self._on_read, self._n)
        self._background.run(partial(_read, reading), answer, answer)
        self._show()

    def _on_read(self, number: int, found: FileRead | KvdeskError | None) -> None:
        reading = self._reading.pop(number, None)
        if reading is None or found is None:
            return  # cancelled meanwhile
        known = self._service.get(reading.conversation)
        if isinstance(found, KvdeskError):
            self._refused.append(found)
            details = (error.detail for error in self._refused)
            self._store.complain("\n".join(map(str, self._refused)), "\n".join(filter(None, details)))
            announce(self._window.chat, str(found), urgent=True)
        elif known is not None:
            attached = _with(known.draft_attachments, found.attachment, reading.replaced)
            if found.encoding and found.attachment in attached:
                self._files[found.attachment] = reading.path, found.encoding
            self._service.attach(reading.conversation, attached)
            announce(self._window.chat, tr("{name} is attached").format(name=found.attachment.name))
        self._show()

    def cancel(self, number: int) -> None:
        """Stop reading a file."""
        reading = self._reading.pop(number, None)
        if reading is not None:
            reading.cancelled.set()
            self._show()

    def _show(self) -> None:
        """Which files are being read, for which conversations, and which can be read in another encoding."""
        shown: dict[ConversationId, dict[int, str]] = {}
        for number, reading in self._reading.items():
            shown.setdefault(reading.conversation, {})[number] = shown_name(reading.path.name)
        drafts = {attachment for known in self._service.conversations for attachment in known.draft_attachments}
        self._files = {attachment: file for attachment, file in self._files.items() if attachment in drafts}
        encodings = {attachment: encoding for attachment, (_path, encoding) in self._files.items()}
        self._store.show_reading(shown, encodings)


def _read(reading: _Reading) -> FileRead | None:
    """None: cancelled. Raises UserError."""
    with suppress(ReadingCancelled):
        return read_file(reading.path, reading.cancelled.is_set, reading.encoding)
    return None


def _with(
    attachments: tuple[Attachment, ...], found: Attachment, replaced: Attachment | None
) -> tuple[Attachment, ...]:
    """The attachments with one more, or with it in the place of another; unchanged where that one was removed."""
    if replaced is None:
        return (*attachments, found)
    return tuple(found if attachment == replaced else attachment for attachment in attachments)
