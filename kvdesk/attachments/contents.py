"""The text of a file: plain text, RTF, PDF or DOCX, told apart by what is in it. Runs in the child process only.

Must never know: the process around it, and words for a user; what went wrong is a `Problem`, which the parent turns
into a sentence.
"""

from pathlib import Path

from kvdesk.attachments import found
from kvdesk.attachments.found import Contents, Unreadable
from kvdesk.paths import open_regular
from kvdesk.values import replace

MOST_BYTES = 200_000_000
_MOST_RTF_BYTES = 50_000_000
"""RTF has its pictures as text: of a long file so much is read."""


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
        elif b"%PDF-" in head:
            from kvdesk.attachments.pdf import read_pdf

            read = read_pdf(path)
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


def _plain(data: bytes, encoding: str, *, is_all: bool) -> Contents:
    from kvdesk.attachments.plain_text import read_plain

    return read_plain(data, encoding=encoding, is_all=is_all)


def _refuse_known(head: bytes) -> None:
    """Raises Unreadable for what is no text by its first bytes."""
    if head.startswith((b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"BM", b"II*\x00", b"MM\x00*")) or head[8:12] == b"WEBP":
        raise Unreadable("picture")
    if head.startswith(b"\xd0\xcf\x11\xe0"):
        raise Unreadable("old document")


def _tidy(text: str) -> str:
    """Lines end with a line feed; no NUL, which is no text anywhere."""
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "").strip("\n\f ")
