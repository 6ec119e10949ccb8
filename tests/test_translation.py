"""`tr` asks what was installed, and is the text itself before."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from kvdesk import translation
from kvdesk.translation import best, catalogue, tr, use

GERMAN = Path(__file__).parent / "app" / "translations" / "kvdesk_de.qm"
_MAGIC = bytes.fromhex("3cb86418caef9c95cd211cbf60a1bddd")


def section(kind: int, data: bytes) -> bytes:
    return bytes([kind]) + len(data).to_bytes(4, "big") + data


def field(kind: int, data: bytes) -> bytes:
    return section(kind, data)


@pytest.fixture
def _restored() -> Iterator[None]:
    yield
    translation.install(translation.english)


def test_without_a_translator_a_text_is_itself() -> None:
    assert tr("New chat") == "New chat"
    assert tr("%n tokens", 3) == "3 tokens"


@pytest.mark.usefixtures("_restored")
def test_an_installed_translator_is_asked() -> None:
    asked: list[tuple[str, int]] = []

    def german(text: str, n: int) -> str:
        asked.append((text, n))
        return {"New chat": "Neuer Chat"}[text]

    translation.install(german)
    assert tr("New chat") == "Neuer Chat"
    assert asked == [("New chat", -1)]


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (["zh-Hans-CN", "zh-CN", "zh"], "zh_CN"),
        (["zh_SG"], "zh_CN"),
        (["zh"], "zh_CN"),
        (["de-AT", "de"], "de"),
        (["fr-FR", "fr", "zh-CN"], "zh_CN"),
        (["en-US", "en", "zh-CN"], ""),
        (["zh-Hant-TW", "zh-TW", "zh-Hant"], ""),
    ],
)
def test_the_first_language_that_is_there_is_taken_and_english_always_is(wanted: list[str], expected: str) -> None:
    assert best(wanted, {"de": GERMAN, "zh_CN": GERMAN}) == expected


@pytest.mark.usefixtures("_restored")
def test_a_catalogue_is_read_without_qt_and_asked_from_every_thread() -> None:
    assert use(["de"], {"de": GERMAN}) == translation.installed() == "de"
    heard: list[str] = []
    thread = threading.Thread(target=lambda: heard.append(tr("New chat")))
    thread.start()
    thread.join()
    assert heard == ["Neuer Chat"]
    assert (tr("%n tokens", 1), tr("%n tokens", 3)) == ("1 Token, eins", "3 Token, mehrere")
    assert tr("Not in it, %n", 2) == "Not in it, 2"


@pytest.mark.usefixtures("_restored")
def test_a_damaged_catalogue_leaves_english(tmp_path: Path) -> None:
    path = tmp_path / "kvdesk_de.qm"
    for damaged in (b"", b"nonsense", GERMAN.read_bytes()[:60], _MAGIC + section(0x69, field(6, b"\xff\xff"))):
        path.write_bytes(damaged)
        assert use(["de"], {"de": path}) in ("en", "de")
        assert tr("New chat") == "New chat"
    assert use(["de"], {"de": tmp_path / "none.qm"}) == "en"


def test_the_form_for_a_number_follows_the_rules_of_the_language() -> None:
    """Polish, as Qt writes its rules: 1; ends in 2 to 4 but not in 12 to 14; the rest."""
    rules = bytes([1, 1, 0xFF, 0x14, 2, 4, 0xFD, 0x2C, 10, 20])
    forms = b"".join(field(3, form.encode("utf-16-be")) for form in ("%n plik", "%n pliki", "%n plików"))
    messages = forms + field(6, b"%n files") + bytes([1])
    translate = catalogue(_MAGIC + section(0x69, messages) + section(0x88, rules))
    found = [translate("%n files", n) for n in (0, 1, 2, 12, 24, 25)]
    assert found == ["0 plików", "1 plik", "2 pliki", "12 plików", "24 pliki", "25 plików"]
