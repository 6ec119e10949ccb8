"""A service over a back end that does nothing but note what it is asked."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from kvdesk.conversations.changes import Change
from kvdesk.conversations.service import ConversationService
from kvdesk.errors import StoreError
from kvdesk.message import ConversationId, Message, MessageId, MessageState, TurnStats
from kvdesk.protocol.chat import Generate, TextDelta, TurnEnded
from kvdesk.protocol.messages import Command
from kvdesk.settings import Settings
from kvdesk.store.writer import StoreWriter

STATS = TurnStats(10, 4, 6, 2, 120.0, 50.0, 20.0, 0, 12, 12, 256)


class Held:
    """The service, what it asked of the back end and of the store, and what it told."""

    def __init__(self, settings: Settings | None = None) -> None:
        self.settings = settings or Settings()
        self.commands: list[Command] = []
        self.stopped: list[MessageId] = []
        self.reading: list[tuple[ConversationId, MessageId | None]] = []
        self.told: list[Change] = []
        self.service = ConversationService(
            self.commands.append,
            self.stopped.append,
            lambda: self.settings,
            lambda conversation, leaf: self.reading.append((conversation, leaf)),
            n_colours=8,
        )

    def listen(self) -> Held:
        self.service.subscribe(self.told.append)
        return self

    @property
    def asked(self) -> list[Generate]:
        return [command for command in self.commands if isinstance(command, Generate)]

    def say(self, text: str, conversation: ConversationId | None = None) -> Generate:
        """Send it, in a new conversation as a rule; returns what the back end was asked."""
        self.service.send(conversation or self.service.create(), text)
        return self.asked[-1]

    def write(self, asked: Generate, *texts: str) -> None:
        """The back end writes; one token for each text."""
        self.service.take(TextDelta(asked.conversation, asked.answer, text, (i,)) for i, text in enumerate(texts))

    def end(self, asked: Generate, state: MessageState = "complete", note: str = "") -> None:
        self.service.take([TurnEnded(asked.conversation, asked.answer, state, STATS, note)])

    def answer(self, asked: Generate, text: str) -> None:
        """The back end answers, in two pieces."""
        self.write(asked, text[:3], text[3:])
        self.end(asked)

    def texts(self, conversation: ConversationId) -> list[str]:
        return [message.text for message in self.service.branch(conversation)]

    def last(self, conversation: ConversationId) -> Message:
        return self.service.branch(conversation)[-1]

    def queued(self, conversation: ConversationId) -> tuple[str, ...]:
        known = self.service.get(conversation)
        return tuple(message.text for message in known.queued)


@pytest.fixture
def held() -> Held:
    return Held().listen()


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[StoreWriter]:
    errors: list[StoreError] = []
    with closing(StoreWriter(tmp_path / "chats.sqlite3", errors.append)) as writer:
        writer.opened.result()
        yield writer
    assert errors == []
