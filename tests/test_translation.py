"""`tr` asks what was installed, and is the text itself before."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from kvdesk import translation
from kvdesk.translation import best, plural, tr, use

GERMAN = Path(__file__).parent / "app" / "translations" / "kvdesk_de.mo"


@pytest.fixture
def _restored() -> Iterator[None]:
    yield
    translation.install(translation.english)


def test_without_a_translator_a_text_is_itself() -> None:
    assert tr("New chat") == "New chat"
    assert [plural("1 token", "%n tokens", n) for n in (0, 1, 3, 1024)] == [
        "0 tokens",
        "1 token",
        "3 tokens",
        "1,024 tokens",
    ]


@pytest.mark.usefixtures("_restored")
def test_an_installed_translator_is_asked() -> None:
    asked: list[tuple[str, str, int]] = []

    def german(one: str, many: str, n: int) -> str:
        asked.append((one, many, n))
        return {"New chat": "Neuer Chat"}[one]

    translation.install(german)
    assert tr("New chat") == "Neuer Chat"
    assert asked == [("New chat", "", 1)]


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
    assert (plural("1 token", "%n tokens", 1), plural("1 token", "%n tokens", 3)) == (
        "1 Token, eins",
        "3 Token, mehrere",
    )
    assert (plural("Not in it", "Not in it, %n", 2), tr("")) == ("Not in it, 2", "")


@pytest.mark.usefixtures("_restored")
def test_a_damaged_catalogue_leaves_english(tmp_path: Path) -> None:
    path = tmp_path / "kvdesk_de.mo"
    for damaged in (b"", b"nonsense", GERMAN.read_bytes()[:60], GERMAN.read_bytes()[:-9]):
        path.write_bytes(damaged)
        assert use(["de"], {"de": path}) in ("en", "de")
        assert tr("New chat") == "New chat"
    assert use(["de"], {"de": tmp_path / "none.mo"}) == "en"
