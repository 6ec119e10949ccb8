"""Every error kvdesk raises on purpose.

    KvdeskError                 a sentence for a user; `detail` is for the log and the folded part of a message
    +-- UserError               the input can be changed by the user: file, setting, prompt
    |   +-- ModelFileError      the file is missing, empty, a directory, truncated, not a language model
    |   +-- ContextError        the context cannot be made: too large for memory, bad type, bad combination
    |   +-- PromptError         the prompt cannot be processed: longer than the context, no text tokenizer
    |   +-- SchemaError         the JSON schema that answers must follow cannot be used
    |   +-- TemplateError       the chat template is broken, forbidden or endless
    |   +-- RefusedCall         a call that would abort the process or do harm was not made
    |   +-- StoreError          the database cannot be opened or belongs to a newer kvdesk
    +-- Stopped                 a person stopped it; nothing has changed
    +-- EngineError             llama.cpp answered with an error we did not expect
        +-- DecodeError         llama_decode returned a code other than 0, 1 and 2

Asserts are for our own invariants; they are not in this tree. What is raised by others, such as an OSError of a full
disk, gets its sentence from `unexpected` at the edge where it is reported; `guarded` keeps what comes after a step that
fails from paying for it.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from kvdesk.translation import marked, tr

T = TypeVar("T")

UNREACHABLE = marked("The server cannot be reached.")
SILENT = marked("The server cannot be reached: it does not answer.")
NO_TOKENIZER = marked(
    "This model has no text tokenizer, so it cannot chat. Its cache can still be examined and audited."
)


class KvdeskError(Exception):
    """Base of the tree. `str(error)` is one plain sentence; `detail` may be long and technical."""

    def __init__(self, sentence: str, detail: str = "") -> None:
        super().__init__(sentence)
        self.detail = detail


class UserError(KvdeskError):
    """Something the user can change."""


class ModelFileError(UserError):
    """The model file cannot be used."""


class ContextError(UserError):
    """The context cannot be created with these settings."""


class PromptError(UserError):
    """The prompt cannot be processed."""


class SchemaError(UserError):
    """The JSON schema cannot be used. `place`: the part that is wrong, such as `properties.x.pattern`."""

    def __init__(self, sentence: str, place: str = "") -> None:
        super().__init__(sentence)
        self.place = place


class TemplateError(UserError):
    """The chat template cannot be rendered."""


class TemplateStopped(TemplateError):
    """A chat template's process did not answer. Another one may."""


class RefusedCall(UserError):
    """A call to llama.cpp that was not made, because it would abort the process or do harm."""


class StoreError(UserError):
    """The database of conversations cannot be used."""


class StoreInUseError(StoreError):
    """Another process has the database."""


class Stopped(KvdeskError):
    """Somebody stopped the work."""

    def __init__(self, sentence: str = "") -> None:
        super().__init__(sentence or tr("It was stopped."))


class EngineError(KvdeskError):
    """llama.cpp answered with an error."""


class DecodeError(EngineError):
    """`llama_decode` failed with `code` (negative: -1 invalid batch, -2 no memory, -3 compute failed)."""

    def __init__(self, code: int, sentence: str, detail: str = "") -> None:
        super().__init__(sentence, detail)
        self.code = code


@contextmanager
def explained(sentence: str, kind: type[KvdeskError] = UserError, **parts: object) -> Iterator[None]:
    """What the system refuses inside of it, such as a file that cannot be read, becomes a `kind` with this sentence,
    in which {why} or {strerror} is the reason.
    """
    try:
        yield
    except OSError as error:
        why = (error.strerror or str(error) or type(error).__name__).rstrip(".")
        detail = f"{type(error).__name__}: {error}"  # with the path
        raise kind(sentence.format(why=why, strerror=why, **parts), detail) from error


def unexpected(error: Exception) -> str:
    """The sentence for an error that nobody raised on purpose."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror}{f': {error.filename}' if error.filename else ''}."
    return tr("Something unexpected went wrong: {what}").format(what=str(error) or type(error).__name__)


def guarded(step: Callable[[], T]) -> T | None:
    """What `step` returns; None if it raises, which is reported as of a Qt slot: by `sys.excepthook`."""
    try:
        return step()
    except Exception as error:  # noqa: BLE001 - whatever it is: what comes after must not pay for it
        sys.excepthook(type(error), error, error.__traceback__)
        return None
