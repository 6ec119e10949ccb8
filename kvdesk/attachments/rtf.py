"""The text of an RTF file: control words are followed as far as they make or hide characters. Nothing is executed."""

import codecs
import re
from collections import Counter
from typing import Final

from kvdesk.attachments.found import MOST_CHARACTERS, Contents, Part, Unreadable
from kvdesk.values import dataclass, replace

_DEEPEST: Final = 1_000
"""Groups within groups; word processors need about twenty."""
_TOKEN: Final = re.compile(
    rb"(?P<open>\{)|(?P<close>\})|\\'(?P<byte>[0-9A-Fa-f]{2})|\\(?P<word>[A-Za-z]{1,64})(?P<number>-?\d{1,10})?[ ]?"
    rb"|\\(?P<symbol>[^A-Za-z])|(?P<text>[^\\{}\r\n]+)|[\r\n]+|\\",
    re.DOTALL,
)
_CHARACTERS: Final = {
    "par": "\n",
    "line": "\n",
    "sect": "\n",
    "page": "\n",
    "column": "\n",
    "row": "\n",
    "nestrow": "\n",
    "tab": "\t",
    "cell": "\t",
    "nestcell": "\t",
    "emdash": "—",
    "endash": "–",
    "bullet": "•",
    "lquote": "‘",
    "rquote": "’",
    "ldblquote": "“",
    "rdblquote": "”",
    "emspace": " ",
    "enspace": " ",
    "qmspace": " ",
    "zwj": "\u200d",
    "zwnj": "\u200c",
    "ltrmark": "\u200e",
    "rtlmark": "\u200f",
}
_SYMBOLS: Final = {"~": "\u00a0", "_": "\u2011", "\\": "\\", "{": "{", "}": "}", "\n": "\n", "\r": "\n", "\t": "\t"}
_HIDDEN: Final = frozenset((
    *("fonttbl", "colortbl", "stylesheet", "info", "listtable", "listoverridetable", "rsidtbl", "revtbl", "generator"),
    *("xmlnstbl", "themedata", "colorschememapping", "latentstyles", "datastore", "fldinst", "nonshppict", "filetbl"),
    *("pntxta", "pntxtb", "upr", "xe", "tc", "template", "pgdsctbl", "mmathPr", "bkmkstart", "bkmkend", "objdata"),
    *("falt", "panose", "fontemb", "sp", "atnid", "atnauthor", "atnref", "atndate", "atnicn", "atrfstart", "atrfend"),
))  # fmt: skip
"""Groups that hold no text of the document."""
_LEFT_OUT: Final[dict[str, Part]] = {
    **dict.fromkeys(("header", "headerl", "headerr", "headerf", "footer", "footerl", "footerr", "footerf"), "headers"),
    "footnote": "footnotes",
    "annotation": "comments",
    "pict": "pictures",
    "object": "objects",
    "mmath": "equations",
}
"""Groups whose text is left out and counted."""
_TEXT_AFTER_STAR: Final = frozenset(("ud", "shptxt", "shpinst", "fldrslt"))
"""Groups that begin with the mark "unknown readers skip this", and hold text of the document all the same."""
_CHARSETS: Final = {
    0: "cp1252",
    77: "mac_roman",
    128: "cp932",
    129: "cp949",
    130: "johab",
    134: "gb18030",
    136: "cp950",
    161: "cp1253",
    162: "cp1254",
    163: "cp1258",
    177: "cp1255",
    178: "cp1256",
    186: "cp1257",
    204: "cp1251",
    222: "cp874",
    238: "cp1250",
    254: "cp437",
    255: "cp850",
}
"""Codecs by the number of a font's character set."""
_CODE_PAGES: Final = {"ansi": "cp1252", "mac": "mac_roman", "pc": "cp437", "pca": "cp850"}


@dataclass(frozen=True, slots=True)
class _Group:
    """What holds in one group, and in those within it unless they say otherwise.

    n_fallback  characters after each \\uN that older readers show in its place
    """

    is_hidden: bool = False
    is_vanished: bool = False
    is_deleted: bool = False
    is_fonts: bool = False
    n_fallback: int = 1
    font: int = -1


class _Reader:
    def __init__(self) -> None:
        self.left_out: Counter[Part] = Counter()
        self.n_characters = 0
        self._group = _Group()
        self._groups: list[_Group] = []
        self._codec = "cp1252"
        self._fonts: dict[int, str] = {}
        self._default_font = -1
        self._bytes = bytearray()
        self._texts: list[str] = []
        self._skip = 0
        self._is_first = self._is_optional = False

    @property
    def text(self) -> str:
        self._flush()
        whole = "".join(self._texts)
        whole = whole.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")  # \\uN are halves of pairs
        return re.sub(r"\t+\n", "\n", whole)  # the mark at the end of a row's last cell

    def read(self, data: bytes) -> bool:
        """Whether all of it was read: no more is than a user may attach."""
        at = 0
        while at < len(data) and self.n_characters <= MOST_CHARACTERS:
            found = _TOKEN.match(data, at)
            if found is None:
                break
            at = found.end()
            kind = found.lastgroup
            if kind == "open":
                self._open()
            elif kind == "close":
                self._close()
            elif found["word"] is not None:
                at += self._word(found["word"].decode("ascii"), found["number"])
            elif kind == "symbol":
                self._symbol(found["symbol"].decode("latin-1"))
            elif kind == "byte":
                self._raw(bytes((int(found["byte"], 16),)))
            elif kind == "text":
                self._raw(found["text"])
        return at >= len(data)

    def _open(self) -> None:
        self._flush()
        if len(self._groups) >= _DEEPEST:
            raise Unreadable("damaged", "groups are nested too deeply")
        self._groups.append(self._group)
        self._is_first, self._is_optional, self._skip = True, False, 0

    def _close(self) -> None:
        self._flush()
        if self._groups:
            self._group = self._groups.pop()
        self._is_first = self._is_optional = False
        self._skip = 0

    def _word(self, word: str, number: bytes | None) -> int:
        """Follow a control word; returns how many bytes after it are no text."""
        n = int(number) if number is not None else None
        was_first, was_optional = self._is_first, self._is_optional
        self._is_first = self._is_optional = False
        if word == "bin":
            return max(0, n or 0)
        if was_first and self._begins(word, was_optional):
            return 0
        if word == "u" and n is not None:
            self._flush()
            self._put(chr(n & 0xFFFF))
            self._skip = self._group.n_fallback
        elif word in _CHARACTERS:
            if self._skip:
                self._skip -= 1
                return 0
            self._flush()
            self._put(_CHARACTERS[word])
        else:
            self._setting(word, n)
        return 0

    def _begins(self, word: str, is_optional: bool) -> bool:
        """The first word of a group says what the group is. Whether that was all it says."""
        if word == "fonttbl":
            self._group = replace(self._group, is_fonts=True, is_hidden=True)
            return True
        if word in _TEXT_AFTER_STAR:
            if word == "ud":  # within a group of which only this one is text
                self._group = replace(self._group, is_hidden=len(self._groups) > 1 and self._groups[-2].is_hidden)
            return True
        if word in _LEFT_OUT:
            if not self._group.is_hidden:
                self.left_out[_LEFT_OUT[word]] += 1
            self._group = replace(self._group, is_hidden=True)
            return True
        if word in _HIDDEN or is_optional:
            self._group = replace(self._group, is_hidden=True)
            return True
        return False

    def _setting(self, word: str, n: int | None) -> None:
        group = self._group
        is_on = n != 0
        if word in _CODE_PAGES:
            self._codec = _CODE_PAGES[word]
        elif word == "ansicpg" and n is not None:
            self._codec = _known(f"cp{n}") or self._codec
        elif word == "deff" and n is not None:
            self._default_font = n
        elif word == "f" and n is not None:
            self._flush()
            self._group = replace(group, font=n)
        elif word == "fcharset" and group.is_fonts and n in _CHARSETS:
            self._fonts[group.font] = _CHARSETS[n]
        elif word == "uc" and n is not None:
            self._group = replace(group, n_fallback=max(0, min(n, 100)))
        elif word in ("v", "deleted"):
            self._flush()
            if is_on and not group.is_hidden:
                self.left_out["hidden text" if word == "v" else "deleted text"] += 1
            self._group = replace(group, is_vanished=is_on) if word == "v" else replace(group, is_deleted=is_on)
        elif word == "plain":
            self._flush()
            self._group = replace(group, is_vanished=False, is_deleted=False, font=self._default_font)

    def _symbol(self, symbol: str) -> None:
        if symbol == "*":
            self._is_optional = self._is_first
            return
        self._is_first = self._is_optional = False
        if symbol in _SYMBOLS:
            if self._skip:
                self._skip -= 1
                return
            self._flush()
            self._put(_SYMBOLS[symbol])

    def _raw(self, data: bytes) -> None:
        self._is_first = self._is_optional = False
        n = min(self._skip, len(data))
        self._skip -= n
        if not self._is_silent:
            self._bytes += data[n:]

    @property
    def _is_silent(self) -> bool:
        group = self._group
        return group.is_hidden or group.is_vanished or group.is_deleted

    def _flush(self) -> None:
        """What was read as bytes, in the code page of its font: a character may be two of them."""
        if self._bytes:
            font = self._group.font if self._group.font >= 0 else self._default_font
            codec = self._fonts.get(font, self._codec)
            if codec == "cp1252":  # what most writers say whatever their code page is
                codec = self._codec
            self._put(bytes(self._bytes).decode(codec, "replace"))
            self._bytes.clear()

    def _put(self, text: str) -> None:
        if not self._is_silent:
            self._texts.append(text)
            self.n_characters += len(text)


def _known(codec: str) -> str:
    if codec == "cp10000":
        return "mac_roman"
    try:
        return codecs.lookup({"cp936": "gb18030", "cp65001": "utf-8"}.get(codec, codec)).name
    except LookupError:
        return ""


def read_rtf(data: bytes, *, is_all: bool) -> Contents:
    """Raises Unreadable."""
    reader = _Reader()
    was_read = reader.read(data)
    return Contents("text", reader.text, is_cut=not (is_all and was_read), left_out=dict(reader.left_out))
