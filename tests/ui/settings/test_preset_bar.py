"""Presets in the settings: chosen, kept, renamed, deleted, imported and exported."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from PySide6.QtWidgets import QFileDialog, QInputDialog, QSpinBox
from pytestqt.qtbot import QtBot

from kvdesk.session import SettingsStore
from kvdesk.settings import Preset, Sampling, Settings
from kvdesk.settings import preset as presets
from kvdesk.ui.settings.panel import SettingsPanel
from kvdesk.ui.widgets.theme import Theme

MINE = Preset(name="Mine", system_prompt="Be brief.", sampling=Sampling(top_k=7))


@pytest.fixture
def store() -> SettingsStore:
    return SettingsStore(Settings(presets=(MINE,)))


@pytest.fixture
def panel(theme: Theme, store: SettingsStore, qtbot: QtBot) -> SettingsPanel:
    panel = SettingsPanel(theme, store)
    qtbot.addWidget(panel)
    panel.show()
    return panel


def choose(panel: SettingsPanel, name: str) -> None:
    choice = panel.presets.choice
    choice.setCurrentText(name)
    choice.activated.emit(choice.findText(name))


def test_a_preset_counts_at_once(panel: SettingsPanel, store: SettingsStore) -> None:
    assert panel.presets.choice.currentText() == "Default"
    choose(panel, "Mine")
    assert panel.presets.choice.currentText() == "Mine"
    assert store.current == Settings(presets=(MINE,), sampling=MINE.sampling, system_prompt="Be brief.")
    choose(panel, "Precise")
    assert panel._prompt.toPlainText() == "Be brief.", "it has no system prompt of its own"
    top_k = panel.field("sampling", "top_k")
    assert isinstance(top_k, QSpinBox)
    top_k.setValue(5)
    assert panel.presets.choice.currentText() == "Own values"
    assert panel.presets.current is None


def test_what_is_shown_is_kept_at_once(
    panel: SettingsPanel, store: SettingsStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    top_k = panel.field("sampling", "top_k")
    assert isinstance(top_k, QSpinBox)
    top_k.setValue(5)
    monkeypatch.setattr(QInputDialog, "getText", lambda *_args, **_more: (" Five ", True))
    panel.presets.save_button.click()
    five = Preset(name="Five", sampling=Sampling(top_k=5))
    assert store.current.presets == (MINE, five)
    assert panel.presets.choice.currentText() == "Five"
    monkeypatch.setattr(QInputDialog, "getText", lambda *_args, **_more: ("Default", True))
    panel.presets.save_button.click()
    assert "built-in" in panel.presets.sentence.text()
    assert store.current.presets == (MINE, five)


def test_own_presets_are_renamed_and_deleted_built_in_ones_not(
    panel: SettingsPanel, store: SettingsStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    bar = panel.presets
    assert not bar._rename.isEnabled()
    assert not bar._delete.isEnabled()
    choose(panel, "Mine")
    monkeypatch.setattr(QInputDialog, "getText", lambda *_args, **_more: ("Yours", True))
    bar._rename.trigger()
    assert [p.name for p in store.current.presets] == ["Yours"]
    assert bar.choice.currentText() == "Yours"
    bar._delete.trigger()
    assert store.current.presets == ()
    assert bar.choice.currentText() == "Own values"
    assert "Yours" in bar.sentence.text()


def test_a_preset_goes_to_a_file_and_comes_back(
    panel: SettingsPanel, store: SettingsStore, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "Mine.json"
    choose(panel, "Mine")
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_args: (str(file), ""))
    panel.presets._export.trigger()
    assert presets.imported(file.read_bytes()) == MINE
    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *_args: (str(file), ""))
    panel.presets._import.trigger()
    assert [p.name for p in store.current.presets] == ["Mine", "Mine (2)"]
    file.write_text("{}")
    panel.presets._import.trigger()
    assert panel.presets.sentence.text() == "This file is not a preset of kvdesk."
    file.unlink()
    panel.presets._import.trigger()
    assert "cannot be read" in panel.presets.sentence.text()
    panel.presets.export_file(tmp_path, MINE)
    assert "cannot be saved" in panel.presets.sentence.text()
    assert [p.name for p in store.current.presets] == ["Mine", "Mine (2)"]


def test_settings_are_searched(panel: SettingsPanel) -> None:
    panel.search.setText("mirostat rate")
    assert panel._rows.row("sampling", "mirostat_eta").isVisible()
    assert not panel._prompt.isVisible()
    assert not panel.presets.isVisible()
    panel.search.setText("zebra")
    assert panel._nothing.isVisible()
    panel.search.clear()
    panel.sections.setCurrentRow(1)
    assert panel._prompt.isVisible()
    assert not panel._nothing.isVisible()


def test_a_text_that_means_nothing_does_not_count(panel: SettingsPanel, store: SettingsStore) -> None:
    biases: Any = panel.field("sampling", "logit_bias")
    biases.edit.setPlainText("7-1")
    panel.apply_now()
    assert store.current.sampling.logit_bias == ((7, -1.0),)
    biases.edit.setPlainText("seven")
    panel.apply_now()
    assert store.current.sampling.logit_bias == ((7, -1.0),)
