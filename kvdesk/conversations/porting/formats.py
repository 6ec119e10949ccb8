"""The formats that can be imported, and the reading of a file in any of them."""

import io
import re
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, Final, TypeVar

from kvdesk.chat import Conversation
from kvdesk.conversations.porting import chatgpt, jan, json_file, llama_webui, lm_studio, open_webui
from kvdesk.conversations.porting.adding import is_empty
from kvdesk.conversations.porting.json_stream import Readable, Value, json_values
from kvdesk.conversations.porting.values import (
    LARGEST_FILE,
    MOST_CONVERSATIONS,
    MOST_MESSAGES,
    Found,
    LeftOut,
    Malformed,
    TooLarge,
    short,
)
from kvdesk.message import ConversationId
from kvdesk.paths import open_regular
from kvdesk.translation import tr
from kvdesk.values import dataclass

Progress = Callable[[int, int], None]
"""Hears how many bytes of JSON were read, and how many there are. May raise to end the reading."""

T = TypeVar("T")

_MOST_DAMAGED_FIRST: Final = 1_000
"""Values that are no chats, before the first chat: a file that begins with that many is no export."""
_LARGEST_DIRECTORY: Final = 64 << 20
_OF_ALL: Final = r"conversations(-\d+)?\.json"
"""The name of ChatGPT's file of all chats, or of a part of it."""
_END_OF_ZIP: Final = b"PK\5\6"
_ENDS = 22 + 0xFFFF  # bytes: the record at the end of a ZIP, and the longest comment after it


@dataclass(frozen=True, slots=True)
class Format:
    """One format. `is_verified`: it was read from the exporter's own source, or is kvdesk's own."""

    name: str
    is_verified: bool
    matches: Callable[[Mapping[str, Any], Any], bool]  # (members of the object around it, value)
    convert: Callable[[Any, str], tuple[Conversation, LeftOut]]  # (value, name of the file without its ending)


FORMATS: Final = (
    Format("kvdesk", True, lambda header, _value: json_file.check_header(header), json_file.convert),
    Format("ChatGPT", False, lambda _header, value: chatgpt.matches(value), chatgpt.convert),
    Format("llama.cpp", True, lambda _header, value: llama_webui.matches(value), llama_webui.convert),
    Format("LM Studio", False, lambda _header, value: lm_studio.matches(value), lm_studio.convert),
    Format("Open WebUI", True, lambda _header, value: open_webui.matches(value), open_webui.convert),
    Format("Jan", True, lambda _header, value: jan.matches(value), jan.convert),
)


def read(path: Path, progress: Progress = lambda _done, _total: None, others: Sequence[Path] = ()) -> Iterator[Found]:
    """Every conversation of a file or a folder, and at the end an empty one that counts those that are damaged. Nothing
    is written, also not of a ZIP. `others`: files that are read as if they were in a folder with the first.

    Raises UserError with one sentence: for a file that is no export, and for files of which no chat is whole.
    """
    n_conversations = n_damaged = n_whole = n_messages = 0
    first_error: Malformed | None = None
    form = ""
    for one in _all_in((path, *others), progress):
        n_conversations += 1
        if isinstance(one, Malformed):
            n_damaged += 1
            first_error = first_error or one.with_traceback(None)
            if n_damaged == n_conversations == _MOST_DAMAGED_FIRST:
                raise first_error
        else:
            n_whole += not is_empty(one.conversation)
            n_messages += len(one.conversation.messages)
            form = one.format
        if n_conversations > MOST_CONVERSATIONS or n_messages > MOST_MESSAGES:
            sentence = tr("This file has more than {chats} chats or {messages} messages.")
            raise TooLarge(sentence.format(chats=f"{MOST_CONVERSATIONS:,}", messages=f"{MOST_MESSAGES:,}"))
        if isinstance(one, Found):
            yield one
    if first_error is not None and not n_whole:
        raise first_error
    if n_damaged:
        yield Found(form, Conversation(ConversationId(""), "", 0), Counter({"damaged chats": n_damaged}))
    if not n_conversations:
        raise Malformed(tr("{file} has no chats.").format(file=short(path.name)))


def _all_in(paths: Sequence[Path], progress: Progress) -> Iterator[Found | Malformed]:
    """Each chat of files and folders; of a damaged one, and of one of several files that is no export, the error."""
    files = [file for path in paths for file in _files_at(path)]
    sizes = [_size_of(file) for file in files]
    for i, file in enumerate(files):
        try:
            with _plain_errors(file):
                told = progress if len(files) == 1 else _progress_from(progress, sizes, i)
                yield from _chats_of(file, told)
        except TooLarge:
            raise
        except Malformed as error:
            if len(files) == 1:
                raise
            yield error


def _files_at(path: Path) -> list[Path]:
    """The file, or the files of chats in a folder. Raises Malformed."""
    with _plain_errors(path):
        if not path.is_dir():
            return [path]
        found = _chats_in([file for file in path.rglob("*") if file.is_file()], str)
    if not found:
        raise Malformed(tr("{file} has no chats.").format(file=short(path.name)))
    return found


def _size_of(file: Path) -> int:
    """In bytes; 0 for one that cannot be read, of which its reading says why."""
    with suppress(OSError):
        return file.stat().st_size
    return 0


def _progress_from(progress: Progress, sizes: Sequence[int], i: int) -> Progress:
    """That of file number `i`, as that of all of them."""
    before, size, total = sum(sizes[:i]), sizes[i], sum(sizes)
    return lambda done, _total: progress(before + min(done, size), total)


def _chats_of(path: Path, progress: Progress) -> Iterator[Found | Malformed]:
    """Each chat of a file; of a damaged one the error."""
    for source in _sources(path, progress):
        n = 0
        try:
            for value in jan.gathered(llama_webui.expanded(json_values(source.stream))):
                yield _converted(value, source.name)
                n += 1
        except TooLarge:
            raise
        except Malformed as error:
            if not source.is_one_of_many:
                raise
            if not n:
                yield error


def _converted(value: Value, name: str) -> Found | Malformed:
    form = next((form for form in FORMATS if form.matches(value.header, value.value)), None)
    if form is None:
        return Malformed(
            tr(
                "This file is no export that kvdesk knows: it reads its own, ChatGPT's, LM Studio's, llama.cpp's, "
                "Open WebUI's and Jan's."
            )
        )
    try:
        conversation, left_out = form.convert(value.value, name)
    except Malformed as error:
        return error
    if is_empty(conversation):
        left_out["empty chats"] += 1
    return Found(form.name, conversation, left_out)


# --- files ------------------------------------------------------------------------------------------------------------


class _Counted:
    """A stream that counts what is read of it, tells it, and gives no more than it may."""

    def __init__(self, stream: Readable, before: int, total: int, progress: Progress) -> None:
        self._stream, self._before, self._total, self._progress = stream, before, total, progress
        self.n_read = 0

    def read(self, n: int, /) -> bytes:
        data = self._stream.read(n)
        self.n_read += len(data)
        if self._before + self.n_read > LARGEST_FILE:
            raise too_large()
        self._progress(self._before + self.n_read, self._total)
        return data


def too_large() -> TooLarge:
    return TooLarge(
        tr("This file has more than {n} MB of chats; kvdesk imports no more at once.").format(n=LARGEST_FILE >> 20)
    )


@dataclass(frozen=True, slots=True)
class _Source:
    """What is to be read: the file, or one in the ZIP. `name` is without folder and ending.

    is_one_of_many  the program makes a file of each chat
    """

    name: str
    stream: Readable
    is_one_of_many: bool = False


def _sources(path: Path, progress: Progress) -> Iterator[_Source]:
    with open_regular(path) as file:
        if file.read(4).startswith(b"PK"):
            yield from _members(file, progress)
            return
        size = file.seek(0, io.SEEK_END)
        if size > LARGEST_FILE:
            raise too_large()
        file.seek(0)
        yield _Source(_stem(path.name), _Counted(file, 0, size, progress))


def _members(file: BinaryIO, progress: Progress) -> Iterator[_Source]:
    _check_directory(file)
    with zipfile.ZipFile(file) as archive:
        there = [member for member in archive.infolist() if not member.is_dir()]
        members = _chats_in(there, lambda member: member.filename)
        total = sum(member.file_size for member in members)
        if not members:
            raise Malformed(tr("This ZIP has no file of chats, such as conversations.json."))
        if total > LARGEST_FILE:
            raise too_large()
        before = 0
        for member in members:
            if member.flag_bits & 1:
                raise Malformed(tr("This ZIP is locked with a password."))
            if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise Malformed(tr("This ZIP is packed in a way that kvdesk does not read."))
            with archive.open(member) as stream:
                counted = _Counted(stream, before, total, progress)
                is_one_of_many = (
                    len(members) > 1 and re.fullmatch(_OF_ALL, _base(member.filename), re.IGNORECASE) is None
                )
                yield _Source(_stem(member.filename), counted, is_one_of_many)
                before += counted.n_read


def _check_directory(file: BinaryIO) -> None:
    """A list of files that alone would fill the memory is not read. Raises Malformed."""
    size = file.seek(0, io.SEEK_END)
    file.seek(max(0, size - _ENDS))
    tail = file.read(_ENDS)
    at = tail.rfind(_END_OF_ZIP)
    if at < 0:
        raise Malformed(tr("This ZIP is damaged."))
    if int.from_bytes(tail[at + 12 : at + 16], "little") > _LARGEST_DIRECTORY:
        raise Malformed(tr("This ZIP has too many files."))
    file.seek(0)


def _chats_in(there: Sequence[T], name: Callable[[T], str]) -> list[T]:
    """Of files in a ZIP or a folder, those with chats: ChatGPT's conversations.json, or the parts
    conversations-000.json and so on; else what has the name of LM Studio's, llama.cpp's or Jan's files; else all JSON.
    ChatGPT's ZIP has other JSON files beside, and pictures.
    """
    files = [file for file in there if "__MACOSX" not in name(file)]
    for pattern in (_OF_ALL, r".*\.(conversation\.json|jsonl)", r".*\.json"):
        named = [file for file in files if re.fullmatch(pattern, _base(name(file)), re.IGNORECASE)]
        if named:
            return sorted(named, key=name)
    return []


def _base(name: str) -> str:
    return name.replace("\\", "/").rsplit("/", 1)[-1]


def _stem(name: str) -> str:
    return re.sub(r"(\.conversation)?\.\w+$", "", _base(name))


@contextmanager
def _plain_errors(path: Path) -> Iterator[None]:
    name = short(path.name)
    try:
        yield
    except OSError as error:
        why = error.strerror or str(error)
        raise Malformed(tr("{file} cannot be read: {why}.").format(file=name, why=why.rstrip("."))) from error
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError) as error:
        raise Malformed(tr("The ZIP {file} is damaged.").format(file=name), str(error)) from error
    except (RecursionError, MemoryError) as error:
        raise Malformed(tr("{file} is too large or too deeply nested to be read.").format(file=name)) from error
