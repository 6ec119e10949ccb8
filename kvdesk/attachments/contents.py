"""The text of a file: plain text, PDF or DOCX, told apart by what is in it. Runs in the child process only.

Owns the limits of what is read. Must never know: the process around it, and words for a person; what went wrong is a
`Problem`, which the parent turns into a sentence.
"""

from __future__ import annotations

import codecs
import re
import time
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Literal

from kvdesk.chat import AttachmentKind
from kvdesk.paths import open_regular

MOST_CHARACTERS = 500_000
"""What is more of a text is left out. No context that fits into a laptop holds as much."""
MOST_BYTES = 200_000_000
MOST_XML_BYTES = 50_000_000
"""Of the parts of a DOCX file that hold text, unpacked."""
READ_S = 8.0
"""Of a PDF as many pages are read as there is time for."""

Problem = Literal[
    "too large", "password", "no text", "binary", "picture", "old document", "other archive", "damaged", "empty"
]


class Unreadable(Exception):
    """The file has no text for the model; `problem` says why, `detail` is for the log."""

    def __init__(self, problem: Problem, detail: str = "") -> None:
        super().__init__(problem)
        self.problem, self.detail = problem, detail


@dataclass(frozen=True, slots=True)
class Contents:
    """A file's text.

    encoding          of a text file that is not UTF-8, else ""
    n_pages, of_pages read, and there, in a PDF; 0 in others
    is_cut            it is longer than `MOST_CHARACTERS`
    """

    kind: AttachmentKind
    text: str
    encoding: str = ""
    n_pages: int = 0
    of_pages: int = 0
    is_cut: bool = False


def read_contents(path: Path) -> Contents:
    """Raises Unreadable, and OSError."""
    with open_regular(path) as file:
        size = file.seek(0, 2)
        if not size:
            raise Unreadable("empty")
        if size > MOST_BYTES:
            raise Unreadable("too large")
        file.seek(0)
        head = file.read(1024)
        file.seek(0)
        if b"%PDF-" in head:
            found = _pdf(path)
        elif head.startswith(b"PK\x03\x04"):
            found = _docx(file)
        else:
            _refuse_known(head)
            found = _plain(file.read(4 * MOST_CHARACTERS + 4), is_all=size <= 4 * MOST_CHARACTERS)
    text = _tidy(found.text)
    if not text.strip():
        raise Unreadable("no text" if found.kind == "pdf" else "empty")
    is_cut = found.is_cut or len(text) > MOST_CHARACTERS
    return Contents(found.kind, text[:MOST_CHARACTERS], found.encoding, found.n_pages, found.of_pages, is_cut)


def _refuse_known(head: bytes) -> None:
    """Raises Unreadable for what is no text by its first bytes."""
    if head.startswith((b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"BM", b"II*\x00", b"MM\x00*")) or head[8:12] == b"WEBP":
        raise Unreadable("picture")
    if head.startswith(b"\xd0\xcf\x11\xe0"):
        raise Unreadable("old document")


def _tidy(text: str) -> str:
    """Lines end with a line feed; no NUL, which is no text anywhere."""
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "").strip("\n\f ")


# --- plain text -------------------------------------------------------------------------------------------------------

_BOMS = (
    (codecs.BOM_UTF8, "utf-8", ""),
    (codecs.BOM_UTF32_LE, "utf-32-le", "UTF-32"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32-be", "UTF-32"),
    (codecs.BOM_UTF16_LE, "utf-16-le", "UTF-16"),
    (codecs.BOM_UTF16_BE, "utf-16-be", "UTF-16"),
)
_HANZI_PAIR = re.compile(rb"[\xa1-\xf7][\xa1-\xfe]")
_HIGH = re.compile(rb"[\x80-\xff]")


def _plain(data: bytes, *, is_all: bool) -> Contents:
    """With the encoding its byte order mark names, else UTF-8, else GB18030 or Windows-1252, whichever is likelier."""
    for mark, codec, name in _BOMS:
        if data.startswith(mark):
            text = codecs.getincrementaldecoder(codec)("replace").decode(data[len(mark) :], final=is_all)
            return Contents("text", text, name, is_cut=not is_all)
    if b"\0" in data:
        raise Unreadable("binary")
    for codec, name in (("utf-8", ""), ("gb18030", "GB18030")):
        if codec == "gb18030" and not _looks_chinese(data):
            continue
        try:
            text = codecs.getincrementaldecoder(codec)().decode(data, final=is_all)  # its end may be half a character
        except UnicodeDecodeError:
            continue
        return Contents("text", text, name, is_cut=not is_all)
    text = data.decode("cp1252", "replace")
    n_odd = sum(not (c.isprintable() or c in "\t\n\r\f\b\x1b") for c in text[:100_000])
    if n_odd * 20 > min(len(text), 100_000):
        raise Unreadable("binary")
    return Contents("text", text, "Windows-1252", is_cut=not is_all)


def _looks_chinese(data: bytes) -> bool:
    """Whether nearly all bytes above 127 stand in pairs as GB 2312 has them: those of Western letters stand alone."""
    sample = data[:100_000]
    return 2 * len(_HANZI_PAIR.findall(sample)) >= 0.9 * len(_HIGH.findall(sample))


# --- documents --------------------------------------------------------------------------------------------------------

_PASSWORD_ERRORS = (4, 5)  # FPDF_ERR_PASSWORD, FPDF_ERR_SECURITY
_HYPHEN = re.compile("[\ufffe\x02]\r?\n?")
"""What PDFium puts where a word is broken at the end of a line."""


def _pdf(path: Path) -> Contents:
    import pypdfium2

    try:
        document = pypdfium2.PdfDocument(path)
    except pypdfium2.PdfiumError as error:
        problem: Problem = "password" if error.err_code in _PASSWORD_ERRORS else "damaged"
        raise Unreadable(problem, str(error)) from error
    pages: list[str] = []
    n_characters = 0
    deadline = time.monotonic() + READ_S
    of_pages = len(document)
    for number in range(of_pages):
        try:
            page = document[number]
            text = _HYPHEN.sub("", page.get_textpage().get_text_bounded()).strip()
            page.close()
        except pypdfium2.PdfiumError:
            text = ""  # a page that is damaged costs no other
        pages.append(text)
        n_characters += len(text)
        if n_characters > MOST_CHARACTERS or time.monotonic() > deadline:
            break
    return Contents("pdf", "\n\n".join(text for text in pages if text), n_pages=len(pages), of_pages=of_pages)


def _docx(file: BinaryIO) -> Contents:
    import mammoth

    try:
        with zipfile.ZipFile(file) as archive:
            parts = archive.infolist()
            if not any(part.filename == "word/document.xml" for part in parts):
                raise Unreadable("other archive")
            if any(part.flag_bits & 1 for part in parts):
                raise Unreadable("password")
            if sum(part.file_size for part in parts if part.filename.endswith((".xml", ".rels"))) > MOST_XML_BYTES:
                raise Unreadable("too large")
        file.seek(0)
        text = mammoth.extract_raw_text(file).value
    except (Unreadable, MemoryError):
        raise
    except Exception as error:  # the libraries raise whatever a damaged file makes them
        raise Unreadable("damaged", repr(error)) from error
    return Contents("docx", text)
