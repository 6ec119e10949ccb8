"""The catalogues: from a text in the source to what is shown; what is in those that ship."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import translations
from PySide6.QtWidgets import QApplication

from kvdesk.app.language import install_language
from kvdesk.paths import catalogues
from kvdesk.translation import best, catalogue, tr
from tests.places import ROOT

SHIPPED = sorted(translations.TRANSLATIONS.glob("kvdesk_*.ts"))
SAME = frozenset(
    {
        *("Attention sinks", "attention sinks", "Flash attention", "flash attention", "Top n-sigma"),
        *("n_seq_max", "seq_id {n}"),
        *("JSON schema", "JSON (*.json)", "Markdown (*.md)"),
    }
)
"""Names of llama.cpp and of formats."""
_EMPTY = '<?xml version="1.0" encoding="utf-8"?><!DOCTYPE TS><TS version="2.1" language="zh_CN"></TS>'
_SOURCE = """
TITLE = marked("Context size")
def texts(n):
    return tr("New " "chat"), tr("%n tokens", n), tr("{n} of {most}").format(n=n, most=2)
"""
_CHINESE = {
    "Context size": "上下文长度",
    "New chat": "新对话",
    "%n tokens": "%n 个 token",
    "{n} of {most}": "{n}/{most}",
}


@pytest.fixture
def _english_again(qapp: QApplication) -> Iterator[None]:
    yield
    install_language(qapp, "en")


@pytest.mark.usefixtures("_english_again")
def test_a_text_of_the_source_is_shown_in_chinese(tmp_path: Path, qapp: QApplication) -> None:
    (tmp_path / "texts.py").write_text(_SOURCE, encoding="utf-8")
    ts = tmp_path / "kvdesk_zh_CN.ts"
    ts.write_text(_EMPTY, encoding="utf-8")
    translations.update(ts, tmp_path)
    assert {entry.source for entry in translations.entries(ts)} == set(_CHINESE)
    assert len(translations.unfinished(ts)) == 4

    _translate(ts, _CHINESE)
    translations.update(ts, tmp_path)
    translations.release(ts)
    assert install_language(qapp, "zh_CN", tmp_path) == "zh_CN"
    assert (tr("New chat"), tr("%n tokens", 3)) == ("新对话", "3 个 token")
    assert qapp.translate("QPlatformTheme", "Cancel") == "取消"


@pytest.mark.usefixtures("_english_again")
def test_a_text_that_waits_is_shown_in_english_until_it_is_translated(tmp_path: Path, qapp: QApplication) -> None:
    source, ts = tmp_path / "texts.py", tmp_path / "kvdesk_zh_CN.ts"
    source.write_text(_SOURCE, encoding="utf-8")
    ts.write_text(_EMPTY, encoding="utf-8")
    translations.update(ts, tmp_path)
    _translate(ts, _CHINESE)
    source.write_text(_SOURCE.replace('"New " "chat"', '"A new chat"'), encoding="utf-8")
    committed = ts.read_bytes()
    assert translations.waiting(ts, tmp_path) == ["A new chat"]
    assert ts.read_bytes() == committed, "asking changes nothing"

    translations.update(ts, tmp_path)
    translations.release(ts)
    assert translations.waiting(ts, tmp_path) == ["A new chat"]
    assert install_language(qapp, "zh_CN", tmp_path) == "zh_CN"
    assert (tr("A new chat"), tr("%n tokens", 3)) == ("A new chat", "3 个 token")


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


def test_what_waits_is_shown_at_the_end_of_the_run(record_property: Callable[[str, object], None]) -> None:
    """A contributor need not write Chinese: this and `make lint` tell what waits, a release needs it."""
    for ts in SHIPPED:
        texts = translations.waiting(ts, ROOT / "kvdesk")
        if texts:
            record_property("waits", f"{ts.stem}: {len(texts)} texts, see `packaging/translations.py --check`")
        assert all(texts)


@pytest.mark.parametrize("ts", SHIPPED, ids=lambda ts: ts.stem)
def test_placeholders_are_those_of_the_text(ts: Path) -> None:
    def placeholders(text: str) -> list[str]:
        return sorted(re.findall(r"\{[^{}]*\}|%n", text))

    wrong = [
        (entry.source, translation)
        for entry in translations.entries(ts)
        for translation in entry.translations
        if entry.finished and placeholders(translation) != placeholders(entry.source)
    ]
    assert not wrong


@pytest.mark.parametrize("ts", SHIPPED, ids=lambda ts: ts.stem)
def test_a_shipped_catalogue_is_well_formed(ts: Path, tmp_path: Path) -> None:
    shipped = translations.entries(ts)
    sources = [entry.source for entry in shipped]
    assert shipped
    assert len(set(sources)) == len(sources)
    assert not re.search(r'type="(obsolete|vanished)"', ts.read_text(encoding="utf-8"))
    made = tmp_path / ts.name
    made.write_bytes(ts.read_bytes())
    translations.release(made)
    qm = ts.with_suffix(".qm")
    assert qm.read_bytes() == made.with_suffix(".qm").read_bytes(), "run `make translations`, and commit both"


def _translate(ts: Path, translated: dict[str, str]) -> None:
    text = ts.read_text(encoding="utf-8")
    for source, chinese in translated.items():
        pattern = rf"(<source>{re.escape(source)}</source>\s*)<translation type=\"unfinished\"></translation>"
        text = re.sub(pattern, rf"\1<translation>{chinese}</translation>", text)
    ts.write_text(text, encoding="utf-8")


def test_simplified_chinese_is_offered_and_taken_by_a_chinese_system() -> None:
    there = catalogues()
    assert list(there) == ["zh_CN"]
    for wanted in (["zh-Hans-CN", "zh-CN"], ["zh_SG"], ["fr", "zh_CN"]):
        assert best(wanted, there) == "zh_CN"
    translate = catalogue(there["zh_CN"].read_bytes())
    assert (translate("New chat", -1), translate("%n files", 2)) == ("新对话", "2 个文件")


@pytest.mark.parametrize("ts", SHIPPED, ids=lambda ts: ts.stem)
def test_nothing_is_left_in_english_by_oversight(ts: Path) -> None:
    """A text that is the same in both languages is a name, a unit, or the field's own word."""
    same = {entry.source for entry in translations.entries(ts) if entry.source in entry.translations}
    words = {text for text in same if len(re.findall(r"[A-Za-z]{2,}", re.sub(r"\{[^{}]*\}", "", text))) > 1}
    assert words <= SAME


@pytest.mark.parametrize("ts", SHIPPED, ids=lambda ts: ts.stem)
def test_chinese_sentences_have_chinese_punctuation(ts: Path) -> None:
    wrong = [
        text
        for entry in translations.entries(ts)
        for text in entry.translations
        if re.search(r"[\u4e00-\u9fff][,;:?!](?=[\s\u4e00-\u9fff]|$)|[\u4e00-\u9fff]\.(?=\s|$)", text)
    ]
    assert not wrong
