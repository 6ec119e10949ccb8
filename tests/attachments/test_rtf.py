"""RTF as text: characters in any code page, tables, and groups that are no text."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvdesk.attachments.contents import read_contents
from kvdesk.attachments.found import Unreadable
from kvdesk.attachments.rtf import read_rtf


@pytest.mark.parametrize(
    ("inside", "text"),
    [
        (rb"Hello \'e4 world", "Hello ä world"),
        (rb"\ansicpg1251 \'cf\'f0\'e8", "При"),
        (rb"\uc1 \u1055?\u1088?\uc2\u1080xy!", "При!"),
        (rb"\uc1\u-10179?\u-8704?", "\U0001f600"),
        (rb"{\fonttbl{\f0\fcharset0 Times;}{\f1\fcharset128 Gothic;}}\f0 a\f1 \'93\'fa{\f0 \'e4}", "a日ä"),
        (b"one\\par two\\line three\\tab x\r\n y\\\nz", "one\ntwo\nthree\tx y\nz"),
        (rb"\trowd a\cell b\cell\row c\cell d\cell\row", "a\tb\nc\td"),
        (rb"{\listtext\pard\plain 1.\tab}first", "1.\tfirst"),
        (rb"{\field{\*\fldinst HYPERLINK x}{\fldrslt a link}}", "a link"),
        (rb"{\*\unknown gone}{\info{\title gone}}{\colortbl;\red1;}kept", "kept"),
        (rb"{\upr{old}{\*\ud{\u1055?}}}", "П"),
        (rb"\{a\}\\\~b\_c\-d", "{a}\\\u00a0b\u2011cd"),
        (b"a\\bin3 }{\\ b", "a b"),
        (rb"a} b {c", "a b c"),
    ],
)
def test_characters(tmp_path: Path, inside: bytes, text: str) -> None:
    file = tmp_path / "a.rtf"
    file.write_bytes(rb"{\rtf1\ansi\deff0 " + inside + b"}")
    found = read_contents(file)
    assert (found.kind, found.text) == ("text", text)


def test_what_is_left_out_is_counted() -> None:
    inside = rb"a{\footnote b}{\pict 00ff}{\v secret}{\header c}{\deleted old}{\*\annotation d}e"
    found = read_rtf(rb"{\rtf1 " + inside + b"}", is_all=True)
    assert found.text == "ae"
    counted = {"footnotes", "pictures", "hidden text", "headers", "deleted text", "comments"}
    assert found.left_out == dict.fromkeys(counted, 1)


def test_groups_are_nested_within_a_limit() -> None:
    with pytest.raises(Unreadable, match="damaged"):
        read_rtf(rb"{\rtf1" + b"{" * 5_000, is_all=True)


@given(st.lists(st.sampled_from((b"{", b"}", b"\\", b"'", b"*", b"u", b"bin", b"9", b"-1 ", b"upr", b"ud", b"\xff"))))
def test_any_bytes_are_read(pieces: list[bytes]) -> None:
    found = read_rtf(rb"{\rtf1 " + b"".join(pieces), is_all=True)
    found.text.encode()
