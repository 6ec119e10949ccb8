"""Presets in the settings: chosen, kept, renamed, deleted, imported and exported."""

from pathlib import Path
from typing import Any

import pytest
from PySide6.QtWidgets import QFileDialog, QInputDialog, QSpinBox
from pytestqt.qtbot import QtBot

from kvdesk.session import Store
from kvdesk.settings import Preset, Sampling, Settings
from kvdesk.settings import preset as presets
from kvdesk.ui.settings.page import SettingsPage
from kvdesk.ui.widgets.style.theme import Theme
from tests.ui.recording import kit_of

MINE = Preset(name="Mine", system_prompt="Be brief.", sampling=Sampling(top_k=7))


@pytest.fixture
def store() -> Store:
    return Store(Settings(presets=(MINE,)))


@pytest.fixture
def page(theme: Theme, store: Store, qtbot: QtBot) -> SettingsPage:
    page = SettingsPage(kit_of(theme, store))
    qtbot.addWidget(page)
    page.show()
    return page


def choose(page: SettingsPage, name: str) -> None:
    choice = page.presets.choice
    choice.setCurrentText(name)
    choice.activated.emit(choice.findText(name))


def test_a_preset_counts_at_once(page: SettingsPage, store: Store) -> None:
    assert page.presets.choice.currentText() == "Default"
    assert not page.presets._rename.isEnabled()
    assert page.presets._rename.toolTip() == "Only presets that you saved can be renamed or deleted."
    choose(page, "Mine")
    assert page.presets.choice.currentText() == "Mine"
    assert store.settings.current == Settings(presets=(MINE,), sampling=MINE.sampling, system_prompt="Be brief.")
    choose(page, "Precise")
    assert page._prompt.toPlainText() == "Be brief.", "it has no system prompt of its own"
    top_k = page.field("sampling", "top_k")
    assert isinstance(top_k, QSpinBox)
    top_k.setValue(5)
    assert page.presets.choice.currentText() == "Own values"
    assert page.presets.current is None


def test_the_lines_stay_where_none_changed(page: SettingsPage, store: Store) -> None:
    cleared: list[int] = []
    page.presets.choice.model().rowsRemoved.connect(lambda *_: cleared.append(1))
    page.presets.show_values((MINE,), store.settings.current.sampling, store.settings.current.system_prompt)
    assert cleared == []


def test_what_is_shown_is_kept_at_once(page: SettingsPage, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    top_k = page.field("sampling", "top_k")
    assert isinstance(top_k, QSpinBox)
    top_k.setValue(5)
    monkeypatch.setattr(QInputDialog, "getText", lambda *_args, **_more: (" Five ", True))
    page.presets.save_button.click()
    five = Preset(name="Five", sampling=Sampling(top_k=5))
    assert store.settings.current.presets == (MINE, five)
    assert page.presets.choice.currentText() == "Five"
    monkeypatch.setattr(QInputDialog, "getText", lambda *_args, **_more: ("Default", True))
    page.presets.save_button.click()
    assert "built-in" in page.presets.sentence.text()
    assert store.settings.current.presets == (MINE, five)


def test_own_presets_are_renamed_and_deleted_built_in_ones_not(
    page: SettingsPage, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    bar = page.presets
    assert not bar._rename.isEnabled()
    assert not bar._delete.isEnabled()
    choose(page, "Mine")
    monkeypatch.setattr(QInputDialog, "getText", lambda *_args, **_more: ("Yours", True))
    bar._rename.trigger()
    assert [p.name for p in store.settings.current.presets] == ["Yours"]
    assert bar.choice.currentText() == "Yours"
    bar._delete.trigger()
    assert store.settings.current.presets == ()
    assert bar.choice.currentText() == "Own values"
    assert "Yours" in bar.sentence.text()


def test_a_preset_goes_to_a_file_and_comes_back(
    page: SettingsPage, store: Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "Mine.json"
    choose(page, "Mine")
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_args: (str(file), ""))
    page.presets._export.trigger()
    assert presets.imported(file.read_bytes()) == MINE
    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *_args: (str(file), ""))
    page.presets._import.trigger()
    assert [p.name for p in store.settings.current.presets] == ["Mine", "Mine (2)"]
    file.write_text("{}")
    page.presets._import.trigger()
    assert page.presets.sentence.text() == "This file is not a preset of kvdesk."
    file.unlink()
    page.presets._import.trigger()
    assert "cannot be read" in page.presets.sentence.text()
    page.presets.export_file(tmp_path, MINE)
    assert "cannot be saved" in page.presets.sentence.text()
    assert [p.name for p in store.settings.current.presets] == ["Mine", "Mine (2)"]


def test_settings_are_searched(page: SettingsPage) -> None:
    page.search.setText("mirostat rate")
    assert page._rows._fields["sampling", "mirostat_eta"].isVisible()
    assert not page._prompt.isVisible()
    assert not page.presets.isVisible()
    page.search.setText("zebra")
    assert page._nothing.isVisible()
    page.search.clear()
    page.sections.setCurrentRow(1)
    assert page._prompt.isVisible()
    assert not page._nothing.isVisible()


def test_a_text_that_means_nothing_does_not_count(page: SettingsPage, store: Store) -> None:
    biases: Any = page.field("sampling", "logit_bias")
    biases.edit.setPlainText("7-1")
    page.apply_now()
    assert store.settings.current.sampling.logit_bias == ((7, -1.0),)
    biases.edit.setPlainText("seven")
    page.apply_now()
    assert store.settings.current.sampling.logit_bias == ((7, -1.0),)
