"""Reads a file as an attachment, in a child process with limits of memory and time (`child`): PDFium is native code,
and files come from strangers. Whatever a file does to its reader, it costs one sentence.
"""

from collections.abc import Callable, Mapping
from pathlib import Path

from kvdesk.attachments import limits
from kvdesk.attachments.found import Answer, Contents, Part
from kvdesk.children.process import Child, ChildStopped, child_command
from kvdesk.errors import UserError
from kvdesk.graphemes import boundary, cut
from kvdesk.message import Attachment
from kvdesk.translation import plural, tr
from kvdesk.values import dataclass

MOST_NAME = 100
_NAME_END = 19  # characters of its end, with the ending, that stay where a name is cut
"""Characters of a file's name that are kept."""


class ReadingCancelled(Exception):
    """Nobody waits for the file any more."""


@dataclass(frozen=True, slots=True)
class FileRead:
    """A file as an attachment. `encoding`: the one that was chosen or guessed (`encodings`), where another one may be
    right; "" if none can be.
    """

    attachment: Attachment
    encoding: str = ""


def read_file(path: Path, cancelled: Callable[[], bool] = lambda: False, encoding: str = "") -> FileRead:
    """The text of a file, in the `encoding` that a user chose. Blocks for as long as that takes, or until `cancelled`
    says so.

    Raises UserError with one sentence if it has no text or cannot be read, and ReadingCancelled.
    """
    name = shown_name(path.name)
    command = child_command("--attachment", str(path.absolute()), *filter(None, (encoding,)))
    try:
        with Child(command, memory=limits.MEMORY, max_message_bytes=limits.MOST_OUTPUT) as child:
            answer: Answer = child.receive_value(limits.TIME_S, cancelled, Answer)
    except OSError as error:
        raise UserError(tr("{name} could not be read.").format(name=name), repr(error)) from error
    except ChildStopped as stopped:
        if stopped.reason == "cancelled":
            raise ReadingCancelled from stopped
        raise UserError(_sentence(stopped.reason, name, ""), stopped.detail) from stopped
    if (found := answer.contents) is None:
        raise UserError(_sentence(answer.problem, name, answer.detail), answer.detail)
    return FileRead(Attachment(name, found.kind, found.text, _note(found)), found.encoding)


def shown_name(name: str) -> str:
    """A file's name on one line, as it is in the prompt and on the screen."""
    plain = "".join(c if c.isprintable() and c != "`" else "_" for c in name)
    if len(plain) <= MOST_NAME:
        return plain
    at = boundary(plain, len(plain) - _NAME_END)
    end = plain[at:] if len(plain) - at < MOST_NAME // 2 else plain[-_NAME_END:]
    return cut(plain, MOST_NAME - len(end)) + end


def _sentence(problem: str, name: str, detail: str) -> str:
    sentences = {
        "ended": tr("{name} could not be read: the reader stopped. It may be damaged."),
        "time": tr("{name} took longer than {seconds} seconds to read, so it was left out."),
        "too large": tr("{name} is too large to be attached."),
        "password": tr("{name} is protected with a password, so it cannot be read."),
        "no text": tr("{name} has no text: its pages are probably scanned pictures. Only text can be attached."),
        "binary": tr("{name} is no text file. Text, code, PDF, DOCX and RTF files can be attached."),
        "picture": tr("{name} is a picture. Text, code, PDF, DOCX and RTF files can be attached."),
        "old document": tr("{name} is in an old Office format. Save it as DOCX or PDF and attach that."),
        "other archive": tr(
            "{name} is an archive, or a document of another kind. Attach text, PDF, DOCX or RTF files."
        ),
        "damaged": tr("{name} is damaged and cannot be read."),
        "memory": tr("{name} needs more memory than a file of its kind should, so it was left out."),
        "empty": tr("{name} is empty."),
        "os": tr("{name} could not be read: {reason}."),
    }
    return sentences.get(problem, sentences["damaged"]).format(name=name, reason=detail, seconds=f"{limits.TIME_S:.0f}")


def _note(found: Contents) -> str:
    """What a user should know of how the file was read."""
    notes = []
    if found.encoding:
        notes.append(tr("read as {encoding}").format(encoding=found.encoding))
    if found.n_pages < found.of_pages:
        pages = tr("the first {n} of {all} pages")
        notes.append(pages.format(n=f"{found.n_pages:,}", all=f"{found.of_pages:,}"))
    elif n := found.of_pages:
        notes.append(plural("1 page", "%n pages", n))
    if found.is_cut:
        notes.append(tr("the first {n} characters").format(n=f"{len(found.text):,}"))
    if found.left_out:
        notes.append(tr("left out: {parts}").format(parts=_left_out(found.left_out)))
    return tr(", ").join(notes)


def _left_out(parts: Mapping[Part, int]) -> str:
    """What a document has and its text has not."""
    names: Mapping[Part, str] = {
        "footnotes": tr("footnotes"),
        "comments": tr("comments"),
        "equations": tr("equations"),
        "pictures": tr("pictures"),
        "headers": tr("headers and footers"),
        "charts": tr("charts"),
        "objects": tr("embedded objects"),
        "hidden text": tr("hidden text"),
        "deleted text": tr("deleted text"),
        "symbols": tr("symbols"),
    }
    return tr(", ").join(tr("{part} ({n:,})").format(part=names[part], n=n) for part, n in parts.items())
