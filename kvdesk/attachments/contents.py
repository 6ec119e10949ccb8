"""The text of a file: plain text, RTF, PDF or DOCX, told apart by what is in it. Runs in the child process only.

Must never know: the process around it, and words for a user; what went wrong is a `Problem`, which the parent turns
into a sentence.
"""

import re
from pathlib import Path
from typing import Final

from kvdesk.attachments import found
from kvdesk.attachments.found import ODD, Contents, Unreadable
from kvdesk.paths import open_regular
from kvdesk.values import replace

MOST_BYTES = 200_000_000
_MOST_RTF_BYTES = 50_000_000
"""RTF has its pictures as text: of a long file so much is read."""
_EMPTY_LINES: Final = re.compile(r"\A(?: *[\n\f])+")


def read_contents(path: Path, encoding: str = "") -> Contents:
    """`encoding`: the one that a user chose for a text file (`kvdesk.attachments.encodings`).

    Raises Unreadable, and OSError.
    """
    with open_regular(path) as file:
        size = file.seek(0, 2)
        if not size:
            raise Unreadable("empty")
        if size > MOST_BYTES:
            raise Unreadable("too large")
        file.seek(0)
        head = file.read(1024)
        file.seek(0)
        most = 4 * found.MOST_CHARACTERS
        if encoding:
            read = _plain(file.read(most + 4), encoding, is_all=size <= most)
        elif b"%PDF-" in head and (pages := _pages(path, head)) is not None:
            read = pages
        elif head.startswith(b"PK\x03\x04"):
            from kvdesk.attachments.docx import read_docx

            read = read_docx(file)
        elif head.lstrip().startswith(b"{\\rtf"):
            from kvdesk.attachments.rtf import read_rtf

            read = read_rtf(file.read(_MOST_RTF_BYTES), is_all=size <= _MOST_RTF_BYTES)
        else:
            _refuse_known(head)
            read = _plain(file.read(most + 4), "", is_all=size <= most)
    text = _tidy(read.text)
    if not text.strip():
        raise Unreadable("no text" if read.kind == "pdf" else "empty")
    is_cut = read.is_cut or len(text) > found.MOST_CHARACTERS
    return replace(read, text=text[: found.MOST_CHARACTERS], is_cut=is_cut)


def _pages(path: Path, head: bytes) -> Contents | None:
    """A PDF, which may begin with something else (its readers look for its mark in 1024 bytes); None for a text about
    PDF files. Raises Unreadable.
    """
    from kvdesk.attachments.pdf import read_pdf

    try:
        return read_pdf(path)
    except Unreadable as error:
        if error.problem != "damaged" or head.startswith(b"%PDF-"):
            raise
        return None


def _plain(data: bytes, encoding: str, *, is_all: bool) -> Contents:
    from kvdesk.attachments.plain_text import read_plain

    return read_plain(data, encoding=encoding, is_all=is_all)


def _refuse_known(head: bytes) -> None:
    """Raises Unreadable for what is no text by its first bytes."""
    is_bitmap = head.startswith((b"GIF8", b"BM")) and ODD.search(head)  # letters, with which a text may begin
    is_webp = head.startswith(b"RIFF") and head[8:12] == b"WEBP"
    if head.startswith((b"\x89PNG", b"\xff\xd8\xff", b"II*\x00", b"MM\x00*")) or is_bitmap or is_webp:
        raise Unreadable("picture")
    if head.startswith(b"\xd0\xcf\x11\xe0"):
        raise Unreadable("old document")


def _tidy(text: str) -> str:
    """Lines end with a line feed; no NUL, which is no text anywhere; no empty lines around it. The first line keeps its
    indent.
    """
    tidy = text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "")
    return _EMPTY_LINES.sub("", tidy).rstrip("\n\f ")
