"""Reads a file of conversations in a child process, so that neither its size nor its contents are felt in the window.

Owns the child and the reading of its lines (`reader_child`).
"""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Self

from kvdesk.chat import Conversation, Message
from kvdesk.conversations.porting import json_file
from kvdesk.conversations.porting.values import Found
from kvdesk.errors import UserError
from kvdesk.library.child import child_command, start_child
from kvdesk.translation import tr


@dataclass(frozen=True, slots=True)
class Progress:
    """Bytes of JSON that were read, and of all."""

    done: int
    total: int


def reader_command(path: Path) -> list[str]:
    """The command line of the child."""
    return child_command("--read-chats", str(path.absolute()))


class ReaderProcess:
    """A file that is being read. Use it as a context manager: the child is dead at its end. Raises UserError."""

    def __init__(self, command: list[str]) -> None:
        try:
            self._child = start_child(command, subprocess.PIPE, subprocess.DEVNULL)
        except OSError as error:
            sentence = tr("The process that reads the file cannot be started: {why}.")
            raise UserError(sentence.format(why=error.strerror or error)) from error

    def found(self) -> Iterator[Progress | Found]:
        """What is in the file, as it comes. Raises UserError where it is refused, or the child was ended."""
        stdout = self._child.stdout
        assert stdout is not None
        begun: Found | None = None
        messages: list[Message] = []
        for line in stdout:
            kind, *told = json.loads(line)
            match kind:
                case "progress":
                    yield Progress(*told)
                case "message":
                    assert begun is not None
                    fields = told[0] | {"conversation": begun.conversation.id}
                    messages.append(json_file.read_values(Message, fields, ""))
                case "chat" | "end":
                    if begun is not None:
                        yield replace(begun, conversation=replace(begun.conversation, messages=tuple(messages)))
                    messages = []
                    if kind == "end":
                        return
                    conversation = json_file.read_values(Conversation, told[1], "")
                    begun = Found(told[0], conversation, Counter(told[2]))
                case _:
                    raise UserError(*told)
        code = self._child.wait()
        raise UserError(tr("The file could not be read: the process that reads it ended."), f"exit code {code}")

    def cancel(self) -> None:
        """End the child at once, whatever it does. May be called from any thread, and again."""
        self._child.kill()

    def close(self) -> None:
        """The child is dead and everything about it is freed."""
        self._child.kill()
        for stream in (self._child.stdin, self._child.stdout):
            if stream is not None:
                stream.close()
        self._child.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
