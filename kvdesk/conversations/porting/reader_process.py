"""Reads a file of conversations in a child process, so that neither its size nor its contents are felt in the window.

Owns the child and what its messages mean (`reader_child`).
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from kvdesk.chat import Conversation
from kvdesk.children.process import Child, child_command
from kvdesk.conversations.porting import json_file
from kvdesk.conversations.porting.values import Found
from kvdesk.errors import UserError, explained
from kvdesk.message import Message
from kvdesk.translation import tr
from kvdesk.values import dataclass, replace


@dataclass(frozen=True, slots=True)
class Progress:
    """Bytes of JSON that were read, and of all."""

    done: int
    total: int


def reader_command(*paths: Path) -> list[str]:
    """The command line of the child."""
    return child_command("--read-chats", *(str(path.absolute()) for path in paths))


class ReaderProcess(Child):
    """A file that is being read. Raises UserError."""

    def __init__(self, command: list[str]) -> None:
        with explained(tr("The process that reads the file cannot be started: {why}.")):
            super().__init__(command)

    def found(self) -> Iterator[Progress | Found]:
        """What is in the file, as it comes. Raises UserError if it is refused, or the child was ended."""
        begun: Found | None = None
        messages: list[Message] = []
        for kind, *told in self.values():
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
        raise UserError(tr("The file could not be read: the process that reads it ended."), self.ending())
