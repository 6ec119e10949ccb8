"""A plain text file: as UTF-8, in the encoding that its first bytes name, or in the likeliest one."""

import codecs
import re
from typing import Final

from kvdesk.attachments.encodings import CODECS, UTF_8, system_encoding
from kvdesk.attachments.found import ODD, Contents, Unreadable
from kvdesk.attachments.guess import guess

_BOMS: Final = (
    (codecs.BOM_UTF8, "utf-8", ""),
    (codecs.BOM_UTF32_LE, "utf-32-le", "UTF-32"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32-be", "UTF-32"),
    (codecs.BOM_UTF16_LE, "utf-16-le", "UTF-16"),
    (codecs.BOM_UTF16_BE, "utf-16-be", "UTF-16"),
)
_LAST_RESORT: Final = "Windows-1252"
_SAMPLE: Final = 100_000
_HEAD: Final = 1024
_MOST_ODD: Final = 0.05
"""Control characters among a text; programs, pictures and archives have more."""
_ALPHABETS: Final = (0x03, 0x04, 0x05, 0x06, 0x0E)
"""High bytes of Greek, Cyrillic, Hebrew, Arabic and Thai, none of which is in a text of other bytes."""
_NULS: Final = re.compile(rb"\0+")
_HIGH: Final = re.compile(rb"[\x80-\xff]")
_SHIFTED: Final = re.compile(rb"\x1b\$[@B]")
"""Here Japanese characters begin, in bytes of ASCII."""
_PROGRAM_SIGNS: Final = (
    *(b"\x7fELF", b"MZ", b"SQLite format 3\0", b"\x1f\x8b", b"7z\xbc\xaf", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd", b"BZh"),
    *(b"\0asm", b"\xca\xfe\xba\xbe", b"GGUF", b"Rar!", b"OggS", b"ID3", b"fLaC"),
)
"""How files begin that are no text however much of it they hold. A text may begin with some of them, such as one about
GGUF: letters alone count where bytes follow that no text has.
"""


def read_plain(data: bytes, *, is_all: bool, encoding: str = "") -> Contents:
    """`encoding`: the one that a user chose (`CODECS`). Raises Unreadable for what is no text."""
    if encoding:
        return _as(data, encoding, is_all=is_all)
    for mark, codec, name in _BOMS:
        if data.startswith(mark):
            text = codecs.getincrementaldecoder(codec)("replace").decode(data[len(mark) :], final=is_all)
            return Contents("text", text, name, is_cut=not is_all)
    if name := _wide(data):
        return _as(data, name, is_all=is_all)
    _refuse_binary(data)
    try:
        text = codecs.getincrementaldecoder("utf-8")().decode(data)  # its end may be half a character
    except UnicodeDecodeError:
        return _as(data, _likeliest(data, is_all=is_all), is_all=is_all)
    if is_all and text.isascii() and not data.isascii():  # that end was all there is beside ASCII
        return _as(data, _likeliest(data, is_all=is_all), is_all=is_all)
    if text.isascii() and _SHIFTED.search(data) and _is_in(data, "ISO-2022-JP"):
        return _as(data, "ISO-2022-JP", is_all=is_all)
    return Contents("text", text, is_cut=not is_all)


def _is_in(data: bytes, encoding: str) -> bool:
    """Whether the bytes are a text of the encoding, but for their end."""
    try:
        codecs.getincrementaldecoder(CODECS[encoding])().decode(data)
    except UnicodeDecodeError:
        return False
    return True


def _as(data: bytes, encoding: str, *, is_all: bool) -> Contents:
    """With U+FFFD for what the encoding does not have."""
    codec = CODECS[encoding]
    for mark, own, name in _BOMS:
        if data.startswith(mark) and encoding.startswith(name or UTF_8):
            codec, data = own, data[len(mark) :]
            break
    text = codecs.getincrementaldecoder(codec)("replace").decode(data, final=is_all)
    return Contents("text", text, encoding, is_cut=not is_all)


def _wide(data: bytes) -> str:
    """UTF-16 without a mark, by the NULs of its ASCII characters or by the letters of one alphabet; "" for anything
    else.
    """
    sample = data[: _SAMPLE & ~1]
    if len(sample) < 4:
        return ""
    n_even, n_odd = sample[::2].count(0), sample[1::2].count(0)
    half = len(sample) // 2
    if n_odd > 0.3 * half and n_even < 0.01 * half:
        return "UTF-16"
    if n_even > 0.3 * half and n_odd < 0.01 * half:
        return "UTF-16 BE"
    return next((name for name, n in (("UTF-16", 1), ("UTF-16 BE", 0)) if _is_alphabet(sample, name, n)), "")


def _is_alphabet(sample: bytes, encoding: str, first_high: int) -> bool:
    """Whether it is a text of characters of ASCII and of one alphabet, whose high bytes are all the same."""
    high = sample[first_high::2]
    block = max(_ALPHABETS, key=high.count)
    if high.count(0) + high.count(block) < 0.97 * len(high) or not high.count(block):
        return False
    text = sample[: len(sample) & ~1].decode(CODECS[encoding], "replace")
    return sum(c.isalnum() or c in " \t\r\n.,-" for c in text) > 0.9 * len(text)


def _refuse_binary(data: bytes) -> None:
    """A run of NULs, such as a crash leaves in a log, counts as one odd character."""
    sign = next(filter(data.startswith, _PROGRAM_SIGNS), b"")
    if sign and (not sign.isalnum() or ODD.search(data[:_HEAD])):
        raise Unreadable("binary")
    if data[257:262] == b"ustar":
        raise Unreadable("other archive")
    sample = _NULS.sub(b"\0", data[:_SAMPLE])
    if len(ODD.findall(sample)) > max(1, _MOST_ODD * len(sample)):
        raise Unreadable("binary")


def _likeliest(data: bytes, *, is_all: bool) -> str:
    """The name of an encoding. Raises Unreadable if none makes a text of the bytes."""
    sample = data[:_SAMPLE]
    n_bad = sample.decode("utf-8", "replace").count("\ufffd")
    n_high = len(_HIGH.findall(sample))
    if n_bad * 10 <= n_high:
        return UTF_8  # damaged in a few places
    if found := guess(data, is_all=is_all, system=system_encoding()):
        return found
    text = sample.decode("cp1252", "replace")
    n_odd = sum(not (c.isprintable() or c in "\t\n\r\f\b\x1b") for c in text)
    n_unknown = text.count("\ufffd")
    if (n_odd + n_unknown) > _MOST_ODD * len(text):
        raise Unreadable("binary")
    return _LAST_RESORT
