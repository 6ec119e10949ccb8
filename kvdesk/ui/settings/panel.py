"""Settings, one control for each field of the declared table, with its range and description, in sections."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final, NamedTuple

from pydantic import BaseModel
from PySide6.QtCore import Qt, QTimer, Signal, Slot
from PySide6.QtGui import QCloseEvent, QHideEvent, QShowEvent
from PySide6.QtWidgets import (
    QCheckBox,
    QDialog,
    QHBoxLayout,
    QLabel,
    QListWidget,
    QPlainTextEdit,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

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
)
from kvdesk.translation import tr
from kvdesk.ui.operations.context_ledger import ContextLedger
from kvdesk.ui.settings.appearance import Appearance
from kvdesk.ui.settings.context_bar import ContextBar
from kvdesk.ui.settings.fields import problem_of
from kvdesk.ui.settings.preset_bar import PresetBar
from kvdesk.ui.settings.rows import SettingRows
from kvdesk.ui.widgets.controls import Choice, fit_to_screen, label
from kvdesk.ui.widgets.input_method import composes
from kvdesk.ui.widgets.scroll_column import ScrollColumn
from kvdesk.ui.widgets.search_field import SearchField
from kvdesk.ui.widgets.theme import Theme
from kvdesk.viewmodel.cache_state import CacheState

APPLY_MS: Final = 250  # after the last keystroke
_TABLES: Final[Mapping[str, type[BaseModel]]] = {"sampling": Sampling, "cache": CachePolicy, "context": ContextSettings}
_AT_ONCE: Final = ("sampling", "cache")
_FEATURES: Final = {"cache": Feature.CACHE_POLICY, "context": Feature.REBUILD}  # that the settings of a table need


class Edits(NamedTuple):
    """What one sees in the dialog: values of the context that are not applied, the words that are searched for, the
    section, and how far one has scrolled.
    """

    context: Mapping[str, Any]
    search: str
    section: int
    scrolled: int


class SettingsPanel(QDialog):
    """Not modal. What is changed counts at once; another context is made when that is confirmed in the bar, which shows
    what it costs.
    """

    rebuild_clicked = Signal(object, str)  # ContextSettings, and what becomes of the conversations
    preview_asked = Signal(object)  # PreviewContext
    serve_clicked = Signal()
    connect_clicked = Signal()

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
        self._applying = False
        self.setWindowTitle(tr("Settings"))
        self._theme = theme
        self._settings = settings
        self._unedited: dict[str, dict[str, Any]] = {}  # by table: what its controls showed before they were edited
        self._shown_prompt = ""
        self._replaced: dict[str, BaseModel] = {}  # by table: what it was before its defaults were restored
        self._missing: dict[str, QLabel] = {}  # by table: the sentence where the engine has no such settings
        self._rows = SettingRows(theme)
        self._rows.edited.connect(self._on_edited)
        self._appearance = Appearance(theme, settings)
        self.safe_mode = QCheckBox()
        self.safe_mode.setAccessibleName(tr("Safe mode"))
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
        self._nothing = label(tr("No setting has these words."), tone="secondary")
        self._nothing.hide()
        self._defaults, self._close = QPushButton(tr("Restore defaults")), QPushButton(tr("Close"))
        self._defaults.clicked.connect(self._on_defaults_clicked)
        self._close.clicked.connect(self.close)
        for button in (self._defaults, self._close):
            button.setAutoDefault(False)  # Enter ends the editing of a number; it presses nothing elsewhere
        self._bar = ContextBar(theme)
        self._bar.ledger.asked.connect(self.preview_asked)
        self._bar.apply_clicked.connect(self._on_apply_clicked)
        self._bar.revert_clicked.connect(self._on_revert_clicked)
        self._applying_soon = QTimer(self, singleShot=True, interval=APPLY_MS)
        self._applying_soon.timeout.connect(self.apply_now)
        self._lay_out()
        self.reset()
        self._show_features()
        theme.changed.connect(self._fit)
        self._fit()
        self.sections.setCurrentRow(0)

    def _lay_out(self) -> None:
        self.sections = QListWidget()
        self.sections.setObjectName("sections")
        self.sections.setAccessibleName(tr("Sections of the settings"))
        self.sections.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.sections.addItems(self._rows.titles)
        self.sections.currentRowChanged.connect(self._on_section_chosen)
        self.sections.itemClicked.connect(lambda item: self._on_section_chosen(self.sections.row(item)))
        content = self._content = QWidget()
        content.setObjectName("column")
        inner = QVBoxLayout(content)
        inner.setContentsMargins(24, 4, 24, 16)
        inner.addWidget(self._rows)
        inner.addWidget(self._nothing)
        inner.addStretch(1)
        scroll = self._scroll = ScrollColumn()
        scroll.setAccessibleName(tr("Settings"))
        scroll.setWidget(content)
        side = QVBoxLayout()
        side.setContentsMargins(16, 0, 0, 16)
        side.addWidget(self.sections)
        beside = QHBoxLayout()
        beside.setSpacing(0)
        beside.addLayout(side)
        beside.addWidget(scroll, 1)
        searched = QHBoxLayout()
        searched.setContentsMargins(24, 24, 24, 12)
        searched.addWidget(self._search)
        buttons = QHBoxLayout()
        buttons.setSpacing(8)
        buttons.addWidget(self._defaults)
        buttons.addStretch(1)
        buttons.addWidget(self._close)
        foot = QVBoxLayout()
        foot.setContentsMargins(24, 12, 24, 24)
        foot.setSpacing(12)
        foot.addWidget(self._bar)
        foot.addLayout(buttons)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addLayout(searched)
        column.addLayout(beside, 1)
        column.addLayout(foot)
        self.resize(self._theme.px(800), self._theme.px(620))

    @Slot()
    def _fit(self) -> None:
        self._prompt.setFixedHeight(self._theme.text.pixelSize() * 6)
        self.sections.setFixedWidth(self.sections.sizeHintForColumn(0) + self._theme.px(16))

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.sections.doItemsLayout()  # with the padding of their style, which they had not when they were added
        fit_to_screen(self)

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self.apply_now()

    def reject(self) -> None:
        """Esc. A context that is edited is not dropped by it."""
        if self._pending:
            self._bar.insist()
        else:
            super().reject()

    def closeEvent(self, event: QCloseEvent) -> None:
        if self._pending:
            event.ignore()
            self._bar.insist()
        else:
            super().closeEvent(event)

    # --- parts --------------------------------------------------------------------------------------------------------

    @property
    def apply_button(self) -> QPushButton:
        """Makes the context with what is edited."""
        return self._bar.apply

    @property
    def bar(self) -> ContextBar:
        return self._bar

    @property
    def language(self) -> Choice:
        """The choice of the language of the interface. Raises KeyError where there is one alone."""
        return self._appearance.choices["language"]

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
        return self._bar.ledger

    def field(self, table: str, name: str) -> QWidget:
        """The control of one setting, such as ("sampling", "top_k")."""
        return self._rows.field(table, name)

    # --- facts --------------------------------------------------------------------------------------------------------

    def reset(self) -> None:
        """Show the settings; a context that was edited and not applied is lost."""
        self._for_rebuild = False
        self._replaced.clear()
        now = self._settings.current
        self._show_prompt(now.system_prompt)
        for table in _TABLES:
            self._show_table(table, getattr(now, table))
        self._show_choices()
        self._show_bar()

    def show_settings(self, changed: Collection[str]) -> None:
        """These settings have changed: show them, but for what is edited."""
        if self._applying:
            return
        now = self._settings.current
        if "system_prompt" in changed and self._prompt.toPlainText() == self._shown_prompt:
            self._show_prompt(now.system_prompt)
        for table in (table for table in _TABLES if table in changed):
            edited = self._edited_values(table)
            self._show_table(table, getattr(now, table))
            if edited:
                self._rows.show_values(table, getattr(now, table).model_copy(update=edited))
        self._show_choices()
        self._show_bar()

    def _show_prompt(self, text: str) -> None:
        self._prompt.blockSignals(True)
        self._prompt.setPlainText(text)
        self._prompt.blockSignals(False)
        self._shown_prompt = self._prompt.toPlainText()

    def _show_table(self, table: str, values: BaseModel) -> None:
        """None of its values counts as edited."""
        self._rows.show_values(table, values)
        self._unedited[table] = self._rows.values(table)

    def _edited_values(self, table: str) -> dict[str, Any]:
        """What was edited and does not count yet. A value that the control shows rounded is not, nor is an invalid
        entry.
        """
        shown = self._unedited.get(table, {})
        values = self._rows.values(table).items()
        return {
            name: value
            for name, value in values
            if value != shown.get(name) and not problem_of(self._rows.field(table, name))
        }

    def _show_choices(self) -> None:
        self._appearance.show()
        self.safe_mode.blockSignals(True)
        self.safe_mode.setChecked(self._settings.current.safe_mode)
        self.safe_mode.blockSignals(False)

    @property
    def edits(self) -> Edits:
        scrolled = self._scroll.verticalScrollBar().value()
        return Edits(self._edited_values("context"), self._search.text(), self.sections.currentRow(), scrolled)

    def show_edits(self, edits: Edits) -> None:
        """Go on with what was edited in another dialog, at the language: nothing else makes it anew."""
        now = self._settings.current.context
        self._rows.show_values("context", now.model_copy(update=dict(edits.context)))
        self.sections.setCurrentRow(edits.section)
        self._search.setText(edits.search)
        self._show_bar()
        if (layout := self.layout()) is not None:
            layout.activate()
        self._scroll.verticalScrollBar().setValue(edits.scrolled)
        if "language" in self._appearance.choices:
            self.language.setFocus()

    def show_context(self) -> None:
        """The part about the context, to rebuild it even where nothing is changed. No field of it has the focus: what
        one goes on typing must not end in a number.
        """
        self._for_rebuild = Feature.REBUILD in self._state.features
        self._show_bar()
        self._search.clear()
        self._show_section(self._rows.section_of("context"))
        self._scroll.setFocus()

    def search_for(self, words: str) -> None:
        """Search for these words."""
        self._search.setText(words)
        self._search.setFocus()

    def _show_section(self, title: str) -> None:
        (item,) = self.sections.findItems(title, Qt.MatchFlag.MatchExactly)
        self.sections.setCurrentItem(item)

    def apply_event(self, event: Event) -> None:
        """Answers about the context that is edited."""
        if isinstance(event, ContextPreview):
            self.ledger.show_preview(event)
            self._show_bar()
        elif isinstance(event, ContextReady):
            self._show_bar()
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
        self._show_defaults()

    # --- what counts at once ------------------------------------------------------------------------------------------

    @Slot()
    def _on_edited(self) -> None:
        self._replaced.clear()
        self._applying_soon.start()
        self._show_bar()

    @Slot()
    def apply_now(self) -> None:
        """What is edited counts from now on, but for the context."""
        self._applying_soon.stop()
        now = self._settings.current
        changes: dict[str, Any] = {}
        for table in _AT_ONCE:
            if values := self._edited_values(table):
                changes[table] = getattr(now, table).model_copy(update=values)
                self._unedited[table] |= values
        if (prompt := self._prompt.toPlainText()) != self._shown_prompt:
            changes["system_prompt"] = self._shown_prompt = prompt
        self._applying = True  # the controls show it already, and may be in the midst of being edited
        try:
            self._settings.change(**changes)
        finally:
            self._applying = False
        self._show_bar()

    @Slot(bool)
    def _on_safe_mode_toggled(self, on: bool) -> None:
        self._settings.change(safe_mode=on)

    def _as_preset(self) -> tuple[str, Sampling]:
        """The shown system prompt and sampling."""
        return self._prompt.toPlainText(), Sampling(**self._rows.values("sampling"))

    @Slot(object)
    def _on_preset_chosen(self, preset: Preset) -> None:
        self._rows.show_values("sampling", preset.sampling)
        if preset.system_prompt is not None:
            self._prompt.setPlainText(preset.system_prompt)
        self._on_edited()
        self.apply_now()

    @Slot(object)
    def _on_presets_changed(self, presets: tuple[Preset, ...]) -> None:
        self._settings.change(presets=presets)
        self._show_bar()

    # --- defaults -----------------------------------------------------------------------------------------------------

    @property
    def _table(self) -> str:
        """The table of the section that is shown; "" where it has none, or several are searched."""
        if self.sections.currentRow() < 0 or self._search.text().strip():
            return ""
        title = self.sections.currentItem().text()
        return next((table for table in _TABLES if self._rows.section_of(table) == title), "")

    def _show_defaults(self) -> None:
        table = self._table
        self._defaults.setVisible(bool(table))
        can = table not in _FEATURES or _FEATURES[table] in self._state.features
        self._defaults.setEnabled(can)
        self._defaults.setText(tr("Undo") if table in self._replaced else tr("Restore defaults"))

    @Slot()
    def _on_defaults_clicked(self) -> None:
        """Those of the section that is shown; pressed again, as it was before."""
        table = self._table
        before = self._replaced.pop(table, None)
        shown = _TABLES[table](**self._rows.values(table))
        self._rows.show_values(table, before if before is not None else _TABLES[table]())
        self._on_edited()
        if before is None:
            self._replaced[table] = shown
        self.apply_now()

    # --- the context --------------------------------------------------------------------------------------------------

    @property
    def _pending(self) -> dict[str, Any]:
        """Fields of the context that are edited and not applied."""
        now = self._settings.current.context
        return {name: value for name, value in self._edited_values("context").items() if value != getattr(now, name)}

    def _show_bar(self) -> None:
        now, changes = self._settings.current, self._pending
        self._presets.show_values(now.presets, Sampling(**self._rows.values("sampling")), self._prompt.toPlainText())
        shown = self._for_rebuild or bool(changes)
        if shown:
            self.ledger.show_context(self._state.context)
            self.ledger.ask(now.context.model_copy(update=changes))
            problem = any(problem_of(field) for field in self._rows.fields("context"))
            self._bar.show_changes(now.context, changes, tr("An entry is invalid.") if problem else "")
        self._bar.setVisible(shown)
        self._show_defaults()

    @Slot()
    def _on_apply_clicked(self) -> None:
        context = self._settings.current.context.model_copy(update=self._pending)
        self._for_rebuild = False
        self._unedited["context"] = self._rows.values("context")
        self.close()
        self.rebuild_clicked.emit(context, self.ledger.keep)

    @Slot()
    def _on_revert_clicked(self) -> None:
        self._for_rebuild = False
        self._replaced.pop("context", None)
        self._show_table("context", self._settings.current.context)
        self._show_bar()
        self._close.setFocus()

    # --- sections -----------------------------------------------------------------------------------------------------

    @Slot(str)
    def _on_search_changed(self, text: str) -> None:
        self._nothing.setVisible(self._rows.filter(text) == 0)
        for n in range(self.sections.count()):
            item = self.sections.item(n)
            item.setHidden(item.text() not in self._rows.found_sections)
        self._scroll.verticalScrollBar().setValue(0)
        self._show_defaults()

    @Slot(int)
    def _on_section_chosen(self, row: int) -> None:
        title = self.sections.item(row).text()
        self._search.clear()
        self._rows.show_section(title)
        self._scroll.verticalScrollBar().setValue(0)
        self._show_defaults()

    def _fill(self) -> None:
        fields = Settings.model_fields
        self._rows.add_heading(tr("Appearance"))
        for name, choice in self._appearance.choices.items():
            self._rows.add_row(fields[name], choice)
        about = tr(fields["system_prompt"].description or "")
        words = tr("System prompt {about}").format(about=about)
        self._rows.add_heading(tr("System prompt"))
        self._rows.add_widget(self._prompt, words)
        self._rows.add_widget(label(about, tone="secondary", scale="small"), words)
        self._prompt.textChanged.connect(self._on_edited)
        self._rows.add_heading(tr("Sampling"))
        self._rows.add_widget(self._presets, tr("Sampling preset"))
        self._add_table("sampling")
        self._rows.add_heading(tr("Cache"))
        self._add_table("cache")
        self._rows.add_heading(tr("Context"))
        self._add_table("context")
        self._rows.add_heading(tr("Engine and servers"))
        self._rows.add_row(fields["safe_mode"], self.safe_mode)
        self.safe_mode.toggled.connect(self._on_safe_mode_toggled)
        for signal, text, about in (
            (
                self.serve_clicked,
                tr("Serve on this computer…"),
                tr("Other programs ask this model over HTTP, on this cache; you see what they reuse, and why"),
            ),
            (
                self.connect_clicked,
                tr("Connect to a server…"),
                tr("Chat with a model that llama-server, vLLM, another kvdesk or the like runs"),
            ),
        ):
            self._add_door(signal, text, about)

    def _add_door(self, signal: Any, text: str, about: str) -> None:
        """A button to a dialog of its own."""
        row = QWidget()
        line = QHBoxLayout(row)
        line.setContentsMargins(0, 8, 0, 4)
        line.setSpacing(16)
        described = label(about, tone="secondary", scale="small")
        described.setWordWrap(True)
        button = QPushButton(text)
        button.setAutoDefault(False)
        button.clicked.connect(signal)
        line.addWidget(described, 1)
        line.addWidget(button)
        self._rows.add_widget(row, f"{text} {about}")

    def _add_table(self, table: str) -> None:
        if table in _FEATURES:
            self._missing[table] = label("", tone="secondary")
            self._missing[table].setWordWrap(True)
            self._rows.add_widget(self._missing[table])
        self._rows.add_table(table, _TABLES[table])
