"""The page of settings: one control for each field of the declared tables, with its range and description, in sections.
Connecting to a server is one of them; slices bring more.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final, cast

from pydantic import BaseModel
from PySide6.QtCore import QSignalBlocker, Qt
from PySide6.QtGui import QHideEvent, QShowEvent
from PySide6.QtWidgets import QCheckBox, QHBoxLayout, QLabel, QListWidget, QWidget

from kvdesk.protocol.cache import ContextPreview, ContextReady, RebuildContext
from kvdesk.protocol.chat import BackendReady
from kvdesk.protocol.features import Feature
from kvdesk.protocol.messages import CommandFailed
from kvdesk.session import Changed
from kvdesk.session.changed import Update
from kvdesk.settings import CachePolicy, ContextSettings, Preset, Sampling, Settings, ToolBudget
from kvdesk.settings.texts import texts_of
from kvdesk.translation import tr
from kvdesk.ui.server.connect_section import ConnectSection
from kvdesk.ui.settings.appearance import Appearance
from kvdesk.ui.settings.context_bar import ContextBar
from kvdesk.ui.settings.fields import problem_of
from kvdesk.ui.settings.preset_bar import PresetBar
from kvdesk.ui.settings.rows import SettingRows
from kvdesk.ui.tools.servers_section import ServersSection
from kvdesk.ui.widgets import boxes
from kvdesk.ui.widgets.controls import IconButton, label, on_ground, push_button, show_text
from kvdesk.ui.widgets.kit import Kit, Section, SectionWidget
from kvdesk.ui.widgets.scroll_column import ScrollColumn
from kvdesk.ui.widgets.search_field import SearchField
from kvdesk.ui.widgets.timers import once
from kvdesk.ui.widgets.written import text_box

if TYPE_CHECKING:
    from kvdesk.ui.server.serve_section import ServeSection

APPLY_MS: Final = 250  # after the last keystroke
COLUMN_PX: Final = 720  # the widest that settings are: a description is one line or two
_TABLES: Final[Mapping[str, type[BaseModel]]] = {
    "sampling": Sampling,
    "cache": CachePolicy,
    "context": ContextSettings,
    "tools": ToolBudget,
}
_FEATURES: Final = {"cache": Feature.CACHE_POLICY, "context": Feature.REBUILD}  # that the settings of a table need


class SettingsPage(QWidget):
    """What is changed counts at once; another context is made when that is confirmed in the bar, which shows what it
    costs. What is edited of it stays while another page is shown.
    """

    def __init__(self, kit: Kit) -> None:
        super().__init__()
        theme, settings = kit.theme, kit.store.settings
        self._kit, self._state = kit, kit.store
        on_ground(self, "panel")
        self._for_rebuild = False  # opened to rebuild, even with the same settings
        self._applying = False
        self._theme = theme
        self._settings = settings
        self._unedited: dict[str, dict[str, Any]] = {}  # by table: what its controls showed before they were edited
        self._shown_prompt = ""
        self._replaced: dict[str, BaseModel] = {}  # by table: what it was before its defaults were restored
        self._sections = {one.section.table: one.section for one in kit.slices if one.section is not None}
        self._tables = dict(_TABLES) | {table: section.model for table, section in self._sections.items()}
        self._parts: dict[str, SectionWidget] = {}  # by table
        self._missing: dict[str, QLabel] = {}  # by table: why its settings cannot be changed, if they cannot
        self._rows = SettingRows(theme)
        self._rows.edited.connect(self._on_edited)
        self._appearance = Appearance(settings)
        self._switches: dict[str, QCheckBox] = {}
        self.safe_mode, self.token_probabilities = self._switch("safe_mode"), self._switch("token_probabilities")
        self._prompt = text_box(tr("System prompt"))
        self.presets = PresetBar(theme, self._as_preset)
        self.presets.chosen.connect(self._on_preset_chosen)
        self.presets.changed.connect(self._on_presets_changed)
        self.connecting = ConnectSection(kit.commands)
        self.tools = ServersSection(kit)
        self._fill()
        self.search = SearchField(tr("Search settings"))
        self.search.textChanged.connect(self._on_search_changed)
        self._nothing = label(tr("No setting matches."), tone="secondary")
        self._nothing.hide()
        self._defaults = push_button(tr("Restore defaults"), clicked=self._on_defaults_clicked)
        self.bar = ContextBar(kit.commands, self._on_apply_clicked, self._on_revert_clicked)
        self._applying_soon = once(self, APPLY_MS, self.apply_now)
        self._lay_out()
        self.show_settings(Settings.model_fields)
        self._show_features()
        theme.follow(self._fit)
        self.sections.setCurrentRow(0)
        self.destroyed.connect(settings.listen(self.show_settings))
        self.destroyed.connect(kit.store.listen(self._on_changed, often=()))

    def _lay_out(self) -> None:
        self.sections = QListWidget()
        self.sections.setObjectName("sections")
        self.sections.setAccessibleName(tr("Sections of the settings"))
        self.sections.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.sections.addItems(self._rows.titles)
        self.sections.currentRowChanged.connect(self._on_section_chosen)
        self.sections.itemClicked.connect(lambda item: self._on_section_chosen(self.sections.row(item)))
        self._column = QWidget()
        boxes.column(
            self._rows,
            self._nothing,
            boxes.Gap(8),
            (self._defaults, 0, Qt.AlignmentFlag.AlignLeft),
            boxes.Stretch(1),
            on=self._column,
            margins=(0, 4, 0, 16),
        )
        content = QWidget()
        boxes.row((self._column, 1), boxes.Stretch(), on=content, margins=(24, 0, 24, 0))
        scroll = self._scroll = ScrollColumn(content, tr("Settings"))
        below = self._below = boxes.row((self.bar, 1), boxes.Stretch())
        right = boxes.column((scroll, 1), below, spacing=0)
        side = boxes.column(self.sections, margins=(12, 0, 0, 12))
        beside = boxes.row(side, (right, 1), spacing=0)
        boxes.column(self._make_head(), (beside, 1), on=self, margins=0, spacing=0)

    def _make_head(self) -> QHBoxLayout:
        name, tip, leave = tr("Back to the chats"), tr("Back to the chats (Esc)"), self._kit.act("chat.write")
        back = IconButton(self._theme, "chevron-left", name, tip, clicked=leave)
        return boxes.row(
            back,
            label(tr("Settings"), scale="large"),
            boxes.Stretch(),
            self.search,
            margins=(12, 10, 12, 12),
            spacing=8,
        )

    def _fit(self) -> None:
        self._prompt.setFixedHeight(self._theme.text.pixelSize() * 6)
        self.search.setMaximumWidth(self._theme.px(280))
        for part in (self._column, self.bar):
            part.setMaximumWidth(self._theme.px(COLUMN_PX))
        self.sections.setFixedWidth(self.sections.sizeHintForColumn(0) + self._theme.px(16))

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.sections.doItemsLayout()  # with the padding of their style, which they had not when they were added

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self.apply_now()
        if event.spontaneous():  # the window was minimized
            return
        self._for_rebuild = False
        self._show_bar()
        if self._pending:
            self._state.notify(tr("The context that you edited in the settings is not applied."), "warning")

    # --- parts --------------------------------------------------------------------------------------------------------

    @property
    def serving(self) -> ServeSection:
        """The section of serving. Raises KeyError if that is left out."""
        return cast("ServeSection", self._parts["serve"])

    def field(self, table: str, name: str) -> QWidget:
        """The control of one setting, such as ("sampling", "top_k")."""
        return self._rows.field(table, name)

    # --- facts --------------------------------------------------------------------------------------------------------

    def show_settings(self, changed: Collection[str]) -> None:
        """These settings have changed: show them, but for what is edited."""
        if self._applying:
            return
        now = self._settings.current
        if "system_prompt" in changed and self._prompt.toPlainText() == self._shown_prompt:
            self._show_prompt(now.system_prompt)
        for table in (table for table in self._tables if table in changed):
            edited = self._edited_values(table)
            self._show_table(table, getattr(now, table))
            if edited:
                self._rows.show_values(table, getattr(now, table).model_copy(update=edited))
        self._show_choices()
        self._show_bar()

    def _show_prompt(self, text: str) -> None:
        with QSignalBlocker(self._prompt):
            self._prompt.setPlainText(text)
        self._shown_prompt = self._prompt.toPlainText()

    def _show_table(self, table: str, values: BaseModel) -> None:
        """None of its values counts as edited."""
        self._rows.show_values(table, values)
        self._unedited[table] = self._rows.values(table)

    def _edited_values(self, table: str) -> dict[str, Any]:
        """What was edited and does not count yet. A value that the control shows rounded is not, nor is an invalid
        entry.
        """
        if (shown := self._unedited.get(table)) is None:
            return {}
        values = self._rows.values(table).items()
        return {
            name: value
            for name, value in values
            if value != shown.get(name) and not problem_of(self._rows.field(table, name))
        }

    def _show_choices(self) -> None:
        self._appearance.show()
        for field, switch in self._switches.items():
            with QSignalBlocker(switch):
                switch.setChecked(getattr(self._settings.current, field))

    def _switch(self, field: str) -> QCheckBox:
        """Of a setting that goes to the store at once."""
        switch = self._switches[field] = QCheckBox()
        switch.setAccessibleName(texts_of(Settings.model_fields[field])[0])
        switch.toggled.connect(lambda on: self._settings.change(**{field: on}))
        return switch

    def show_context(self) -> None:
        """The part about the context, to rebuild it even if nothing is changed. No field of it has the focus: what
        one goes on typing must not end in a number.
        """
        self._for_rebuild = Feature.REBUILD in self._state.features
        self._show_bar()
        self._show_section(self._rows.section_of("context"))
        self._scroll.setFocus()

    def show_part(self, table: str) -> None:
        """The section of a slice, with this table. Raises KeyError if no slice has it."""
        self._show_section(tr(self._sections[table].title))
        self._parts[table].focus_first()

    def show_tools(self) -> None:
        """The part about tool servers."""
        self._show_section(self._rows.section_of("tools"))
        self.tools.focus_first()

    def show_connecting(self) -> None:
        """The part about connecting to a server."""
        self._show_section(tr("Connect to a server"))
        self.connecting.focus_first()

    def search_for(self, words: str) -> None:
        """Search for these words."""
        self.search.setText(words)
        self.search.setFocus()

    def _show_section(self, title: str) -> None:
        self.search.clear()
        (item,) = self.sections.findItems(title, Qt.MatchFlag.MatchExactly)
        self.sections.setCurrentItem(item)

    def _on_changed(self, _changed: Changed, update: Update | None) -> None:
        """Answers about the context that is edited."""
        match update:
            case ContextPreview():
                self.bar.ledger.show_preview(update)
                self._show_bar()
            case ContextReady():
                self._show_bar()
            case CommandFailed(command=RebuildContext()):
                self._show_table("context", self._settings.current.context)
                self._show_bar()
            case BackendReady():
                self._show_features()

    def _show_features(self) -> None:
        """Settings that the engine does not use cannot be changed; the reason is shown above them."""
        for table, feature in _FEATURES.items():
            self._show_missing(table, self._state.missing(feature))

    def _show_missing(self, table: str, sentence: str) -> None:
        """Why the settings of a table cannot be changed now; "" if they can."""
        show_text(self._missing[table], sentence)
        self._rows.set_enabled(table, not sentence)
        self._show_defaults()

    # --- what counts at once ------------------------------------------------------------------------------------------

    def _on_edited(self) -> None:
        self._replaced.clear()
        self._applying_soon.start()
        self._show_bar()

    def apply_now(self) -> None:
        """What is edited counts from now on, but for the context."""
        self._applying_soon.stop()
        now = self._settings.current
        changes: dict[str, Any] = {}
        for table in (table for table in self._tables if table != "context"):
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

    def _as_preset(self) -> tuple[str, Sampling]:
        """The shown system prompt and sampling."""
        return self._prompt.toPlainText(), Sampling(**self._rows.values("sampling"))

    def _on_preset_chosen(self, preset: Preset) -> None:
        self._rows.show_values("sampling", preset.sampling)
        if preset.system_prompt is not None:
            self._prompt.setPlainText(preset.system_prompt)
        self._on_edited()
        self.apply_now()

    def _on_presets_changed(self, presets: tuple[Preset, ...]) -> None:
        self._settings.change(presets=presets)
        self._show_bar()

    # --- defaults -----------------------------------------------------------------------------------------------------

    @property
    def _table(self) -> str:
        """The table of the section that is shown; "" if it has none, or several are searched."""
        if self.sections.currentRow() < 0 or self.search.text().strip():
            return ""
        title = self.sections.currentItem().text()
        return next((table for table in self._tables if self._rows.section_of(table) == title), "")

    def _show_defaults(self) -> None:
        table = self._table
        self._defaults.setVisible(table in _TABLES)
        self._defaults.setEnabled(not (table in self._missing and self._missing[table].text()))
        self._defaults.setText(tr("Undo") if table in self._replaced else tr("Restore defaults"))

    def _on_defaults_clicked(self) -> None:
        """Those of the section that is shown; pressed again, as it was before."""
        table = self._table
        before = self._replaced.pop(table, None)
        shown = self._tables[table](**self._rows.values(table))
        self._rows.show_values(table, before if before is not None else self._tables[table]())
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
        self.presets.show_values(now.presets, Sampling(**self._rows.values("sampling")), self._prompt.toPlainText())
        shown = self._for_rebuild or bool(changes)
        if shown:
            self.bar.ledger.show_context(self._state.context)
            self.bar.ledger.ask(now.context.model_copy(update=changes))
            problem = any(problem_of(field) for field in self._rows.fields("context"))
            self.bar.show_changes(now.context, changes, tr("An entry is invalid.") if problem else "")
        self.bar.setVisible(shown)
        self._below.setContentsMargins(*((24, 12, 36, 12) if shown else (0, 0, 0, 0)))  # beside the scroll bar above it
        self._show_defaults()

    def _on_apply_clicked(self) -> None:
        context = self._settings.current.context.model_copy(update=self._pending)
        self._for_rebuild = False
        self._unedited["context"] = self._rows.values("context")
        self._kit.actions.run("chat.write")
        self._kit.commands.rebuild(context, self.bar.ledger.keep)

    def _on_revert_clicked(self) -> None:
        self._for_rebuild = False
        self._replaced.pop("context", None)
        self._show_table("context", self._settings.current.context)
        self._show_bar()
        self.sections.setFocus()

    # --- sections -----------------------------------------------------------------------------------------------------

    def _on_search_changed(self, text: str) -> None:
        self._show_whether_alone()
        self._nothing.setVisible(self._rows.filter(text) == 0)
        for n in range(self.sections.count()):
            item = self.sections.item(n)
            item.setHidden(item.text() not in self._rows.found_sections)
        self._scroll.verticalScrollBar().setValue(0)
        self._show_defaults()

    def _on_section_chosen(self, row: int) -> None:
        title = self.sections.item(row).text()
        self.search.clear()
        self._rows.show_section(title)
        self._show_whether_alone()
        self._scroll.verticalScrollBar().setValue(0)
        self._show_defaults()

    def _show_whether_alone(self) -> None:
        """A search finds the servers too, and is no reason to ask the keyring for their keys."""
        is_alone = self.sections.currentRow() >= 0 and not self.search.text().strip()
        self.connecting.set_alone(is_alone and self.sections.currentItem().text() == tr("Connect to a server"))

    def _fill(self) -> None:
        fields = Settings.model_fields
        self._rows.add_heading(tr("Appearance"))
        for name, choice in self._appearance.choices.items():
            self._rows.add_row(fields[name], choice)
        _title, about = texts_of(fields["system_prompt"])
        words = tr("System prompt {about}").format(about=about)
        self._rows.add_heading(tr("System prompt"))
        self._rows.add_widget(self._prompt, words)
        self._rows.add_widget(label(about, tone="secondary", scale="small"), words)
        self._prompt.textChanged.connect(self._on_edited)
        self._rows.add_heading(tr("Sampling"))
        self._rows.add_widget(self.presets, tr("Sampling preset"))
        self._add_table("sampling")
        self._rows.add_row(fields["token_probabilities"], self.token_probabilities)
        self._rows.add_heading(tr("Cache"))
        self._add_table("cache")
        self._rows.add_heading(tr("Context"))
        self._add_table("context")
        self._rows.add_heading(tr("Engine"))
        self._rows.add_row(fields["safe_mode"], self.safe_mode)
        self._rows.add_heading(tr("Tools"))
        self._rows.add_widget(self.tools, self.tools.words)
        self._add_table("tools")
        for section in self._sections.values():
            self._add_section(section)
        self._rows.add_heading(tr("Connect to a server"))
        self._rows.add_widget(self.connecting, self.connecting.words)

    def _add_table(self, table: str) -> None:
        missing = self._missing[table] = label("", tone="secondary", wrap=True)
        missing.hide()
        self._rows.add_widget(missing)
        self._rows.add_table(table, self._tables[table])

    def _add_section(self, section: Section) -> None:
        """Of a slice."""
        table = section.table

        def apply() -> str:
            self.apply_now()
            return next(filter(None, map(problem_of, self._rows.fields(table))), "")

        part = self._parts[table] = section.make(self._kit, apply)
        self._rows.add_heading(tr(section.title))
        self._rows.add_widget(part, part.words)
        self._add_table(table)
        self._rows.add_widget(part.below, part.words)
        part.locked.connect(partial(self._show_missing, table))
