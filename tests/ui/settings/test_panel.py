from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import QLocale, Qt
from PySide6.QtWidgets import (
    QApplication,
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
from kvdesk.ui.settings import appearance as appearance_module
from kvdesk.ui.settings.panel import SettingsPanel
from kvdesk.ui.settings.seed_field import SeedField
from kvdesk.ui.shell.main_window import MainWindow
from kvdesk.ui.widgets.controls import FRAME, Choice, ElidedLabel
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
    assert panel.bar.isHidden()
    top_p = panel.field("sampling", "top_p")
    assert isinstance(top_p, QDoubleSpinBox)
    top_p.setValue(0.5)
    check = panel.field("context", "kv_unified")
    assert isinstance(check, QCheckBox)
    check.setChecked(not check.isChecked())
    panel.apply_now()
    with qtbot.waitSignal(panel.rebuild_clicked) as sent:
        panel.apply_button.click()
    assert sent.args[0] == settings.context.model_copy(update={"kv_unified": False})
    sampling = settings.sampling.model_copy(update={"top_p": 0.5})
    assert store.current == settings.model_copy(update={"sampling": sampling}), "the context is kept once it is made"


def test_a_value_with_more_digits_than_its_field_shows_is_not_edited(
    panel: SettingsPanel, store: SettingsStore, qtbot: QtBot
) -> None:
    store.change(sampling=Sampling(top_p=0.123456789))
    panel.show_settings({"sampling"})
    top_k = panel.field("sampling", "top_k")
    assert isinstance(top_k, QSpinBox)
    top_k.setValue(7)
    qtbot.waitUntil(lambda: store.current.sampling == Sampling(top_p=0.123456789, top_k=7))


def test_ranges_are_those_of_the_table(panel: SettingsPanel) -> None:
    n_ctx, temperature = panel.field("context", "n_ctx"), panel.field("sampling", "temperature")
    assert isinstance(n_ctx, QSpinBox)
    assert isinstance(temperature, QDoubleSpinBox)
    assert (n_ctx.minimum(), n_ctx.maximum()) == (0, 1 << 20)
    assert (temperature.minimum(), temperature.maximum()) == (0.0, 5.0)


def test_a_seed_is_random_or_a_number(panel: SettingsPanel, store: SettingsStore) -> None:
    panel.show()
    panel.sections.setCurrentRow(2)
    seed = panel.field("sampling", "seed")
    assert isinstance(seed, SeedField)
    assert seed.random.isChecked()
    assert not seed.number.isVisible()
    seed.random.click()
    assert seed.number.isVisible()
    seed.number.setValue(12)
    panel.apply_now()
    assert store.current.sampling.seed == 12
    seed.random.click()
    panel.apply_now()
    assert store.current.sampling.seed == Sampling().seed == 0xFFFFFFFF  # LLAMA_DEFAULT_SEED, llama.h


def test_settings_have_plain_titles_and_llama_cpps_names_beside_them(panel: SettingsPanel) -> None:
    parts = panel.findChildren(QLabel)
    shown = [part.full_text if isinstance(part, ElidedLabel) else part.text() for part in parts]
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


def test_what_is_edited_survives_settings_from_elsewhere_and_counts_at_once(window: MainWindow, qtbot: QtBot) -> None:
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
    window.session.settings.change(sampling=Sampling(top_k=50, top_p=0.5))
    assert (top_k.value(), prompt.toPlainText()) == (7, "Be brief.")
    assert panel.field("sampling", "top_p").property("value") == 0.5, "what nobody edits follows"
    now = window.session.settings
    qtbot.waitUntil(lambda: now.current.sampling == Sampling(top_k=7, top_p=0.5))
    assert (now.current.theme, now.current.system_prompt) == (ThemeChoice.LIGHT, "Be brief.")


def test_what_is_typed_last_counts_though_one_leaves_at_once(panel: SettingsPanel, store: SettingsStore) -> None:
    panel.show()
    top_k = panel.field("sampling", "top_k")
    assert isinstance(top_k, QSpinBox)
    top_k.setValue(7)
    panel.reject()
    assert panel.isHidden()
    assert store.current.sampling.top_k == 7


def test_a_number_is_not_rewritten_while_it_is_typed(panel: SettingsPanel, store: SettingsStore, qtbot: QtBot) -> None:
    store.listen(panel.show_settings)
    panel.show()
    panel.sections.setCurrentRow(2)
    field = panel.field("sampling", "temperature")
    assert isinstance(field, RealField)
    field.selectAll()
    qtbot.keyClicks(field.lineEdit(), "1.")
    panel.apply_now()
    assert store.current.sampling.temperature == 1.0
    assert field.lineEdit().text() == "1."
    qtbot.keyClicks(field.lineEdit(), "5")
    panel.apply_now()
    assert store.current.sampling.temperature == 1.5


def test_esc_does_not_drop_a_context_that_is_edited(panel: SettingsPanel, store: SettingsStore, qtbot: QtBot) -> None:
    panel.show()
    panel.sections.setCurrentRow(4)
    n_ctx = panel.field("context", "n_ctx")
    assert isinstance(n_ctx, QSpinBox)
    assert panel.bar.isHidden()
    n_ctx.setValue(512)
    assert panel.bar.isVisible()
    assert "Context size: 4,096 → 512" in panel.bar.text
    for leave in (lambda: qtbot.keyClick(panel, Qt.Key.Key_Escape), panel.close):
        leave()
        assert panel.isVisible()
        assert n_ctx.value() == 512
    shown = [part.text() for part in panel.bar.findChildren(QLabel) if part.isVisible()]
    assert "Not applied yet: apply or revert it first." in shown
    panel.bar.revert.click()
    assert panel.bar.isHidden()
    assert n_ctx.value() == store.current.context.n_ctx
    qtbot.keyClick(panel, Qt.Key.Key_Escape)
    assert panel.isHidden()


def test_defaults_are_those_of_the_section_and_can_be_undone(panel: SettingsPanel, store: SettingsStore) -> None:
    before = Sampling(top_k=7)
    store.change(sampling=before, cache=CachePolicy(n_keep=3))
    panel.reset()
    panel.show()
    button = next(b for b in panel.findChildren(QPushButton) if b.text() == "Restore defaults")
    assert not button.isVisible(), "the appearance has none"
    panel.sections.setCurrentRow(2)
    button.click()
    assert (store.current.sampling, store.current.cache.n_keep) == (Sampling(), 3)
    assert button.text() == "Undo"
    button.click()
    assert store.current.sampling == before
    assert button.text() == "Restore defaults"


def test_one_section_is_shown_and_a_search_shows_those_that_have_the_words(panel: SettingsPanel) -> None:
    panel.show()

    def headings() -> list[str]:
        titles = {panel.sections.item(n).text() for n in range(panel.sections.count())}
        return [part.text() for part in panel.findChildren(QLabel) if part.isVisible() and part.text() in titles]

    def listed() -> list[str]:
        items = [panel.sections.item(n) for n in range(panel.sections.count())]
        return [item.text() for item in items if not item.isHidden()]

    assert headings() == ["Appearance"]
    panel.sections.setCurrentRow(3)
    assert headings() == ["Cache"]
    panel.search_for("safe")
    assert headings() == listed() == ["Engine and servers"]
    assert panel.safe_mode.isVisible()
    panel.search.clear()
    assert headings() == ["Cache"]
    assert len(listed()) == 6
    panel.search_for("serve")
    assert "Engine and servers" in headings()


def test_a_search_shows_no_sentence_of_what_it_hides(theme: Theme, qtbot: QtBot) -> None:
    state = CacheState(features=frozenset({Feature.CHAT}))
    panel = SettingsPanel(theme, SettingsStore(Settings()), None, state)
    qtbot.addWidget(panel)
    panel.show()
    panel.search_for("safe")
    assert [m for m in panel._missing.values() if m.isVisible()] == []
    panel.search_for("n_keep")
    assert panel._missing["cache"].isVisible()
    assert not panel._missing["context"].isVisible()


@pytest.mark.parametrize("words", ["temperature", "t", "e", "penalty"])
def test_what_a_search_finds_is_not_cut_at_the_right(panel: SettingsPanel, words: str) -> None:
    panel.show()
    panel.search_for(words)
    QApplication.processEvents()
    panel.resize(panel.minimumSizeHint())
    QApplication.processEvents()
    view = panel._scroll.viewport()
    fields = [field for table in ("sampling", "cache", "context") for field in panel._rows.fields(table)]
    seen = [field for field in fields if field.isVisible()]
    assert seen
    assert panel.width() <= 900
    for field in seen:
        assert field.mapTo(view, field.rect().topRight()).x() < view.width() - 8, field.accessibleName()


def test_serving_and_connecting_are_in_the_settings(window: MainWindow, qtbot: QtBot) -> None:
    window.shown_settings.open()
    panel = window.findChild(SettingsPanel)
    assert isinstance(panel, SettingsPanel)
    panel.search_for("server")
    buttons = {button.text(): button for button in panel.findChildren(QPushButton) if button.isVisible()}
    with qtbot.waitSignal(window.server_requested):
        buttons["Connect to a server…"].click()
    panel.search_for("serve")
    with qtbot.waitSignal(window.server_dialog_made):
        next(b for b in panel.findChildren(QPushButton) if b.text() == "Serve on this computer…").click()


def test_settings_that_the_engine_has_no_use_for_stay_as_they_are(theme: Theme, qtbot: QtBot) -> None:
    state = CacheState(features=frozenset({Feature.CHAT, Feature.CACHE_POLICY}))
    kept = Settings(context=ContextSettings(n_ctx=512), sampling=Sampling(top_k=7))
    store = SettingsStore(kept)
    panel = SettingsPanel(theme, store, None, state)
    qtbot.addWidget(panel)
    panel.show()
    panel.sections.setCurrentRow(3)
    assert not panel._missing["cache"].isVisible()
    panel.show_context()
    assert panel._missing["context"].isVisible()
    assert panel.bar.isHidden(), "there is nothing to rebuild"
    defaults = next(b for b in panel.findChildren(QPushButton) if b.text() == "Restore defaults")
    assert not defaults.isEnabled()
    panel.sections.setCurrentRow(2)
    defaults.click()
    assert store.current == kept.model_copy(update={"sampling": Sampling()})
    state.apply(BackendReady(frozenset(Feature)))
    panel.apply_event(BackendReady(frozenset(Feature)))
    assert panel.field("context", "n_ctx").isEnabled()
    assert not panel._missing["context"].isVisible()


def test_languages_are_offered_where_there_are_catalogues(
    theme: Theme, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    for found, shown in (({}, False), ({"zh_CN": Path("kvdesk_zh_CN.qm")}, True)):
        monkeypatch.setattr(appearance_module, "catalogues", lambda found=found: found)
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
def test_an_invalid_number_does_not_count(
    panel: SettingsPanel, store: SettingsStore, qtbot: QtBot, language: str
) -> None:
    panel.show()
    panel.sections.setCurrentRow(2)
    temperature = panel.field("sampling", "temperature")
    assert isinstance(temperature, RealField)
    temperature.setLocale(QLocale(language))
    for text, value in (("0.7", 0.7), ("0.7.1", None), ("0,6", 0.6), ("x", None), (",25", 0.25)):
        before = store.current.sampling.temperature
        temperature.selectAll()
        qtbot.keyClicks(temperature.lineEdit(), text)
        qtbot.keyClick(temperature.lineEdit(), Qt.Key.Key_Return)
        panel.apply_now()
        assert store.current.sampling.temperature == (before if value is None else value)
        said = [shown.text() for shown in panel.findChildren(QLabel) if shown.isVisible()]
        assert (f"“{text}” is not a number." in said) is (value is None)
    seed = panel.field("sampling", "seed")
    assert isinstance(seed, SeedField)
    seed.random.click()
    seed.number.selectAll()
    qtbot.keyClicks(seed.number.lineEdit(), "4.000.000.000")
    panel.apply_now()
    assert store.current.sampling.seed == seed.value() == 4_000_000_000
    context = panel.field("context", "n_ctx")
    assert isinstance(context, QSpinBox)
    context.setValue(512)
    assert panel.apply_button.isEnabled()
    batch = panel.field("context", "n_batch")
    assert isinstance(batch, QSpinBox)
    batch.lineEdit().setText("12x")
    assert not panel.apply_button.isEnabled()
