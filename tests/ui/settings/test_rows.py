"""Every field has a control that shows its value and gives it back; rows are found, folded and reset."""

from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QSpinBox
from pytestqt.qtbot import QtBot

from kvdesk import translation
from kvdesk.settings import CachePolicy, CacheType, ContextSettings, Mirostat, SamplerName, Sampling
from kvdesk.ui.settings.groups import groups_of
from kvdesk.ui.settings.rows import SettingRow, SettingRows
from kvdesk.ui.settings.sampler_order import SamplerOrder
from kvdesk.ui.settings.text_field import TextField
from kvdesk.ui.widgets.style.theme import Theme

OTHER = Sampling(
    temperature=0.125,
    top_p=0.9999,
    mirostat=Mirostat.V2,
    presence_penalty=-1.5,
    dry_sequence_breakers=("\n", "\\n", '"', "\t"),
    logit_bias=((7, -1.25), (' "a"\n', 100.0)),
    stop=("\n\n", "User: "),
    grammar='root ::= "a"',
    json_schema='{"type": "object"}',
    samplers=(SamplerName.MIN_P, SamplerName.TEMPERATURE),
)


@pytest.fixture
def rows(theme: Theme, qtbot: QtBot) -> SettingRows:
    rows = SettingRows(theme)
    qtbot.addWidget(rows)
    rows.add_heading("Sampling")
    rows.add_table("sampling", Sampling)
    rows.add_heading("Context")
    rows.add_table("context", ContextSettings)
    rows.show_values("context", ContextSettings())
    rows.show_values("sampling", Sampling())
    rows.show()
    return rows


def opened(rows: SettingRows, table: str, name: str) -> SettingRow:
    """A row in sight: its group is opened."""
    row = rows._fields[table, name]
    for group in (group for section in rows._sections for group in section.groups if row in group.rows):
        if group.box is not None:
            group.box.button.setChecked(True)
    return row


def text_field(rows: SettingRows, name: str) -> TextField:
    field = rows.field("sampling", name)
    assert isinstance(field, TextField)
    return field


def test_every_value_is_shown_and_given_back_exactly(rows: SettingRows, record: Any) -> None:
    edits = record(rows.edited)
    for sampling in (OTHER, Sampling()):
        rows.show_values("sampling", sampling)
        assert Sampling(**rows.values("sampling")) == sampling
    assert not edits, "to show is no edit"
    assert not rows.problem


@pytest.mark.parametrize("model", [Sampling, CachePolicy, ContextSettings])
def test_every_field_is_in_one_group(model: Any) -> None:
    names = [name for _, names in groups_of(model) for name in names]
    assert sorted(names) == sorted(model.model_fields)


def test_a_few_letters_find_a_setting_also_in_a_folded_group(rows: SettingRows) -> None:
    threshold, temperature = rows._fields["sampling", "xtc_threshold"], rows._fields["sampling", "temperature"]
    assert not threshold.isVisible()
    assert temperature.isVisible()
    assert rows.filter("XTC thresh") == 1
    assert threshold.isVisible()
    assert not temperature.isVisible()
    assert opened(rows, "sampling", "xtc_threshold").isVisible()
    assert rows.filter("typical_p") == 1, "llama.cpp's name"
    assert rows.filter("unpredictable zebra") == 0
    assert rows.filter("") == len(Sampling.model_fields) + len(ContextSettings.model_fields)
    assert not threshold.isVisible()
    assert temperature.isVisible()


def test_a_setting_goes_back_to_its_default_alone(rows: SettingRows, record: Any) -> None:
    top_k, min_p = rows._fields["sampling", "top_k"], rows._fields["sampling", "min_p"]
    assert isinstance(top_k.control, QSpinBox)
    assert not top_k.reset_button.isVisible()
    top_k.control.setValue(7)
    rows.show_values("sampling", Sampling(top_k=7, min_p=0.5, dry_base=2.0))
    assert top_k.reset_button.isVisible()
    assert top_k.reset_button.accessibleName() == "Reset Top K"
    edits = record(rows.edited)
    top_k.reset_button.click()
    assert rows.values("sampling")["top_k"] == 40
    assert len(edits) == 1
    assert not top_k.reset_button.isVisible()
    assert min_p.reset_button.isVisible()


def test_a_folded_group_tells_how_much_in_it_is_changed(rows: SettingRows) -> None:
    rows.show_values("sampling", Sampling(dry_multiplier=0.8, dry_base=2.0))
    row = opened(rows, "sampling", "dry_base")
    assert row.isVisible()
    titles = [group.box.button.text() for s in rows._sections for group in s.groups if group.box is not None]
    assert "DRY: no repeated sequences · 2 changed" in titles
    assert sum("changed" in title for title in titles) == 1


def test_a_text_that_means_nothing_is_a_problem_and_the_last_value_stays(rows: SettingRows, qtbot: QtBot) -> None:
    opened(rows, "sampling", "logit_bias")
    biases = text_field(rows, "logit_bias")
    biases.edit.setPlainText("7-1")
    biases.edit.setPlainText("7-1\nx")
    assert rows.values("sampling")["logit_bias"] == ((7, -1.0),)
    assert rows.problem.startswith("Line 2 of the logit bias is not")
    qtbot.waitUntil(lambda: biases._sentence.text() == rows.problem)
    biases.edit.setPlainText("7-2")
    assert rows.values("sampling")["logit_bias"] == ((7, -2.0),)
    assert not rows.problem


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("grammar", "root ::= root", "begins with itself"),
        ("json_schema", "[]", "not an object"),
        ("json_schema", "{", "not JSON"),
    ],
)
def test_what_the_engine_would_refuse_is_said_while_it_is_written(
    rows: SettingRows, qtbot: QtBot, name: str, text: str, sentence: str
) -> None:
    field = text_field(rows, name)
    field.edit.setPlainText(text)
    qtbot.waitUntil(lambda: sentence in field._sentence.text())
    assert field.edit.accessibleDescription() == field._sentence.text()
    assert rows.values("sampling")[name] == text
    field.edit.setPlainText("")
    qtbot.waitUntil(lambda: field._sentence.text() == "")


def test_a_text_from_the_clipboard_may_hold_anything(rows: SettingRows) -> None:
    grammar = text_field(rows, "grammar")
    grammar.edit.setPlainText("x" * 100_001)
    assert "100,000 characters" in rows.problem
    assert Sampling(**rows.values("sampling")).grammar == ""


@pytest.mark.usefixtures("styled")
def test_controls_grow_with_the_text(rows: SettingRows, theme: Theme) -> None:
    names = ("top_k", "grammar", "samplers")
    before = [opened(rows, "sampling", name).control.sizeHint() for name in names]
    width = rows.field("sampling", "top_k").width()
    theme.set_size(150)
    try:
        after = [rows._fields["sampling", name].control.sizeHint() for name in names]
        assert all(new.height() > old.height() * 1.3 for old, new in zip(before, after, strict=True))
        assert rows.field("sampling", "top_k").minimumWidth() == pytest.approx(width * 1.5, abs=8)
    finally:
        theme.set_size(100)


def test_samplers_are_moved_and_rest_by_keyboard(rows: SettingRows, record: Any) -> None:
    opened(rows, "sampling", "samplers")
    order = rows.field("sampling", "samplers")
    assert isinstance(order, SamplerOrder)
    edits = record(rows.edited)
    order.list.setCurrentRow(1)
    QTest.keyClick(order.list, Qt.Key.Key_Up, Qt.KeyboardModifier.AltModifier)
    assert order.value()[:2] == (SamplerName.DRY, SamplerName.PENALTIES)
    QTest.keyClick(order.list, Qt.Key.Key_Up, Qt.KeyboardModifier.AltModifier)
    QTest.keyClick(order.list, Qt.Key.Key_Space)
    assert SamplerName.DRY not in order.value()
    order.down.click()
    assert len(edits) == 3
    assert len(order.value()) == len(SamplerName) - 1
    order.set_value((SamplerName.XTC,))
    assert order.value() == (SamplerName.XTC,)
    assert order.list.count() == len(SamplerName)


def test_titles_and_descriptions_are_in_the_person_s_language(
    theme: Theme, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(translation, "_translate", lambda text, *_: {"Top K": "Die besten K"}.get(text, text))
    rows = SettingRows(theme)
    qtbot.addWidget(rows)
    rows.add_table("sampling", Sampling)
    assert rows.field("sampling", "top_k").accessibleName() == "Die besten K"
    assert rows.filter("besten") == 1


def test_a_choice_gives_back_what_the_engine_takes(rows: SettingRows) -> None:
    """Not its text alone, which Qt makes of it: the preview of a context failed for it."""
    values = rows.values("context")
    assert isinstance(values["type_k"], CacheType)
    assert isinstance(rows.values("sampling")["mirostat"], Mirostat)
