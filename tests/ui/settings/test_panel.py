from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import QLocale, Qt
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QDoubleSpinBox,
    QLabel,
    QPlainTextEdit,
    QPushButton,
    QSpinBox,
    QStyle,
    QStyleOptionComboBox,
)
from pytestqt.qtbot import QtBot

from kvdesk.protocol.chat import BackendReady
from kvdesk.protocol.features import Feature
from kvdesk.session import SettingsStore
from kvdesk.settings import CachePolicy, CacheType, ContextSettings, Sampling, Settings, ThemeChoice, llama_name
from kvdesk.ui.settings import panel as panel_module
from kvdesk.ui.settings.panel import SettingsPanel
from kvdesk.ui.settings.seed_field import SeedField
from kvdesk.ui.shell.main_window import MainWindow
from kvdesk.ui.widgets.controls import FRAME, Choice
from kvdesk.ui.widgets.number_fields import RealField
from kvdesk.ui.widgets.theme import Theme
from kvdesk.viewmodel.cache_state import CacheState


@pytest.fixture
def store() -> SettingsStore:
    return SettingsStore(Settings())


@pytest.fixture
def panel(theme: Theme, store: SettingsStore, qtbot: QtBot) -> SettingsPanel:
    panel = SettingsPanel(theme, store)
    qtbot.addWidget(panel)
    return panel


def test_every_setting_has_a_control_that_keeps_its_value(
    panel: SettingsPanel, store: SettingsStore, qtbot: QtBot
) -> None:
    settings = Settings(
        sampling=Sampling(temperature=0.25, top_k=7, seed=4_000_000_000),
        context=ContextSettings(n_ctx=2048, type_v=CacheType.Q8_0, flash_attn=False, n_threads=3),
        system_prompt="Be brief.",
    )
    store.change(**dict(settings))
    panel.show_settings(Settings.model_fields)
    assert not panel.apply_button.isEnabled()
    top_p = panel.field("sampling", "top_p")
    assert isinstance(top_p, QDoubleSpinBox)
    top_p.setValue(0.5)
    check = panel.field("context", "kv_unified")
    assert isinstance(check, QCheckBox)
    check.setChecked(not check.isChecked())
    with qtbot.waitSignal(panel.rebuild_clicked) as sent:
        panel.apply_button.click()
    assert sent.args[0] == settings.context.model_copy(update={"kv_unified": False})
    sampling = settings.sampling.model_copy(update={"top_p": 0.5})
    assert store.current == settings.model_copy(update={"sampling": sampling}), "the context is kept once it is made"


def test_a_value_with_more_digits_than_its_field_shows_is_not_edited(
    panel: SettingsPanel, store: SettingsStore
) -> None:
    store.change(sampling=Sampling(top_p=0.123456789))
    panel.show_settings({"sampling"})
    assert not panel.apply_button.isEnabled()
    top_k = panel.field("sampling", "top_k")
    assert isinstance(top_k, QSpinBox)
    top_k.setValue(7)
    panel.apply_button.click()
    assert store.current.sampling == Sampling(top_p=0.123456789, top_k=7)


def test_ranges_are_those_of_the_table(panel: SettingsPanel) -> None:
    n_ctx, temperature = panel.field("context", "n_ctx"), panel.field("sampling", "temperature")
    assert isinstance(n_ctx, QSpinBox)
    assert isinstance(temperature, QDoubleSpinBox)
    assert (n_ctx.minimum(), n_ctx.maximum()) == (0, 1 << 20)
    assert (temperature.minimum(), temperature.maximum()) == (0.0, 5.0)


def test_a_seed_is_random_or_a_number(panel: SettingsPanel, store: SettingsStore) -> None:
    panel.show()
    seed = panel.field("sampling", "seed")
    assert isinstance(seed, SeedField)
    assert seed.random.isChecked()
    assert not seed.number.isVisible()
    seed.random.click()
    assert seed.number.isVisible()
    seed.number.setValue(12)
    panel.apply_button.click()
    assert store.current.sampling.seed == 12
    seed.random.click()
    panel.apply_button.click()
    assert store.current.sampling.seed == Sampling().seed == 0xFFFFFFFF  # LLAMA_DEFAULT_SEED, llama.h


def test_settings_have_plain_titles_and_llama_cpps_names_beside_them(panel: SettingsPanel) -> None:
    shown = [part.text() for part in panel.findChildren(QLabel)]
    for table in (ContextSettings, Sampling, CachePolicy):
        for name, info in table.model_fields.items():
            assert info.title, name
            assert info.title in shown
            assert name not in shown or name == llama_name(info)
    assert shown[shown.index("Temperature") + 1] == "temp"
    assert shown[shown.index("Context size") + 1] == "n_ctx"
    assert shown[shown.index("Compact automatically") + 1] == CachePolicy.model_fields["auto_compact"].description
    about = shown[shown.index("temp") + 1]
    assert about == f"{Sampling.model_fields['temperature'].description}. Default 0.8, from 0 to 5"


def test_settings_fit_their_screen_and_their_fields(panel: SettingsPanel) -> None:
    """The screen of these tests has 800 x 800 pixels."""
    panel.resize(900, 900)
    panel.show()
    screen = panel.screen().availableGeometry().size()
    assert panel.size().grownBy(FRAME).boundedTo(screen) == panel.size().grownBy(FRAME)
    for choice in panel.findChildren(QComboBox):
        style = QStyleOptionComboBox()
        choice.initStyleOption(style)
        part = QStyle.SubControl.SC_ComboBoxEditField
        field = choice.style().subControlRect(QStyle.ComplexControl.CC_ComboBox, style, part, choice)
        for i in range(choice.count()):
            assert choice.fontMetrics().horizontalAdvance(choice.itemText(i)) <= field.width(), choice.itemText(i)


def test_the_theme_that_follows_the_system_says_so(panel: SettingsPanel) -> None:
    combo = next(box for box in panel.findChildren(QComboBox) if box.accessibleName() == "Theme")
    assert combo.itemText(combo.findData(ThemeChoice.SYSTEM)) == "Follow the system"


def test_zoom_and_font_size_change_at_once(window: MainWindow) -> None:
    window.shown_settings.open()
    panel = window.findChild(SettingsPanel)
    assert isinstance(panel, SettingsPanel)
    boxes = {box.accessibleName(): box for box in panel.findChildren(QComboBox)}
    zoom, font = boxes["Zoom"], boxes["Font size"]
    assert (zoom.currentText(), font.currentText()) == ("100 %", "Follow the system")
    zoom.setCurrentIndex(zoom.findData(125))
    assert window.session.settings.current.zoom == 125
    font.setCurrentIndex(font.findData(20))
    assert (window.session.settings.current.zoom, window.session.settings.current.font_px) == (125, 20)
    assert window.theme.text.pixelSize() == 25
    window.shown_settings.zoom(0)
    assert (zoom.currentData(), font.currentData()) == (100, 20)


def test_the_theme_changes_at_once(window: MainWindow) -> None:
    window.shown_settings.open()
    panel = window.findChild(SettingsPanel)
    assert isinstance(panel, SettingsPanel)
    combo = next(box for box in panel.findChildren(QComboBox) if box.accessibleName() == "Theme")
    combo.setCurrentIndex(combo.findData(ThemeChoice.LIGHT))
    assert window.session.settings.current.theme is ThemeChoice.LIGHT
    assert not window.theme.colours.dark


def test_another_context_is_announced_as_a_rebuild(window: MainWindow, qtbot: QtBot) -> None:
    window.shown_settings.open()
    panel = window.findChild(SettingsPanel)
    assert isinstance(panel, SettingsPanel)
    n_ctx = panel.field("context", "n_ctx")
    assert isinstance(n_ctx, QSpinBox)
    n_ctx.setValue(512)
    with qtbot.waitSignal(window.rebuild_requested) as sent:
        panel.apply_button.click()
    assert sent.args[0].n_ctx == 512
    assert window.inspector.rebuild_button.text() == "Rebuilding…"


def test_what_is_edited_survives_a_change_of_theme_and_settings_from_elsewhere(window: MainWindow) -> None:
    window.shown_settings.open()
    panel = window.findChild(SettingsPanel)
    assert isinstance(panel, SettingsPanel)
    top_k, prompt = panel.field("sampling", "top_k"), panel.findChild(QPlainTextEdit)
    assert isinstance(top_k, QSpinBox)
    assert isinstance(prompt, QPlainTextEdit)
    top_k.setValue(7)
    prompt.setPlainText("Be brief.")
    combo = next(box for box in panel.findChildren(QComboBox) if box.accessibleName() == "Theme")
    combo.setCurrentIndex(combo.findData(ThemeChoice.LIGHT))
    window.shown_settings.toggle_sidebar()
    window.session.settings.change(**dict(Settings(theme=ThemeChoice.LIGHT, sampling=Sampling(top_k=50, top_p=0.5))))
    assert (top_k.value(), prompt.toPlainText()) == (7, "Be brief.")
    assert panel.field("sampling", "top_p").property("value") == 0.5, "what nobody edits follows"
    panel.apply_button.click()
    now = window.session.settings.current
    assert now.sampling == Sampling(top_k=7, top_p=0.5)
    assert (now.theme, now.system_prompt) == (ThemeChoice.LIGHT, "Be brief.")


def test_settings_that_the_engine_has_no_use_for_stay_as_they_are(theme: Theme, qtbot: QtBot) -> None:
    state = CacheState(features=frozenset({Feature.CHAT, Feature.CACHE_POLICY}))
    kept = Settings(context=ContextSettings(n_ctx=512), sampling=Sampling(top_k=7))
    store = SettingsStore(kept)
    panel = SettingsPanel(theme, store, None, state)
    qtbot.addWidget(panel)
    panel.show()
    assert panel._missing["context"].isVisible()
    assert not panel._missing["cache"].isVisible()
    panel.show_context()
    assert panel.ledger.isHidden(), "there is nothing to rebuild"
    next(b for b in panel.findChildren(QPushButton) if b.text() == "Restore defaults").click()
    panel.apply_button.click()
    assert store.current == kept.model_copy(update={"sampling": Sampling()})
    state.apply(BackendReady(frozenset(Feature)))
    panel.apply_event(BackendReady(frozenset(Feature)))
    assert panel.field("context", "n_ctx").isEnabled()
    assert not panel._missing["context"].isVisible()


def test_languages_are_offered_where_there_are_catalogues(
    theme: Theme, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    for found, shown in (({}, False), ({"zh_CN": Path("kvdesk_zh_CN.qm")}, True)):
        monkeypatch.setattr(panel_module, "catalogues", lambda found=found: found)
        store = SettingsStore(Settings(language="zh_CN"))
        panel = SettingsPanel(theme, store)
        qtbot.addWidget(panel)
        choice = next((c for c in panel.findChildren(Choice) if c.accessibleName() == "Language"), None)
        assert (choice is not None) == shown
    assert choice
    assert [choice.itemText(n) for n in range(choice.count())] == ["Follow the system", "English", "简体中文"]
    assert choice.currentData() == "zh_CN"
    choice.setCurrentIndex(1)
    assert store.current.language == "en"


@pytest.mark.parametrize("language", ["de_DE", "en_US", "ar_EG"])
def test_an_invalid_number_is_not_applied(panel: SettingsPanel, qtbot: QtBot, language: str) -> None:
    panel.show()
    temperature = panel.field("sampling", "temperature")
    assert isinstance(temperature, RealField)
    temperature.setLocale(QLocale(language))
    for text, is_valid in (("0.7", True), ("0.7.1", False), ("0,7", True), ("x", False), (",25", True)):
        temperature.selectAll()
        qtbot.keyClicks(temperature.lineEdit(), text)
        qtbot.keyClick(temperature.lineEdit(), Qt.Key.Key_Return)
        assert panel.apply_button.isEnabled() is is_valid
        said = [shown.text() for shown in panel.findChildren(QLabel) if shown.isVisible()]
        assert (f"“{text}” is not a number." in said) is not is_valid
    panel.apply_button.click()
    assert temperature.value() == 0.25
    assert not panel.apply_button.isEnabled()
    seed = panel.field("sampling", "seed")
    assert isinstance(seed, SeedField)
    seed.random.click()
    seed.number.selectAll()
    qtbot.keyClicks(seed.number.lineEdit(), "1,5")
    assert not panel.apply_button.isEnabled()
    seed.random.click()
    assert not panel.apply_button.isEnabled(), "nothing is changed"
    seed.random.click()
    seed.number.selectAll()
    qtbot.keyClicks(seed.number.lineEdit(), "4.000.000.000")
    assert panel.apply_button.isEnabled()
    assert seed.value() == 4_000_000_000
