"""What is in a file: text in any encoding, PDF, DOCX; and everything that is none of these."""

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvdesk.attachments import found, limits
from kvdesk.attachments.contents import read_contents
from kvdesk.attachments.found import Contents, Unreadable
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
        ("Привет, мир".encode("utf-16-le"), "Привет, мир", "UTF-16"),
        ("שלום עולם".encode("utf-16-be"), "שלום עולם", "UTF-16 BE"),
        (CHINESE.encode("gb18030"), CHINESE, "GB18030"),
        ("Die Br\u00fccke f\u00fcr 5 \u20ac".encode("cp1252"), "Die Br\u00fccke f\u00fcr 5 \u20ac", "Windows-1252"),
        ("d\u00e9j\u00e0 vu".encode("latin-1"), "d\u00e9j\u00e0 vu", "Windows-1252"),
        ("caf\u00e9".encode("latin-1"), "caf\u00e9", "Windows-1252"),
        ("Gr\u00fc\u00dfe \u20ac".encode()[:-1], "Gr\u00fc\u00dfe", ""),  # a program ended while it wrote
        ("\u65e5\u672c\u8a9e a".encode("iso2022_jp"), "\u65e5\u672c\u8a9e a", "ISO-2022-JP"),
        (b"5\n6\n7\n8", "5\n6\n7\n8", ""),  # letters of Gurmukhi in UTF-16
        (b"\x1b$B no", "\x1b$B no", ""),
    ],
)
def test_text_in_any_usual_encoding(tmp_path: Path, data: bytes, text: str, encoding: str) -> None:
    file = tmp_path / "file.txt"
    file.write_bytes(data)
    assert read_contents(file) == Contents("text", text, encoding)


def test_text_that_is_too_long_is_cut_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(found, "MOST_CHARACTERS", 10)
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
    monkeypatch.setattr(limits, "READ_S", 0.0)
    file = tmp_path / "long.pdf"
    file.write_bytes(pdf("One", "Two"))
    assert read_contents(file) == Contents("pdf", "One", n_pages=1, of_pages=2)


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "empty"),
        (b" \n\n", "empty"),
        (bytes(range(256)), "binary"),
        (b"\x7fELF" + b"only words " * 90, "binary"),
        (b"a.txt".ljust(257, b"\0") + b"ustar" + b"words " * 90, "other archive"),
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
        (lambda: docx("x" * 51_000_000), "too large"),  # 50 kB in the file, made when it is wanted
    ],
)
def test_what_has_no_text_says_why(tmp_path: Path, data: bytes | Callable[[], bytes], problem: str) -> None:
    file = tmp_path / "file"
    file.write_bytes(data() if callable(data) else data)
    with pytest.raises(Unreadable) as refused:
        read_contents(file)
    assert refused.value.problem == problem


@pytest.mark.parametrize(
    "text",
    [
        *("BMI is a number.", "GIF89a is a format of pictures.", "Convert WEBP to PNG with this script."),
        *("GGUF files hold models.", "MZ are his initials.", "ID3 grows decision trees.", "OggS: the page", "BZh9"),
        *('MARK = b"%PDF-"  # how a PDF begins', "Rare words", "RIFF: see WEBP", "II* and MM"),
    ],
)
def test_a_text_may_begin_as_another_file_does(tmp_path: Path, text: str) -> None:
    file = tmp_path / "file.txt"
    file.write_text(text)
    assert read_contents(file) == Contents("text", text)


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"BM\x36\x00\x0c\x00" + b"words " * 90, "picture"),
        (b"GIF89a\x01\x00\x01\x00" + b"words " * 90, "picture"),
        (b"RIFF\x24\x00\x00\x00WEBPVP8 " + b"words " * 90, "picture"),
        (b"GGUF\x03\x00\x00\x00" + b"words " * 90, "binary"),
        (b"MZ\x90\x00" + b"words " * 90, "binary"),
    ],
)
def test_a_file_with_much_text_in_it_is_none_all_the_same(tmp_path: Path, data: bytes, problem: str) -> None:
    file = tmp_path / "file"
    file.write_bytes(data)
    with pytest.raises(Unreadable) as refused:
        read_contents(file)
    assert refused.value.problem == problem


def test_a_pdf_may_begin_with_something_else(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"From a mail\n" + pdf("Words"))
    assert read_contents(file).text == "Words"


def test_the_first_line_keeps_its_indent(tmp_path: Path) -> None:
    file = tmp_path / "part.py"
    file.write_bytes(b"\r\n  \n    if a:\n        b()\n\n")
    assert read_contents(file).text == "    if a:\n        b()"


def test_another_archive_is_no_document(tmp_path: Path) -> None:
    file = tmp_path / "file.xlsx"
    file.write_bytes(docx("words").replace(b"word/document.xml", b"xl/documents.xml_"))
    with pytest.raises(Unreadable, match="other archive"):
        read_contents(file)


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"line one\nbad \0 byte\n", "line one\nbad  byte"),
        (b"line one\n" + bytes(4096) + b"line two\n", "line one\nline two"),
        ("Grüße: 20 °C\n".encode() * 9 + b"\xff\n", "Grüße: 20 °C\n" * 9 + "\ufffd"),
        ("a log of Windows\n".encode("utf-16-le"), "a log of Windows"),
    ],
)
def test_a_few_odd_bytes_cost_no_log(tmp_path: Path, data: bytes, text: str) -> None:
    file = tmp_path / "a.log"
    file.write_bytes(data)
    assert read_contents(file).text == text


def test_the_values_of_a_form_are_text(tmp_path: Path) -> None:
    widgets = (
        "<< /Type /Annot /Subtype /Widget /FT /Tx /T (name) /V (Maria) /Rect [9 9 90 20] >>"
        "<< /Type /Annot /Subtype /Widget /FT /Tx /T (empty) /V () /Rect [9 29 90 40] >>"
        "<< /Type /Annot /Subtype /Widget /FT /Tx /T (town) /TU (Town of birth) /V <FEFF004E01780077> >>"
    )
    file = tmp_path / "form.pdf"
    file.write_bytes(pdf("Your name:", about=f" /Annots [{widgets}]"))
    assert read_contents(file).text == "Your name:\n\nname: Maria\nTown of birth: NŸw"


def test_a_field_has_what_its_form_says(tmp_path: Path) -> None:
    """A value may stand with the parent of a field; passwords and boxes that are not ticked are no text."""
    objects = (
        "<< /FT /Tx /T (town) /V (Oslo) /Kids [7 0 R] >>",
        "<< /Type /Annot /Subtype /Widget /Parent 6 0 R /Rect [9 9 90 20] >>",
        "<< /Type /Annot /Subtype /Widget /FT /Tx /Ff 8192 /T (pin) /V (1234) /Rect [9 29 90 40] >>",
        "<< /Type /Annot /Subtype /Widget /FT /Btn /T (married) /V /Off /AS /Off /Rect [9 49 90 60] >>",
        "<< /Type /Annot /Subtype /Widget /FT /Ch /Ff 131072 /T (colour) /V (red) /Opt [(red)] /Rect [9 69 90 80] >>",
    )
    form = " /AcroForm << /Fields [6 0 R 8 0 R 9 0 R 10 0 R] >>"
    file = tmp_path / "form.pdf"
    about = " /Annots [7 0 R 8 0 R 9 0 R 10 0 R]"
    file.write_bytes(pdf("Form", about=about, catalog=form, objects=objects))
    assert read_contents(file).text == "Form\n\ntown: Oslo\ncolour: red"


SHARED = Path(__file__).parents[3] / "shared" / "cases" / "attach"


@pytest.mark.skipif(not SHARED.is_dir(), reason="the small inputs are not beside the project")
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("big5.txt", "這是一份繁體中文的文件，內容很普通。"),
        ("cp1251.txt", "Привет, мир! Это обычный текст на русском языке."),
        ("shiftjis.txt", "これは日本語のテキストです。漢字とかな。"),
        ("mail.rtf", "Hello ä world"),
        ("nul-inside.log", "line one\nbad  byte\nline three"),
        ("form.pdf", "Your name:\n\nname: Maria"),
        ("table.pdf", "Name Age Town\nAnn 30 Rome\nBob 41 Oslo"),
    ],
)
def test_files_that_were_not_read_once(name: str, text: str) -> None:
    assert read_contents(SHARED / name).text == text


@given(st.binary(max_size=400))
def test_any_bytes_are_text_or_a_problem(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    file = tmp_path_factory.getbasetemp() / "any"
    file.write_bytes(b"x" + data)  # no document: those may kill their reader
    try:
        read = read_contents(file)
    except Unreadable:
        return
    assert read.text
    assert "\0" not in read.text
    assert "\r" not in read.text
