"""Settings, one control for each field of the declared table, with its range and description."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final, NamedTuple

from pydantic import BaseModel
from PySide6.QtCore import QLocale, Signal, Slot
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import (
    QCheckBox,
    QDialog,
    QHBoxLayout,
    QLabel,
    QPlainTextEdit,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from kvdesk.paths import catalogues
from kvdesk.protocol.cache import ContextPreview, ContextReady
from kvdesk.protocol.chat import BackendReady
from kvdesk.protocol.features import Feature
from kvdesk.protocol.messages import Event
from kvdesk.session import SettingsStore
from kvdesk.settings import (
    CachePolicy,
    ContextSettings,
    Preset,
    Sampling,
    Settings,
    ThemeChoice,
)
from kvdesk.translation import marked, tr
from kvdesk.ui.operations.context_ledger import ContextLedger
from kvdesk.ui.settings.preset_bar import PresetBar
from kvdesk.ui.settings.rows import SettingRows
from kvdesk.ui.widgets.controls import Choice, fit_to_screen, label
from kvdesk.ui.widgets.input_method import composes
from kvdesk.ui.widgets.scroll_column import ScrollColumn
from kvdesk.ui.widgets.search_field import SearchField
from kvdesk.ui.widgets.sizes import LEAST_FONT_PX, MOST_FONT_PX, ZOOMS
from kvdesk.ui.widgets.theme import Theme
from kvdesk.viewmodel.cache_state import CacheState

_TABLES: Final[Mapping[str, type[BaseModel]]] = {"sampling": Sampling, "cache": CachePolicy, "context": ContextSettings}
_FEATURES: Final = {"cache": Feature.CACHE_POLICY, "context": Feature.REBUILD}  # that the settings of a table need
_THEMES: Final = {
    ThemeChoice.SYSTEM: marked("Follow the system"),
    ThemeChoice.LIGHT: marked("Light"),
    ThemeChoice.DARK: marked("Dark"),
}


class Shown(NamedTuple):
    """What the dialog shows: values by table and field, and the system prompt."""

    values: Mapping[str, Mapping[str, Any]]
    prompt: str


class Edits(NamedTuple):
    """What is shown in the dialog and not applied: values by table and field, the system prompt; the words that are
    searched for, and how far one has scrolled.
    """

    values: Mapping[str, Mapping[str, Any]]
    prompt: str
    search: str
    scrolled: int


class SettingsPanel(QDialog):
    """Not modal. Under "Appearance" a change goes to the store at once, everything else with Apply; another context
    only when it could be made.
    """

    rebuild_clicked = Signal(object, str)  # ContextSettings, and what becomes of the conversations
    preview_asked = Signal(object)  # PreviewContext

    def __init__(
        self,
        theme: Theme,
        settings: SettingsStore,
        parent: QWidget | None = None,
        state: CacheState | None = None,
    ) -> None:
        super().__init__(parent)
        self._state = state or CacheState()
        self._for_rebuild = False  # opened to rebuild, even with the same settings
        self.setWindowTitle(tr("Settings"))
        self._theme = theme
        self._settings = settings
        self._unedited = Shown({}, "")
        self._missing: dict[str, QLabel] = {}  # by table: the sentence where the engine has no such settings
        self._rows = SettingRows(theme)
        self._rows.edited.connect(self._on_edited)
        self._theme_choice = Choice(theme)
        self._theme_choice.setAccessibleName(tr("Theme"))
        for value, name in _THEMES.items():
            self._theme_choice.addItem(tr(name), value)
        self._zoom_choice = Choice(theme)
        self._zoom_choice.setAccessibleName(tr("Zoom"))
        for zoom in ZOOMS:
            self._zoom_choice.addItem(tr("{n} %").format(n=zoom), zoom)
        self._font_choice = Choice(theme)
        self._font_choice.setAccessibleName(tr("Font size"))
        self._font_choice.addItem(tr("Follow the system"), 0)
        for px in range(LEAST_FONT_PX, MOST_FONT_PX + 1):
            self._font_choice.addItem(tr("{n} px").format(n=px), px)
        self._language_choice = Choice(theme)
        self._language_choice.setAccessibleName(tr("Language"))
        for language, code in {tr("Follow the system"): "system", "English": "en", **_native_names()}.items():
            self._language_choice.addItem(language, code)
        self._safe_mode = QCheckBox()
        self._safe_mode.setAccessibleName(tr("Safe mode"))
        self._prompt = QPlainTextEdit()
        self._prompt.setProperty("boxed", True)
        self._prompt.setAccessibleName(tr("System prompt"))
        self._prompt.setTabChangesFocus(True)
        self._presets = PresetBar(theme, self._as_preset)
        self._presets.chosen.connect(self._on_preset_chosen)
        self._presets.changed.connect(self._on_presets_changed)
        self._fill()
        self._search = SearchField(tr("Search settings"))
        self._search.textChanged.connect(self._on_search_changed)
        composes(self._prompt)
        searched = QHBoxLayout()
        searched.setContentsMargins(24, 24, 24, 8)
        searched.addWidget(self._search)
        self._nothing = label(tr("No setting has these words."), tone="secondary")
        self._nothing.hide()
        self._problem = label("", tone="danger", scale="small")
        self._apply = QPushButton(tr("Apply"))
        self._apply.setProperty("primary", True)
        self._apply.clicked.connect(self._on_apply_clicked)
        defaults, self._close = QPushButton(tr("Restore defaults")), QPushButton(tr("Close"))
        defaults.clicked.connect(self._on_defaults_clicked)
        self._close.clicked.connect(self.close)
        for button in (self._apply, defaults, self._close):
            button.setAutoDefault(False)  # Enter ends the editing of a number; it presses nothing elsewhere
        self._ledger = ContextLedger(theme)
        self._ledger.asked.connect(self.preview_asked)
        beside = QHBoxLayout()
        beside.setContentsMargins(24, 8, 24, 0)
        beside.addWidget(self._ledger)
        content = self._content = QWidget()
        content.setObjectName("column")
        inner = QVBoxLayout(content)
        inner.setContentsMargins(24, 16, 24, 16)
        inner.addWidget(self._rows)
        inner.addWidget(self._nothing)
        inner.addStretch(1)
        scroll = self._scroll = ScrollColumn()
        scroll.setAccessibleName(tr("Settings"))
        scroll.setWidget(content)
        buttons = QHBoxLayout()
        buttons.setContentsMargins(24, 12, 24, 24)
        buttons.setSpacing(8)
        buttons.addWidget(defaults)
        buttons.addStretch(1)
        buttons.addWidget(self._problem)
        buttons.addWidget(self._close)
        buttons.addWidget(self._apply)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addLayout(searched)
        column.addWidget(scroll, 1)
        column.addLayout(beside)
        column.addLayout(buttons)
        self.resize(theme.px(600), theme.px(680))
        self.reset()
        self._show_features()
        theme.changed.connect(self._fit)
        self._fit()

    @Slot()
    def _fit(self) -> None:
        self._prompt.setFixedHeight(self._theme.text.pixelSize() * 6)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        fit_to_screen(self)

    @property
    def apply_button(self) -> QPushButton:
        return self._apply

    @property
    def language(self) -> Choice:
        """The choice of the language of the interface."""
        return self._language_choice

    @property
    def presets(self) -> PresetBar:
        """Where presets are chosen and kept."""
        return self._presets

    @property
    def search(self) -> SearchField:
        """Shows only the settings that have its words."""
        return self._search

    @property
    def ledger(self) -> ContextLedger:
        return self._ledger

    def field(self, table: str, name: str) -> QWidget:
        """The control of one setting, such as ("sampling", "top_k")."""
        return self._rows.field(table, name)

    def reset(self) -> None:
        """Show the settings; what was edited and not applied is lost."""
        self._for_rebuild = False
        now = self._settings.current
        self._show_prompt(now.system_prompt)
        for table in _TABLES:
            self._show_table(table, getattr(now, table))
        self._show_choices()
        self._on_edited()

    def show_settings(self, changed: Collection[str]) -> None:
        """These settings have changed: show them, but for what is edited and not applied."""
        now = self._settings.current
        if "system_prompt" in changed:
            edited_prompt = self._edited_prompt
            self._show_prompt(now.system_prompt)
            if edited_prompt is not None:
                self._prompt.setPlainText(edited_prompt)
        for table in (table for table in _TABLES if table in changed):
            edited = self._edited_values(table)
            self._show_table(table, getattr(now, table))
            if edited:
                self._rows.show_values(table, getattr(now, table).model_copy(update=edited))
        self._show_choices()
        self._on_edited()

    def _show_prompt(self, text: str) -> None:
        self._prompt.setPlainText(text)
        self._unedited = self._unedited._replace(prompt=self._prompt.toPlainText())

    def _show_table(self, table: str, values: BaseModel) -> None:
        """None of its values counts as edited."""
        self._rows.show_values(table, values)
        shown = self._rows.values(table)
        self._unedited = self._unedited._replace(values={**self._unedited.values, table: shown})

    @property
    def _edited_prompt(self) -> str | None:
        """The system prompt that was typed and not applied."""
        typed = self._prompt.toPlainText()
        return typed if typed != self._unedited.prompt else None

    def _edited_values(self, table: str) -> dict[str, Any]:
        """What was edited and not applied. A value that the control shows rounded is not."""
        shown = self._unedited.values.get(table, {})
        return {name: value for name, value in self._rows.values(table).items() if value != shown.get(name)}

    def _show_choices(self) -> None:
        settings = self._settings.current
        choices: tuple[tuple[Choice, object], ...] = (
            (self._theme_choice, settings.theme),
            (self._zoom_choice, min(ZOOMS, key=lambda zoom: abs(zoom - settings.zoom))),
            (self._font_choice, settings.font_px),
            (self._language_choice, settings.language),
        )
        for choice, value in choices:
            choice.blockSignals(True)
            choice.setCurrentIndex(max(0, choice.findData(value)))
            choice.blockSignals(False)
        self._safe_mode.blockSignals(True)
        self._safe_mode.setChecked(settings.safe_mode)
        self._safe_mode.blockSignals(False)

    @property
    def edits(self) -> Edits:
        scrolled = self._scroll.verticalScrollBar().value()
        values = {table: self._rows.values(table) for table in _TABLES}
        return Edits(values, self._prompt.toPlainText(), self._search.text(), scrolled)

    def show_edits(self, edits: Edits) -> None:
        """Go on with what was edited in another dialog, at the language: nothing else makes it anew."""
        for table, values in edits.values.items():
            self._rows.show_values(table, getattr(self._settings.current, table).model_copy(update=values))
        self._prompt.setPlainText(edits.prompt)
        self._search.setText(edits.search)
        self._on_edited()
        if (layout := self.layout()) is not None:
            layout.activate()
        self._scroll.verticalScrollBar().setValue(edits.scrolled)
        self._language_choice.setFocus()

    def show_context(self) -> None:
        """The part about the context, to rebuild it even where nothing is changed. No field of it has the focus: what
        one goes on typing must not end in a number.
        """
        self._for_rebuild = Feature.REBUILD in self._state.features
        self._on_edited()
        self._search.clear()
        first = self._rows.field("context", next(iter(ContextSettings.model_fields)))
        self._scroll.setFocus()
        self._scroll.verticalScrollBar().setValue(first.mapTo(self._content, first.rect().topLeft()).y() - 48)

    def apply_event(self, event: Event) -> None:
        """Answers about the context that is edited."""
        if isinstance(event, ContextPreview):
            self._ledger.show_preview(event)
            self._on_edited()
        elif isinstance(event, ContextReady):
            self._on_edited()
        elif isinstance(event, BackendReady):
            self._show_features()

    def _show_features(self) -> None:
        """Settings that the engine has no use for cannot be changed; why stands over them."""
        for table, feature in _FEATURES.items():
            missing = self._state.missing(feature)
            self._missing[table].setText(missing)
            self._missing[table].setVisible(bool(missing))
            for widget in self._rows.fields(table):
                widget.setEnabled(not missing)

    @Slot()
    def _on_apply_clicked(self) -> None:
        changes = self._changes()
        context = changes.pop("context", None)
        rebuild = self._for_rebuild or context is not None
        self._for_rebuild = False
        self._close.setFocus()  # Apply is disabled now, and what comes after it is a field
        self._unedited = self._shown()
        self._settings.change(**changes)
        self._on_edited()
        if rebuild:
            self.close()
            self.rebuild_clicked.emit(context or self._settings.current.context, self._ledger.keep)

    @Slot()
    def _on_defaults_clicked(self) -> None:
        there = self._state.features
        changeable = (table for table in _TABLES if table not in _FEATURES or _FEATURES[table] in there)
        for table in changeable:
            self._rows.show_values(table, _TABLES[table]())
        self._on_edited()

    @Slot()
    def _on_theme_changed(self) -> None:
        self._settings.change(theme=ThemeChoice(self._theme_choice.currentData()))

    @Slot()
    def _on_zoom_changed(self) -> None:
        self._settings.change(zoom=self._zoom_choice.currentData())

    @Slot()
    def _on_font_changed(self) -> None:
        self._settings.change(font_px=self._font_choice.currentData())

    @Slot()
    def _on_language_changed(self) -> None:
        self._settings.change(language=self._language_choice.currentData())

    @Slot(bool)
    def _on_safe_mode_toggled(self, on: bool) -> None:
        self._settings.change(safe_mode=on)

    def _as_preset(self) -> tuple[str, Sampling]:
        """The shown system prompt and sampling."""
        return self._prompt.toPlainText(), Sampling(**self._rows.values("sampling"))

    @Slot(object)
    def _on_preset_chosen(self, preset: Preset) -> None:
        """Show a preset's values; they count when they are applied, as any others."""
        self._rows.show_values("sampling", preset.sampling)
        if preset.system_prompt is not None:
            self._prompt.setPlainText(preset.system_prompt)
        self._on_edited()

    @Slot(object)
    def _on_presets_changed(self, presets: tuple[Preset, ...]) -> None:
        """Presets are kept at once, whatever is edited beside them."""
        self._settings.change(presets=presets)
        self._on_edited()

    @Slot(str)
    def _on_search_changed(self, text: str) -> None:
        self._nothing.setVisible(self._rows.filter(text) == 0)
        self._scroll.verticalScrollBar().setValue(0)

    @Slot()
    def _on_edited(self) -> None:
        changes = self._changes()
        edited = self._settings.current.model_copy(update=changes)
        self._presets.show_values(edited.presets, edited.sampling, edited.system_prompt)
        rebuild = self._for_rebuild or "context" in changes
        self._ledger.setVisible(rebuild)
        if rebuild:
            self._ledger.show_context(self._state.context)
            self._ledger.ask(edited.context)
        problem = self._rows.problem
        self._problem.setText(tr("An entry is invalid.") if problem else "")
        refused = bool(problem) or (rebuild and bool(self._ledger.refused))
        self._apply.setEnabled((bool(changes) or self._for_rebuild) and not refused)
        self._apply.setText(tr("Apply and rebuild") if rebuild else tr("Apply"))

    def _shown(self) -> Shown:
        return Shown({table: self._rows.values(table) for table in _TABLES}, self._prompt.toPlainText())

    def _changes(self) -> dict[str, Any]:
        """The fields of the settings that Apply would change."""
        now = self._settings.current
        edited = {table: self._edited_values(table) for table in _TABLES}
        changes: dict[str, Any] = {
            table: getattr(now, table).model_copy(update=values) for table, values in edited.items() if values
        }
        if (prompt := self._edited_prompt) is not None:
            changes["system_prompt"] = prompt
        return {name: value for name, value in changes.items() if value != getattr(now, name)}

    def _fill(self) -> None:
        self._rows.add_heading(tr("Appearance"), first=True)
        self._rows.add_row(Settings.model_fields["theme"], self._theme_choice)
        self._theme_choice.currentIndexChanged.connect(self._on_theme_changed)
        self._rows.add_row(Settings.model_fields["zoom"], self._zoom_choice)
        self._zoom_choice.currentIndexChanged.connect(self._on_zoom_changed)
        self._rows.add_row(Settings.model_fields["font_px"], self._font_choice)
        self._font_choice.currentIndexChanged.connect(self._on_font_changed)
        if catalogues():
            self._rows.add_row(Settings.model_fields["language"], self._language_choice)
            self._language_choice.currentIndexChanged.connect(self._on_language_changed)
        self._rows.add_row(Settings.model_fields["safe_mode"], self._safe_mode)
        self._safe_mode.toggled.connect(self._on_safe_mode_toggled)
        about = tr(Settings.model_fields["system_prompt"].description or "")
        self._rows.add_heading(tr("System prompt"))
        self._rows.add_widget(self._prompt, tr("System prompt {about}").format(about=about))
        self._rows.add_widget(
            label(about, tone="secondary", scale="small"), tr("System prompt {about}").format(about=about)
        )
        self._prompt.textChanged.connect(self._on_edited)
        self._rows.add_heading(tr("Sampling"))
        self._rows.add_widget(self._presets, tr("Sampling preset"))
        self._table("sampling")
        self._rows.add_heading(tr("Cache"))
        self._table("cache")
        self._rows.add_heading(tr("Context"))
        self._table("context")

    def _table(self, table: str) -> None:
        if table in _FEATURES:
            self._missing[table] = label("", tone="secondary")
            self._rows.add_widget(self._missing[table])
        self._rows.add_table(table, _TABLES[table])


def _native_names() -> dict[str, str]:
    """The languages beside English that kvdesk speaks, each as its speakers call it."""
    return {QLocale(code).nativeLanguageName(): code for code in catalogues()}
