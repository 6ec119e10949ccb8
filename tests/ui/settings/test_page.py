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
from kvdesk.session import Store
from kvdesk.settings import (
    CachePolicy,
    CacheType,
    ContextSettings,
    Sampling,
    ServeSettings,
    Settings,
    ThemeChoice,
    llama_name,
)
from kvdesk.ui.settings import appearance as appearance_module
from kvdesk.ui.settings.page import SettingsPage
from kvdesk.ui.settings.seed_field import SeedField
from kvdesk.ui.shell.main_window import MainWindow
from kvdesk.ui.widgets.choice import Choice
from kvdesk.ui.widgets.controls import ElidedLabel, IconButton
from kvdesk.ui.widgets.number_fields import RealField
from kvdesk.ui.widgets.style.theme import Theme
from tests.ui.recording import kit_of, record


@pytest.fixture
def store() -> Store:
    return Store(Settings())


@pytest.fixture
def page(theme: Theme, store: Store, qtbot: QtBot) -> SettingsPage:
    page = SettingsPage(kit_of(theme, store))
    qtbot.addWidget(page)
    return page


def test_every_setting_has_a_control_that_keeps_its_value(page: SettingsPage, store: Store) -> None:
    settings = Settings(
        sampling=Sampling(temperature=0.25, top_k=7, seed=4_000_000_000),
        context=ContextSettings(n_ctx=2048, type_v=CacheType.Q8_0, flash_attn=False, n_threads=3),
        system_prompt="Be brief.",
    )
    store.settings.change(**dict(settings))
    page.show_settings(Settings.model_fields)
    assert page.bar.isHidden()
    top_p = page.field("sampling", "top_p")
    assert isinstance(top_p, QDoubleSpinBox)
    top_p.setValue(0.5)
    check = page.field("context", "kv_unified")
    assert isinstance(check, QCheckBox)
    check.setChecked(not check.isChecked())
    page.apply_now()
    sent = record(page._kit.commands.rebuild)
    page.bar.apply.click()
    assert sent[0][0] == settings.context.model_copy(update={"kv_unified": False})
    sampling = settings.sampling.model_copy(update={"top_p": 0.5})
    assert store.settings.current == settings.model_copy(update={"sampling": sampling}), (
        "the context is kept once it is made"
    )


def test_a_value_with_more_digits_than_its_field_shows_is_not_edited(
    page: SettingsPage, store: Store, qtbot: QtBot
) -> None:
    store.settings.change(sampling=Sampling(top_p=0.123456789))
    page.show_settings({"sampling"})
    top_k = page.field("sampling", "top_k")
    assert isinstance(top_k, QSpinBox)
    top_k.setValue(7)
    qtbot.waitUntil(lambda: store.settings.current.sampling == Sampling(top_p=0.123456789, top_k=7))


def test_ranges_are_those_of_the_table(page: SettingsPage) -> None:
    n_ctx, temperature = page.field("context", "n_ctx"), page.field("sampling", "temperature")
    assert isinstance(n_ctx, QSpinBox)
    assert isinstance(temperature, QDoubleSpinBox)
    assert (n_ctx.minimum(), n_ctx.maximum()) == (0, 1 << 20)
    assert (temperature.minimum(), temperature.maximum()) == (0.0, 5.0)


def test_a_seed_is_random_or_a_number(page: SettingsPage, store: Store) -> None:
    page.show()
    page.sections.setCurrentRow(2)
    seed = page.field("sampling", "seed")
    assert isinstance(seed, SeedField)
    assert seed.random.isChecked()
    assert not seed.number.isVisible()
    seed.random.click()
    assert seed.number.isVisible()
    seed.number.setValue(12)
    page.apply_now()
    assert store.settings.current.sampling.seed == 12
    seed.random.click()
    page.apply_now()
    assert store.settings.current.sampling.seed == Sampling().seed == 0xFFFFFFFF  # LLAMA_DEFAULT_SEED, llama.h


def test_settings_have_plain_titles_and_llama_cpps_names_beside_them(page: SettingsPage) -> None:
    parts = page.findChildren(QLabel)
    shown = [part.full_text if isinstance(part, ElidedLabel) else part.text() for part in parts]
    for table in (ContextSettings, Sampling, CachePolicy, ServeSettings):
        for name, info in table.model_fields.items():
            assert info.title, name
            assert info.title in shown
            assert name not in shown or name == llama_name(info)
    assert shown[shown.index("Temperature") + 1] == "temp"
    assert shown[shown.index("Context size") + 1] == "n_ctx"
    assert shown[shown.index("Compact automatically") + 1] == CachePolicy.model_fields["auto_compact"].description
    about = shown[shown.index("temp") + 1]
    assert about == f"{Sampling.model_fields['temperature'].description}. Default 0.8, from 0 to 5"


def test_choices_fit_their_fields(page: SettingsPage) -> None:
    page.show()
    for choice in page.findChildren(Choice):
        style = QStyleOptionComboBox()
        choice.initStyleOption(style)
        part = QStyle.SubControl.SC_ComboBoxEditField
        field = choice.style().subControlRect(QStyle.ComplexControl.CC_ComboBox, style, part, choice)
        for i in range(choice.count()):
            assert choice.fontMetrics().horizontalAdvance(choice.itemText(i)) <= field.width(), choice.itemText(i)


def test_the_theme_that_follows_the_system_says_so(page: SettingsPage) -> None:
    combo = next(box for box in page.findChildren(QComboBox) if box.accessibleName() == "Theme")
    assert combo.itemText(combo.findData(ThemeChoice.SYSTEM)) == "Follow the system"


def test_zoom_and_font_size_change_at_once(window: MainWindow) -> None:
    page = window.rooms.show_settings()
    boxes = {box.accessibleName(): box for box in page.findChildren(QComboBox)}
    zoom, font = boxes["Zoom"], boxes["Font size"]
    assert (zoom.currentText(), font.currentText()) == ("100 %", "Follow the system")
    zoom.setCurrentIndex(zoom.findData(125))
    assert window.store.settings.current.zoom == 125
    font.setCurrentIndex(font.findData(20))
    assert (window.store.settings.current.zoom, window.store.settings.current.font_px) == (125, 20)
    assert window.theme.text.pixelSize() == 25
    window.shown_settings.zoom(0)
    assert (zoom.currentData(), font.currentData()) == (100, 20)


def test_another_context_is_announced_as_a_rebuild(window: MainWindow) -> None:
    page = window.rooms.show_settings()
    n_ctx = page.field("context", "n_ctx")
    assert isinstance(n_ctx, QSpinBox)
    n_ctx.setValue(512)
    sent = record(window.commands.rebuild)
    page.bar.apply.click()
    assert sent[0][0] == ContextSettings(n_ctx=512)
    assert window.rooms.shows_chats


def test_what_is_edited_survives_settings_from_elsewhere_and_counts_at_once(window: MainWindow, qtbot: QtBot) -> None:
    page = window.rooms.show_settings()
    top_k, prompt = page.field("sampling", "top_k"), page.findChild(QPlainTextEdit)
    assert isinstance(top_k, QSpinBox)
    assert isinstance(prompt, QPlainTextEdit)
    top_k.setValue(7)
    prompt.setPlainText("Be brief.")
    combo = next(box for box in page.findChildren(QComboBox) if box.accessibleName() == "Theme")
    combo.setCurrentIndex(combo.findData(ThemeChoice.LIGHT))
    window.store.settings.change(sampling=Sampling(top_k=50, top_p=0.5))
    assert (top_k.value(), prompt.toPlainText()) == (7, "Be brief.")
    assert page.field("sampling", "top_p").property("value") == 0.5, "what nobody edits follows"
    now = window.store.settings
    qtbot.waitUntil(lambda: now.current.sampling == Sampling(top_k=7, top_p=0.5))
    assert (now.current.theme, now.current.system_prompt) == (ThemeChoice.LIGHT, "Be brief.")


def test_what_is_typed_last_counts_though_one_leaves_at_once(page: SettingsPage, store: Store) -> None:
    page.show()
    top_k = page.field("sampling", "top_k")
    assert isinstance(top_k, QSpinBox)
    top_k.setValue(7)
    page.hide()
    assert store.settings.current.sampling.top_k == 7


def test_a_number_is_not_rewritten_while_it_is_typed(page: SettingsPage, store: Store, qtbot: QtBot) -> None:
    page.show()
    page.sections.setCurrentRow(2)
    field = page.field("sampling", "temperature")
    assert isinstance(field, RealField)
    field.selectAll()
    qtbot.keyClicks(field.lineEdit(), "1.")
    page.apply_now()
    assert store.settings.current.sampling.temperature == 1.0
    assert field.lineEdit().text() == "1."
    qtbot.keyClicks(field.lineEdit(), "5")
    page.apply_now()
    assert store.settings.current.sampling.temperature == 1.5


@pytest.mark.usefixtures("fresh")
def test_leaving_does_not_drop_a_context_that_is_edited(window: MainWindow, qtbot: QtBot) -> None:
    for way in ("chat.escape", "back", "chat.new"):
        page = window.rooms.show_settings()
        assert page.sections.hasFocus()
        page.sections.setCurrentRow(4)
        n_ctx = page.field("context", "n_ctx")
        assert isinstance(n_ctx, QSpinBox)
        assert page.bar.isHidden()
        n_ctx.setValue(512)
        assert page.bar.isVisible()
        assert "Context size: 4,096 → 512" in page.bar._what.text()
        if way == "back":
            next(b for b in page.findChildren(IconButton) if b.accessibleName() == "Back to the chats").click()
        else:
            window.action_set.run(way)
        assert window.rooms.shows_chats
        assert window.chat.composer.edit.hasFocus()
        assert window.activity.text == "The context that you edited in the settings is not applied."
        qtbot.keyClick(window, Qt.Key.Key_Comma, Qt.KeyboardModifier.ControlModifier)
        assert n_ctx.isVisible()
        assert (n_ctx.value(), page.bar.isVisible()) == (512, True)
        page.bar.revert.click()
        assert page.bar.isHidden()
        assert n_ctx.value() == window.store.settings.current.context.n_ctx
        window.activity.dismiss()
        window.action_set.run("chat.escape")
        assert (window.rooms.shows_chats, window.activity.text) == (True, "")


def test_a_rebuild_that_was_asked_for_is_offered_until_one_leaves(window: MainWindow) -> None:
    window.rooms.show_settings().show_context()
    page = window.rooms.settings
    assert page.bar.isVisible()
    window.rooms.show_chats()
    window.rooms.show_settings()
    assert page.bar.isHidden()


def test_what_is_changed_elsewhere_is_shown_at_once(window: MainWindow) -> None:
    page = window.rooms.show_settings()
    store = window.store.settings
    store.change(
        sampling=Sampling(top_k=9),
        context=ContextSettings(n_ctx=512),
        cache=CachePolicy(n_keep=3),
        serve=ServeSettings(port=9000),
        system_prompt="Be brief.",
        safe_mode=True,
        zoom=125,
    )
    shown = {("sampling", "top_k"): 9, ("context", "n_ctx"): 512, ("cache", "n_keep"): 3, ("serve", "port"): 9000}
    for (table, name), value in shown.items():
        assert page.field(table, name).property("value") == value
    assert (page._prompt.toPlainText(), page.safe_mode.isChecked()) == ("Be brief.", True)
    assert page.bar.isHidden(), "nothing is edited"


def test_defaults_are_those_of_the_section_and_can_be_undone(page: SettingsPage, store: Store) -> None:
    before = Sampling(top_k=7)
    store.settings.change(sampling=before, cache=CachePolicy(n_keep=3))
    page.show_settings({"sampling", "cache"})
    page.show()
    button = next(b for b in page.findChildren(QPushButton) if b.text() == "Restore defaults")
    assert not button.isVisible(), "the appearance has none"
    page.sections.setCurrentRow(2)
    button.click()
    assert (store.settings.current.sampling, store.settings.current.cache.n_keep) == (Sampling(), 3)
    assert button.text() == "Undo"
    button.click()
    assert store.settings.current.sampling == before
    assert button.text() == "Restore defaults"


def test_one_section_is_shown_and_a_search_shows_those_that_have_the_words(page: SettingsPage) -> None:
    page.show()

    def headings() -> list[str]:
        titles = {page.sections.item(n).text() for n in range(page.sections.count())}
        return [part.text() for part in page.findChildren(QLabel) if part.isVisible() and part.text() in titles]

    def listed() -> list[str]:
        items = [page.sections.item(n) for n in range(page.sections.count())]
        return [item.text() for item in items if not item.isHidden()]

    assert headings() == ["Appearance"]
    page.sections.setCurrentRow(3)
    assert headings() == ["Cache"]
    page.search_for("safe")
    assert headings() == listed() == ["Engine"]
    assert page.safe_mode.isVisible()
    page.search.clear()
    assert headings() == ["Cache"]
    assert len(listed()) == 9
    page.search_for("curl")
    assert headings() == []
    page.search_for("API key")
    assert headings() == ["Serve on this computer"]
    assert page.serving.isVisible()
    page.search_for("ollama")
    assert headings() == ["Connect to a server"]


def test_types_are_found_by_what_they_are_and_by_their_choices(page: SettingsPage) -> None:
    fields = {name: page.field("context", name) for name in ContextSettings.model_fields}
    for words, found in (("quantized", {"type_k", "type_v", "flash_attn"}), ("q8_0", {"type_k", "type_v"})):
        page.search_for(words)
        assert {name for name, field in fields.items() if field.isVisibleTo(page)} == found


def test_a_search_shows_no_sentence_of_what_it_hides(theme: Theme, qtbot: QtBot) -> None:
    store = Store()
    store.apply(BackendReady(frozenset({Feature.CHAT})))
    page = SettingsPage(kit_of(theme, store))
    qtbot.addWidget(page)
    page.show()
    page.search_for("safe")
    assert [m for m in page._missing.values() if m.isVisible()] == []
    page.search_for("n_keep")
    assert page._missing["cache"].isVisible()
    assert not page._missing["context"].isVisible()


def test_what_a_search_finds_is_not_cut_at_the_right(page: SettingsPage) -> None:
    page.show()
    fields = [field for table in ("sampling", "cache", "context") for field in page._rows.fields(table)]
    view = page._scroll.viewport()
    for words in ("temperature", "t", "e", "penalty"):
        page.search_for(words)
        QApplication.processEvents()
        page.resize(page.minimumSizeHint())
        QApplication.processEvents()
        seen = [field for field in fields if field.isVisible()]
        assert seen
        assert page.width() <= 900
        for field in seen:
            assert field.mapTo(view, field.rect().topRight()).x() < view.width() - 8, field.accessibleName()


def test_serving_and_connecting_are_sections(window: MainWindow) -> None:
    for name, shown in (("model.server", "connecting"), ("app.serve", "serving"), ("model.server", "connecting")):
        window.action_set.run(name)
        page = window.rooms.settings
        assert page is not None
        assert [n for n in ("serving", "connecting") if getattr(page, n).isVisible()] == [shown]
    assert page.connecting.url.hasFocus()


def test_settings_that_the_engine_has_no_use_for_stay_as_they_are(theme: Theme, qtbot: QtBot) -> None:
    kept = Settings(context=ContextSettings(n_ctx=512), sampling=Sampling(top_k=7))
    store = Store(kept)
    store.apply(BackendReady(frozenset({Feature.CHAT, Feature.CACHE_POLICY})))
    page = SettingsPage(kit_of(theme, store))
    qtbot.addWidget(page)
    page.show()
    page.sections.setCurrentRow(3)
    assert not page._missing["cache"].isVisible()
    page.show_context()
    assert page._missing["context"].isVisible()
    assert page.bar.isHidden(), "there is nothing to rebuild"
    defaults = next(b for b in page.findChildren(QPushButton) if b.text() == "Restore defaults")
    assert not defaults.isEnabled()
    page.sections.setCurrentRow(2)
    defaults.click()
    assert store.settings.current == kept.model_copy(update={"sampling": Sampling()})
    store.apply(BackendReady(frozenset(Feature)))
    assert page.field("context", "n_ctx").isEnabled()
    assert not page._missing["context"].isVisible()


def test_languages_are_offered_where_there_are_catalogues(
    theme: Theme, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    for found, shown in (({}, False), ({"zh_CN": Path("kvdesk_zh_CN.mo")}, True)):
        monkeypatch.setattr(appearance_module, "catalogues", lambda found=found: found)
        store = Store(Settings(language="zh_CN"))
        page = SettingsPage(kit_of(theme, store))
        qtbot.addWidget(page)
        choice = next((c for c in page.findChildren(Choice) if c.accessibleName() == "Language"), None)
        assert (choice is not None) == shown
    assert choice
    assert [choice.itemText(n) for n in range(choice.count())] == ["Follow the system", "English", "简体中文"]
    assert choice.currentData() == "zh_CN"
    choice.setCurrentIndex(1)
    assert store.settings.current.language == "en"


def test_an_invalid_number_does_not_count(page: SettingsPage, store: Store, qtbot: QtBot) -> None:
    page.show()
    page.sections.setCurrentRow(2)
    temperature = page.field("sampling", "temperature")
    assert isinstance(temperature, RealField)
    for language in ("de_DE", "en_US", "ar_EG"):
        temperature.setLocale(QLocale(language))
        for text, value in (("0.7", 0.7), ("0.7.1", None), ("0,6", 0.6), ("x", None), (",25", 0.25)):
            before = store.settings.current.sampling.temperature
            temperature.selectAll()
            qtbot.keyClicks(temperature.lineEdit(), text)
            qtbot.keyClick(temperature.lineEdit(), Qt.Key.Key_Return)
            page.apply_now()
            assert store.settings.current.sampling.temperature == (before if value is None else value)
            said = [shown.text() for shown in page.findChildren(QLabel) if shown.isVisible()]
            assert (f"“{text}” is not a number." in said) is (value is None)
    seed = page.field("sampling", "seed")
    assert isinstance(seed, SeedField)
    seed.random.click()
    seed.number.selectAll()
    qtbot.keyClicks(seed.number.lineEdit(), "4.000.000.000")
    page.apply_now()
    assert store.settings.current.sampling.seed == seed.value() == 4_000_000_000
    context = page.field("context", "n_ctx")
    assert isinstance(context, QSpinBox)
    context.setValue(512)
    assert page.bar.apply.isEnabled()
    batch = page.field("context", "n_batch")
    assert isinstance(batch, QSpinBox)
    batch.lineEdit().setText("12x")
    assert not page.bar.apply.isEnabled()


def test_escape_clears_the_words_before_it_leaves_the_page(window: MainWindow, qtbot: QtBot) -> None:
    page = window.rooms.show_settings()
    page.search.setFocus()
    qtbot.keyClicks(page.search, "temp")
    qtbot.keyClick(page.search, Qt.Key.Key_Escape)
    assert page.search.text() == ""
    assert window.rooms.shown == "settings"
    qtbot.keyClick(page.search, Qt.Key.Key_Escape)
    assert window.rooms.shows_chats
