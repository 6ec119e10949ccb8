"""A file is read in a process of its own: whatever it does to that, it costs one sentence."""

import random
import time
from pathlib import Path

import pytest

from kvdesk.attachments import limits, reader
from kvdesk.attachments.reader import MOST_NAME, FileRead, ReadingCancelled, read_file, shown_name
from kvdesk.errors import UserError
from kvdesk.message import Attachment
from tests.attachments.files import docx, docx_of, pdf
from tests.children.fake import fake_child


def test_a_file_becomes_an_attachment(tmp_path: Path) -> None:
    paper, notes = tmp_path / "paper.pdf", tmp_path / "notes.txt"
    paper.write_bytes(pdf("Hello", "world"))
    assert read_file(paper) == FileRead(Attachment("paper.pdf", "pdf", "Hello\n\nworld", "2 pages"))
    notes.write_bytes("d\u00e9j\u00e0".encode("cp1252"))
    found = Attachment("notes.txt", "text", "d\u00e9j\u00e0", "read as Windows-1252")
    assert read_file(notes) == FileRead(found, "Windows-1252")
    assert read_file(notes, encoding="Windows-1251").attachment.text == "d\u0439j\u0430"
    assert read_file(notes, encoding="UTF-8").attachment.note == "read as UTF-8"


def test_what_is_left_out_of_a_document_is_named(tmp_path: Path) -> None:
    paper = tmp_path / "paper.docx"
    body = "<w:p><w:r><w:t>Text</w:t><w:footnoteReference/></w:r></w:p>"
    paper.write_bytes(docx_of(body, comments="<w:comment/><w:comment/>"))
    assert read_file(paper).attachment.note == "left out: footnotes (1), comments (2)"


@pytest.mark.parametrize(
    ("name", "data", "sentence"),
    [
        ("a.pdf", pdf(""), "a.pdf has no text: its pages are probably scanned pictures. Only text can be attached."),
        ("a.pdf", pdf("x", encrypted=True), "a.pdf is protected with a password, so it cannot be read."),
        ("a.docx", docx("x")[:-9], "a.docx is damaged and cannot be read."),
        ("a`\n.txt", b"", "a__.txt is empty."),
    ],
)
def test_what_cannot_be_read_is_one_sentence(tmp_path: Path, name: str, data: bytes, sentence: str) -> None:
    file = tmp_path / name
    file.write_bytes(data)
    with pytest.raises(UserError) as refused:
        read_file(file)
    assert str(refused.value) == sentence


def test_a_folder_and_a_file_that_is_gone(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "gone.txt"):
        with pytest.raises(UserError, match="could not be read: "):
            read_file(path)


@pytest.fixture
def child(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Python code that runs in the place of the child."""
    code: list[str] = []
    monkeypatch.setattr(reader, "child_command", lambda *_: fake_child(code[0]))
    return code


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        ("import os; os.abort()", "the reader stopped"),
        ("parent.send(b'{\"kind\"')", "the reader stopped"),
        ("b = b'x' * 200_000_000; import time; time.sleep(60)", "needs more memory"),
        ("import time; time.sleep(60)", "took longer than"),
    ],
)
def test_a_child_that_dies_hangs_or_eats_memory(
    tmp_path: Path, child: list[str], monkeypatch: pytest.MonkeyPatch, code: str, sentence: str
) -> None:
    child.append(code)
    monkeypatch.setattr(limits, "MEMORY", 150_000_000)
    monkeypatch.setattr(limits, "TIME_S", 10.0 if "memory" in sentence else 0.3)
    if "stopped" in sentence:
        monkeypatch.setattr(limits, "TIME_S", 10.0)
    with pytest.raises(UserError, match=sentence):
        read_file(tmp_path / "a.pdf")


def test_reading_can_be_cancelled(tmp_path: Path, child: list[str]) -> None:
    child.append("import time; time.sleep(60)")
    start = time.monotonic()
    with pytest.raises(ReadingCancelled):
        read_file(tmp_path / "a.pdf", lambda: True)
    assert time.monotonic() - start < 5.0


def test_a_document_that_unpacks_to_too_much_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MEMORY", 120_000_000)
    file = tmp_path / "bomb.docx"
    file.write_bytes(docx("<w:r/>" * 1_000_000))  # a few kB
    with pytest.raises(UserError, match="needs more memory"):
        read_file(file)


@pytest.mark.parametrize("n", [3, pytest.param(40, marks=pytest.mark.matrix)])
def test_damaged_documents_never_cost_more_than_a_sentence(tmp_path: Path, n: int) -> None:
    chance = random.Random(7)
    whole = pdf("Some words on a page", "And some more", compressed=True)
    file = tmp_path / "a.pdf"
    for _ in range(n):
        data = bytearray(whole)
        for _ in range(20):
            data[chance.randrange(8, len(data))] = chance.randrange(256)
        file.write_bytes(data)
        try:
            said = read_file(file).attachment.name
        except UserError as error:
            said = str(error)
        assert said.startswith("a.pdf")


def test_a_name_is_one_short_line() -> None:
    assert shown_name("a\u2028b`c.txt") == "a_b_c.txt"
    long = shown_name("x" * 300 + ".pdf")
    assert len(long) == 100
    assert long.endswith(".pdf")


@pytest.mark.parametrize("n", range(4))
def test_a_long_name_is_cut_at_whole_signs(n: int) -> None:
    vowel = "\u0ba8\u0bbf"
    shown = shown_name("x" * n + vowel * 100 + "y" * n + ".pdf")
    assert len(shown) <= MOST_NAME
    head, tail = shown.split("…")
    assert head == "x" * n + vowel * ((len(head) - n) // 2)
    assert tail == vowel * ((len(tail) - n - len(".pdf")) // 2) + "y" * n + ".pdf"
    assert len(shown_name("x" + "\u0bbf" * 200)) == MOST_NAME
