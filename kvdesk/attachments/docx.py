"""The text of a DOCX file: a break is a line, a row of a table a line with tabs, a list has its numbers. What has no
place in a text is counted.
"""

import re
import time
import zipfile
import zlib
from collections import Counter
from typing import BinaryIO, Final

from kvdesk.attachments.found import MOST_CHARACTERS, Contents, Part, Unreadable
from kvdesk.attachments.limits import READ_S
from kvdesk.attachments.numbering import Numbering
from kvdesk.attachments.xml_parts import NOTHING, Element, Stopped, parse, parse_within
from kvdesk.values import dataclass

MOST_XML_BYTES: Final = 50_000_000
"""Of the parts that hold text, unpacked."""

_OFFICE_DOCUMENT: Final = "/officeDocument"
_INDENT: Final = "  "
_CHARACTERS: Final = {"tab": "\t", "ptab": "\t", "br": "\n", "cr": "\n", "noBreakHyphen": "\u2011", "softHyphen": ""}
_PASSED_OVER: Final[frozenset[str]] = frozenset((
    *("pPr", "rPr", "tblPr", "tblGrid", "trPr", "tcPr", "sdtPr", "sdtEndPr", "sectPr", "instrText", "delText"),
    *("delInstrText", "rt", "rubyPr", "fldData", "proofErr", "bookmarkStart", "bookmarkEnd", "annotationRef"),
))  # fmt: skip
_COUNTED: Final[dict[str, Part]] = {
    "oMath": "equations",
    "oMathPara": "equations",
    "altChunk": "objects",
    "del": "deleted text",
    "moveFrom": "deleted text",
    "footnoteReference": "footnotes",
    "endnoteReference": "footnotes",
}
_DRAWINGS: Final = frozenset(("drawing", "pict", "object"))
_SYMBOLS: Final = {
    **dict.fromkeys(("F0A8", "F06F", "F0A3", "2610"), "☐"),
    **dict.fromkeys(("F0FE", "F052", "2611"), "☑"),
    **dict.fromkeys(("F0FD", "F053", "2612"), "☒"),
    "F0FC": "✓",
    "F0FB": "✗",
    "F0B7": "•",
    "F0A7": "▪",
    "F0E0": "→",
    "F0DF": "←",
    "F0E8": "➔",
}
"""Characters of Wingdings and Symbol that forms and lists are made with."""


@dataclass(frozen=True, slots=True)
class _Block:
    """Lines that belong together. Blocks of the same `kind` follow one another without an empty line, if it has one."""

    text: str
    kind: str = ""


class _Document:
    def __init__(self, numbering: Numbering, deadline: float) -> None:
        self.left_out: Counter[Part] = Counter()
        self.is_cut = False
        self._numbering, self._deadline = numbering, deadline
        self._texts: list[str] = []
        self._last: _Block | None = None
        self._n_characters = 0
        self._boxes: list[list[_Block]] = []

    @property
    def text(self) -> str:
        return "".join(self._texts)

    def take(self, element: Element) -> None:
        """The next child of the body."""
        for block in self._blocks(element):
            self._put(block)
        if self._n_characters > MOST_CHARACTERS or time.monotonic() > self._deadline:
            self.is_cut = True
            raise Stopped

    def _put(self, block: _Block) -> None:
        if not block.text.strip():
            return
        if self._last is not None:
            self._texts.append("\n" if block.kind and block.kind == self._last.kind else "\n\n")
        self._texts.append(block.text)
        self._n_characters += len(block.text)
        self._last = block

    # --- paragraphs and tables ----------------------------------------------------------------------------------------

    def _blocks(self, element: Element) -> list[_Block]:
        name = element.name
        if name == "p":
            return self._paragraph(element)
        if name == "tbl":
            rows = [row for child in element.children for row in self._rows(child)]
            return [_Block("\n".join(rows))]
        if name in _COUNTED:
            self._count(element)
            return []
        if name == "AlternateContent":
            return self._of_children(_chosen(element))
        return [] if name in _PASSED_OVER else self._of_children(element)

    def _of_children(self, element: Element) -> list[_Block]:
        return [block for child in element.children for block in self._blocks(child)]

    def _paragraph(self, element: Element) -> list[_Block]:
        mark = self._numbering.mark(element.child("pPr"))
        self._boxes.append([])
        text = self._inline(element).strip("\n")
        boxes = self._boxes.pop()
        if not text.strip():
            return boxes
        if mark is None:
            return [_Block(text), *boxes]
        level, label = mark
        return [_Block(_INDENT * level + f"{label} {text}".strip(" "), "list"), *boxes]

    def _rows(self, element: Element) -> list[str]:
        if element.name == "tr":
            before = _small(element.child("trPr").value("gridBefore"), 0)
            return ["\t".join([""] * before + self._cells(element)).rstrip()]
        if element.name in _PASSED_OVER or element.name in _COUNTED:
            return []
        inside = _chosen(element) if element.name == "AlternateContent" else element
        return [row for child in inside.children for row in self._rows(child)]

    def _cells(self, element: Element) -> list[str]:
        """The texts of a row's cells. One that is several columns wide is followed by empty ones, so that columns stay
        under one another.
        """
        found: list[str] = []
        for child in element.children:
            if child.name == "tc":
                words = " ".join(" ".join(block.text.split()) for block in self._of_children(child))
                wide = _small(child.child("tcPr").value("gridSpan"), 1)
                found += [words.strip(), *[""] * (wide - 1)]
            elif child.name not in _PASSED_OVER and child.name not in _COUNTED:
                found += self._cells(child)
        return found

    # --- within a paragraph -------------------------------------------------------------------------------------------

    def _inline(self, element: Element) -> str:
        return "".join(map(self._piece, element.children))

    def _piece(self, element: Element) -> str:
        name = element.name
        if name == "t":
            return element.text
        if name in _CHARACTERS:
            return _CHARACTERS[name]
        if name == "r":
            return self._run(element)
        if name in _COUNTED:
            self._count(element)
            return ""
        if name in _DRAWINGS:
            self._drawing(element)
            return ""
        if name == "sym":
            return self._symbol(element)
        if name == "AlternateContent":
            return self._inline(_chosen(element))
        return "" if name in _PASSED_OVER else self._inline(element)

    def _run(self, element: Element) -> str:
        if not element.child("rPr").child("vanish").is_on:
            return self._inline(element)
        if any(child.text.strip() for child in element.children if child.name == "t"):
            self.left_out["hidden text"] += 1
        return ""

    def _symbol(self, element: Element) -> str:
        code = element.attribute("char").upper()
        if code in _SYMBOLS:
            return _SYMBOLS[code]
        number = int(code, 16) if re.fullmatch("[0-9A-F]{1,5}", code) else 0
        if number < 0x20 or 0xD800 <= number <= 0xF8FF:
            self.left_out["symbols"] += 1
            return ""
        return chr(number)

    def _count(self, element: Element) -> None:
        """An equation among others of a paragraph counts as one, deleted text only if there is any."""
        kind = _COUNTED[element.name]
        if kind == "deleted text" and not any(one.text.strip() for one in element.all()):
            return
        if element.name == "oMathPara":
            self.left_out[kind] += max(1, sum(one.name == "oMath" for one in element.all()))
        else:
            self.left_out[kind] += 1

    def _drawing(self, element: Element) -> None:
        """The text of a text box follows its paragraph; pictures and charts are counted."""
        has_box, pictures = False, 0
        waiting = [element]
        while waiting:
            one = waiting.pop()
            if one.name == "txbxContent":
                has_box = True
                if self._boxes:
                    self._boxes[-1] += self._of_children(one)
                continue
            pictures += one.name in ("blip", "imagedata")
            if one.name == "chart" or (one.name == "relIds" and element.name == "drawing"):
                self.left_out["charts"] += 1
            waiting += reversed([_chosen(one)] if one.name == "AlternateContent" else one.children)
        if element.name == "object":
            self.left_out["objects"] += 1
        elif not has_box or pictures:
            self.left_out["pictures"] += pictures


def _chosen(element: Element) -> Element:
    """Of several ways to say the same, the first; an empty element if there is none."""
    return next((child for child in element.children if child.name in ("Choice", "Fallback")), NOTHING)


def _small(text: str, default: int) -> int:
    return min(int(text), 64) if re.fullmatch(r"\d{1,4}", text) else default


# --- the archive ------------------------------------------------------------------------------------------------------


def read_docx(file: BinaryIO) -> Contents:
    """Raises Unreadable."""
    try:
        with zipfile.ZipFile(file) as archive:
            return _read(archive)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, ValueError, KeyError) as error:
        raise Unreadable("damaged", repr(error)) from error


def _read(archive: zipfile.ZipFile) -> Contents:
    parts = {part.filename.lstrip("/"): part for part in archive.infolist()}
    if any(part.flag_bits & 1 for part in parts.values()):
        raise Unreadable("password")
    if sum(part.file_size for name, part in parts.items() if name.endswith((".xml", ".rels"))) > MOST_XML_BYTES:
        raise Unreadable("too large")
    name = _main_part(archive, parts)
    folder = name.rpartition("/")[0]

    def part_named(kind: str) -> list[zipfile.ZipInfo]:
        pattern = re.compile(re.escape(f"{folder}/" if folder else "") + kind + r"\d*\.xml")
        return [part for own, part in parts.items() if pattern.fullmatch(own)]

    def small(kind: str) -> list[Element]:
        found = []
        for part in part_named(kind):
            with archive.open(part) as stream:
                found.append(parse(stream))
        return found

    numbering, styles = (next(iter(small(kind)), NOTHING) for kind in ("numbering", "styles"))
    document = _Document(Numbering(numbering, styles), time.monotonic() + READ_S)
    with archive.open(parts[name]) as stream:
        parse_within(stream, "body", document.take)
    left_out = document.left_out
    n_comments = sum(child.name == "comment" for part in small("comments") for child in part.children)
    if n_comments:
        left_out["comments"] += n_comments
    n_headers = sum(_has_text(part) for kind in ("header", "footer") for part in small(kind))
    if n_headers:
        left_out["headers"] += n_headers
    return Contents("docx", document.text, is_cut=document.is_cut, left_out={k: n for k, n in left_out.items() if n})


def _main_part(archive: zipfile.ZipFile, parts: dict[str, zipfile.ZipInfo]) -> str:
    """The part that is the document. Raises Unreadable if the archive is none of Word."""
    found = "word/document.xml"
    if "_rels/.rels" in parts:
        with archive.open(parts["_rels/.rels"]) as stream:
            for relation in parse(stream).children:
                if relation.attribute("Type").endswith(_OFFICE_DOCUMENT):
                    found = relation.attribute("Target").lstrip("/")
    if found not in parts or found.rpartition("/")[2].startswith(("workbook", "presentation")):
        raise Unreadable("other archive")
    return found


def _has_text(part: Element) -> bool:
    return any(element.name == "t" and element.text.strip() for element in part.all())
