"""What is in a file: text in any encoding, PDF, DOCX; and everything that is none of these."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvdesk.attachments import contents
from kvdesk.attachments.contents import Contents, Unreadable, read_contents
from tests.attachments.files import BOMB, docx, pdf

CHINESE = "KV缓存的每一个单元，都有位置。"


@pytest.mark.parametrize(
    ("data", "text", "encoding"),
    [
        (b"def f():\r\n\treturn 1\r\n", "def f():\n\treturn 1", ""),
        ("Gr\u00fc\u00dfe, \U0001f642".encode(), "Gr\u00fc\u00dfe, \U0001f642", ""),
        (b"\xef\xbb\xbfwith a mark", "with a mark", ""),
        (CHINESE.encode("utf-16"), CHINESE, "UTF-16"),
        (b"\xfe\xff" + CHINESE.encode("utf-16-be"), CHINESE, "UTF-16"),
        (CHINESE.encode("utf-32"), CHINESE, "UTF-32"),
        (CHINESE.encode("gb18030"), CHINESE, "GB18030"),
        ("Die Br\u00fccke f\u00fcr 5 \u20ac".encode("cp1252"), "Die Br\u00fccke f\u00fcr 5 \u20ac", "Windows-1252"),
        ("d\u00e9j\u00e0 vu".encode("latin-1"), "d\u00e9j\u00e0 vu", "Windows-1252"),
    ],
)
def test_text_in_any_usual_encoding(tmp_path: Path, data: bytes, text: str, encoding: str) -> None:
    file = tmp_path / "file.txt"
    file.write_bytes(data)
    assert read_contents(file) == Contents("text", text, encoding)


def test_text_that_is_too_long_is_cut_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contents, "MOST_CHARACTERS", 10)
    file = tmp_path / "file.txt"
    file.write_text("\u00e9" * 11, encoding="utf-8")
    assert read_contents(file) == Contents("text", "\u00e9" * 10, is_cut=True)
    file.write_text("\u20ac" * 20, encoding="utf-8")  # the bytes that are read end within a character
    assert read_contents(file) == Contents("text", "\u20ac" * 10, is_cut=True)


def test_documents(tmp_path: Path) -> None:
    file = tmp_path / "named.otherwise"
    file.write_bytes(docx("One &amp; two", "Three"))
    assert read_contents(file) == Contents("docx", "One & two\n\nThree")
    file.write_bytes(pdf("First page", "", "Third page", compressed=True))
    assert read_contents(file) == Contents("pdf", "First page\n\nThird page", n_pages=3, of_pages=3)


def test_a_pdf_is_read_for_as_long_as_there_is_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contents, "READ_S", 0.0)
    file = tmp_path / "long.pdf"
    file.write_bytes(pdf("One", "Two"))
    assert read_contents(file) == Contents("pdf", "One", n_pages=1, of_pages=2)


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "empty"),
        (b" \n\n", "empty"),
        (bytes(range(256)), "binary"),
        (bytes(range(1, 32)) * 9 + bytes(range(128, 160)), "binary"),
        (b"\x89PNG\r\n\x1a\n....", "picture"),
        (b"\xff\xd8\xff\xe0....", "picture"),
        (b"\xd0\xcf\x11\xe0....", "old document"),
        (pdf("", ""), "no text"),
        (pdf("secret", encrypted=True), "password"),
        (pdf("Some words")[:200], "damaged"),
        (b"PK\x03\x04 and nothing else", "damaged"),
        (docx("words")[:-40], "damaged"),
        (docx("&a11;", begin=BOMB), "damaged"),
        (docx("<w:r>" * 5_000 + "</w:r>" * 5_000), "damaged"),
        (docx("x" * 51_000_000), "too large"),  # 50 kB in the file
    ],
)
def test_what_has_no_text_says_why(tmp_path: Path, data: bytes, problem: str) -> None:
    file = tmp_path / "file"
    file.write_bytes(data)
    with pytest.raises(Unreadable) as refused:
        read_contents(file)
    assert refused.value.problem == problem


def test_another_archive_is_no_document(tmp_path: Path) -> None:
    file = tmp_path / "file.xlsx"
    file.write_bytes(docx("words").replace(b"word/document.xml", b"xl/documents.xml_"))
    with pytest.raises(Unreadable, match="other archive"):
        read_contents(file)


@given(st.binary(max_size=400))
def test_any_bytes_are_text_or_a_problem(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    file = tmp_path_factory.getbasetemp() / "any"
    file.write_bytes(b"x" + data)  # no document: those may kill their reader
    try:
        found = read_contents(file)
    except Unreadable:
        return
    assert found.text
    assert "\0" not in found.text
    assert "\r" not in found.text
