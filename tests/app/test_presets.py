"""From the settings dialog to the next answer and the file: presets and samplers, by keyboard and mouse."""

from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QInputDialog
from pytestqt.qtbot import QtBot

from kvdesk import paths
from kvdesk.settings import Preset, Sampling
from kvdesk.settings import preset as presets
from kvdesk.store.settings_file import load_settings
from tests.app.conftest import Rig

LEFT = Qt.MouseButton.LeftButton


def test_a_preset_reaches_the_next_answer_and_the_file(
    rig: Rig, qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KVDESK_HOME", str(tmp_path))
    rig.window.show()
    page = rig.window.rooms.show_settings()
    qtbot.waitExposed(page)
    QTest.keyClick(page.presets.choice, Qt.Key.Key_Down)
    precise = presets.built_in()[1]
    assert page.presets.choice.currentText() == precise.name == "Precise"
    top_n_sigma = page.field("sampling", "top_n_sigma")
    QTest.keyClicks(page.search, "n-sigma standard")
    assert top_n_sigma.isVisible()
    top_n_sigma.setFocus()
    QTest.keyClick(top_n_sigma, Qt.Key.Key_A, Qt.KeyboardModifier.ControlModifier)
    QTest.keyClicks(top_n_sigma, "1.5")
    QTest.keyClick(page.search, Qt.Key.Key_A, Qt.KeyboardModifier.ControlModifier)
    QTest.keyClick(page.search, Qt.Key.Key_Delete)
    monkeypatch.setattr(QInputDialog, "getText", lambda *_args, **_more: ("Mine", True))
    QTest.mouseClick(page.presets.save_button, LEFT)
    QTest.mouseClick(page.bar.apply, LEFT)
    expected = precise.sampling.model_copy(update={"top_n_sigma": 1.5})
    assert rig.controller.settings.sampling == expected
    assert rig.controller.selected is not None
    rig.window.commands.conversations.send(rig.controller.selected, "Hello")
    assert rig.worker.asked[-1].sampling == expected
    saved, sentence = load_settings(paths.settings_file())
    assert (saved.sampling, saved.presets, sentence) == (expected, (Preset(name="Mine", sampling=expected),), "")
    assert page.presets.choice.currentText() == "Mine"
    page.presets.choice.setFocus()
    QTest.keyClick(page.presets.choice, Qt.Key.Key_Home)
    QTest.mouseClick(page.bar.apply, LEFT)
    assert rig.controller.settings.sampling == Sampling()
