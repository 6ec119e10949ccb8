"""The catalogues: from a text in the source to what is shown; what is in those that ship."""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import IO

import pytest
import translations
from babel.messages.catalog import Catalog
from PySide6.QtWidgets import QApplication

from kvdesk.app.language import install_language
from kvdesk.paths import catalogues
from kvdesk.translation import best, catalogue, plural, tr

SHIPPED = sorted(translations.TRANSLATIONS.glob("kvdesk_*.po"))
SAME = frozenset(
    {
        *("Attention sinks", "attention sinks", "Flash attention", "flash attention", "Top n-sigma"),
        *("n_seq_max", "JSON schema", "JSON (*.json)", "Markdown (*.md)"),
    }
)
"""Names of llama.cpp and of formats."""
FEWEST = 3_000
"""Translated texts: some leave with the code that showed them, but never this many at once."""
_SOURCE = """
TITLE = marked("Context size")
def texts(n):
    return tr("New " "chat"), plural("1 token", "%n tokens", n), tr("{n} of {most}").format(n=n, most=2)
"""
_CHINESE = {
    "Context size": "上下文长度",
    "New chat": "新对话",
    "%n tokens": "%n 个 token",
    "{n} of {most}": "{n}/{most}",
}


shipped = cache(translations.read)


@pytest.fixture
def _english_again(qapp: QApplication) -> Iterator[None]:
    yield
    install_language(qapp, "en")


@pytest.mark.usefixtures("_english_again")
def test_a_text_of_the_source_is_shown_in_chinese(tmp_path: Path, qapp: QApplication) -> None:
    (tmp_path / "texts.py").write_text(_SOURCE, encoding="utf-8")
    po = tmp_path / "kvdesk_zh_CN.po"
    translations.save(Catalog("zh_CN"), po)
    catalogue = translations.updated(po, tmp_path)
    assert sorted(translations.unfinished(catalogue)) == sorted(_CHINESE)

    _translate(catalogue, _CHINESE)
    translations.save(catalogue, po)
    translations.release(po)
    assert install_language(qapp, "zh_CN", tmp_path) == "zh_CN"
    assert (tr("New chat"), plural("1 token", "%n tokens", 3)) == ("新对话", "3 个 token")
    assert qapp.translate("QPlatformTheme", "Cancel") == "取消"


@pytest.mark.usefixtures("_english_again")
def test_a_text_that_waits_is_shown_in_english_until_it_is_translated(tmp_path: Path, qapp: QApplication) -> None:
    source, po = tmp_path / "texts.py", tmp_path / "kvdesk_zh_CN.po"
    source.write_text(_SOURCE, encoding="utf-8")
    translations.save(Catalog("zh_CN"), po)
    catalogue = translations.updated(po, tmp_path)
    _translate(catalogue, _CHINESE)
    translations.save(catalogue, po)
    source.write_text(_SOURCE.replace('"New " "chat"', '"A new chat"'), encoding="utf-8")
    catalogue = translations.updated(po, tmp_path)
    assert translations.unfinished(catalogue) == ["A new chat"]
    assert "New chat" not in catalogue

    translations.save(catalogue, po)
    translations.release(po)
    assert translations.unfinished(translations.updated(po, tmp_path)) == ["A new chat"]
    assert install_language(qapp, "zh_CN", tmp_path) == "zh_CN"
    assert (tr("A new chat"), plural("1 token", "%n tokens", 3)) == ("A new chat", "3 个 token")


@pytest.mark.parametrize(("written", "write"), [("write_po", "save"), ("write_mo", "release")])
def test_a_catalogue_that_cannot_be_written_stays_as_it_was(
    written: str, write: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def end_early(file: IO[bytes], *_others: object, **_options: object) -> None:
        file.write(b"half")
        raise KeyboardInterrupt

    po, catalogue = tmp_path / "kvdesk_zh_CN.po", Catalog("zh_CN")
    translations.save(catalogue, po)
    translations.release(po)
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    monkeypatch.setattr(translations, written, end_early)
    arguments = (catalogue, po) if write == "save" else (po,)
    with pytest.raises(KeyboardInterrupt):
        getattr(translations, write)(*arguments)
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before


@pytest.mark.parametrize(
    ("told", "options", "code", "said"),
    [
        ([], ["--check", "--release"], 0, ""),
        (["2 texts wait"], ["--check"], 0, "warning: 2 texts wait\n"),
        (["2 texts wait"], ["--check", "--release"], 1, "error: 2 texts wait\n"),
    ],
)
def test_what_waits_is_a_warning_and_for_a_release_an_error(
    told: list[str],
    options: list[str],
    code: int,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(translations, "all_waiting", lambda: told)
    assert translations.main(options) == code
    assert capsys.readouterr().out == said


def test_a_conversion_loses_no_translation() -> None:
    catalogue = shipped(translations.TRANSLATIONS / "kvdesk_zh_CN.po")
    assert len(translations.texts(catalogue)) - len(translations.unfinished(catalogue)) > FEWEST


@pytest.mark.parametrize("po", SHIPPED, ids=lambda po: po.stem)
def test_placeholders_are_those_of_the_text(po: Path) -> None:
    def placeholders(text: str) -> list[str]:
        return sorted(re.findall(r"\{[^{}]*\}|%n", text))

    wrong = [(text, form) for text, form in _translated(po) if placeholders(form) != placeholders(text)]
    assert not wrong


@pytest.mark.parametrize("po", SHIPPED, ids=lambda po: po.stem)
def test_a_shipped_catalogue_is_well_formed(po: Path, tmp_path: Path) -> None:
    catalogue = shipped(po)
    assert translations.texts(catalogue)
    assert not catalogue.obsolete
    made = tmp_path / po.name
    translations.save(catalogue, made)
    assert made.read_bytes() == po.read_bytes()
    translations.release(made)
    assert made.with_suffix(".mo").read_bytes() == po.with_suffix(".mo").read_bytes(), (
        "run `make translations`, and commit both"
    )


def _translate(catalogue: Catalog, translated: dict[str, str]) -> None:
    for message in translations.texts(catalogue):
        chinese = translated[translations.source(message)]
        message.string = chinese if isinstance(message.id, str) else (chinese,)


def _translated(po: Path) -> list[tuple[str, str]]:
    """Each text with each form of its translation."""
    return [
        (translations.source(message), form)
        for message in translations.texts(shipped(po))
        for form in translations.forms(message)
        if form
    ]


def test_simplified_chinese_is_offered_and_taken_by_a_chinese_system() -> None:
    there = catalogues()
    assert list(there) == ["zh_CN"]
    for wanted in (["zh-Hans-CN", "zh-CN"], ["zh_SG"], ["fr", "zh_CN"]):
        assert best(wanted, there) == "zh_CN"
    translate = catalogue(there["zh_CN"].read_bytes())
    assert (translate("New chat", "", 1), translate("1 page", "%n pages", 2)) == ("新对话", "%n 页")


@pytest.mark.parametrize("po", SHIPPED, ids=lambda po: po.stem)
def test_nothing_is_left_in_english_by_oversight(po: Path) -> None:
    """A text that is the same in both languages is a name, a unit, or the field's own word."""
    same = {text for text, form in _translated(po) if form == text}
    words = {text for text in same if len(re.findall(r"[A-Za-z]{2,}", re.sub(r"\{[^{}]*\}", "", text))) > 1}
    assert words <= SAME


@pytest.mark.parametrize("po", SHIPPED, ids=lambda po: po.stem)
def test_chinese_sentences_have_chinese_punctuation(po: Path) -> None:
    pattern = r"[\u4e00-\u9fff][,;:?!](?=[\s\u4e00-\u9fff]|$)|[\u4e00-\u9fff]\.(?=\s|$)"
    wrong = [form for _text, form in _translated(po) if re.search(pattern, form)]
    assert not wrong
