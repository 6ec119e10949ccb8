"""Settings, one control for each field of the declared table, with its range and description."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Final, cast

from pydantic.fields import FieldInfo
from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QDialog,
    QDoubleSpinBox,
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QPlainTextEdit,
    QPushButton,
    QScrollArea,
    QSpinBox,
    QVBoxLayout,
    QWidget,
)

from kvdesk.policies.overflow import policy_of
from kvdesk.protocol.cache import ContextPreview, ContextReady
from kvdesk.protocol.chat import BackendReady
from kvdesk.protocol.features import Feature
from kvdesk.protocol.messages import Event
from kvdesk.settings import (
    RANDOM_SEED,
    CachePolicy,
    ContextSettings,
    Overflow,
    Sampling,
    Settings,
    ThemeChoice,
    llama_name,
)
from kvdesk.ui.operations.context_ledger import ContextLedger
from kvdesk.ui.settings.seed_field import SeedField
from kvdesk.ui.widgets.controls import Choice, fit_to_screen, label, roomy, wheel_scrolls
from kvdesk.ui.widgets.theme import Theme
from kvdesk.viewmodel.cache_state import CacheState

_MAX_INT: Final = 2**31 - 1
_FIELD_PX: Final = 176  # every choice in full
_FEATURES: Final = {"cache": Feature.CACHE_POLICY, "context": Feature.REBUILD}  # that the settings of a table need
_THEMES: Final = {ThemeChoice.SYSTEM: "Follow the system", ThemeChoice.LIGHT: "Light", ThemeChoice.DARK: "Dark"}


class SettingsPanel(QDialog):
    """Not modal. The theme changes at once, everything else with Apply."""

    applied = Signal(object)  # Settings, of which the context has not been made yet
    rebuild_clicked = Signal(object, str)  # ContextSettings, and what becomes of the conversations
    preview_asked = Signal(object)  # PreviewContext

    def __init__(self, theme: Theme, parent: QWidget | None = None, state: CacheState | None = None) -> None:
        super().__init__(parent)
        self._state = state or CacheState()
        self._for_rebuild = False  # opened to rebuild, even with the same settings
        self.setWindowTitle("Settings")
        self._theme = theme
        self._settings = Settings()
        self._fields: dict[tuple[str, str], QWidget] = {}
        self._unedited: dict[tuple[str, str], Any] = {}  # what they showed before anybody edited them
        self._missing: dict[str, QLabel] = {}  # by table: the sentence where the engine has no such settings
        self._grid = QGridLayout()
        self._grid.setColumnStretch(1, 1)
        self._grid.setHorizontalSpacing(16)
        self._grid.setVerticalSpacing(4)
        self._theme_choice = Choice(theme)
        self._theme_choice.setAccessibleName("Theme")
        for value, name in _THEMES.items():
            self._theme_choice.addItem(name, value)
        self._prompt = QPlainTextEdit()
        self._prompt.setProperty("boxed", True)
        self._prompt.setAccessibleName("System prompt")
        self._prompt.setFixedHeight(theme.text.pixelSize() * 6)
        self._prompt.setTabChangesFocus(True)
        self._fill()
        self._apply = QPushButton("Apply")
        self._apply.setProperty("primary", True)
        self._apply.clicked.connect(self._on_apply_clicked)
        defaults, self._close = QPushButton("Restore defaults"), QPushButton("Close")
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
        inner.addLayout(self._grid)
        inner.addStretch(1)
        scroll = self._scroll = QScrollArea()
        scroll.setWidgetResizable(True)
        scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        scroll.setWidget(content)
        buttons = QHBoxLayout()
        buttons.setContentsMargins(24, 12, 24, 16)
        buttons.setSpacing(8)
        buttons.addWidget(defaults)
        buttons.addStretch(1)
        buttons.addWidget(self._close)
        buttons.addWidget(self._apply)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(scroll, 1)
        column.addLayout(beside)
        column.addLayout(buttons)
        self.resize(600, 680)
        self.reset(self._settings)
        self._show_features()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        fit_to_screen(self)

    @property
    def apply_button(self) -> QPushButton:
        return self._apply

    @property
    def ledger(self) -> ContextLedger:
        return self._ledger

    def field(self, table: str, name: str) -> QWidget:
        """The control of one setting, such as ("sampling", "top_k")."""
        return self._fields[table, name]

    def reset(self, settings: Settings) -> None:
        """Show `settings`; what was edited and not applied is lost."""
        self._for_rebuild = False
        self._prompt.setPlainText(settings.system_prompt)
        for (table, name), widget in self._fields.items():
            _set_value(widget, getattr(getattr(settings, table), name))
        self._take_over(settings)

    def show_settings(self, settings: Settings) -> None:
        """The settings have changed elsewhere, or were applied: show them, but for what is edited and not applied."""
        if self._prompt.toPlainText() == self._settings.system_prompt:
            self._prompt.setPlainText(settings.system_prompt)
        edited = {}
        for (table, name), widget in self._fields.items():
            if (value := _value(widget)) != self._unedited[table, name]:
                edited[table, name] = value
            _set_value(widget, getattr(getattr(settings, table), name))
        self._take_over(settings)
        for where, value in edited.items():
            _set_value(self._fields[where], value)
        self._on_edited()

    def _take_over(self, settings: Settings) -> None:
        """The shown values are the current ones: none counts as edited."""
        self._settings = settings
        self._theme_choice.blockSignals(True)
        self._theme_choice.setCurrentIndex(self._theme_choice.findData(settings.theme))
        self._theme_choice.blockSignals(False)
        self._unedited = {where: _value(widget) for where, widget in self._fields.items()}
        self._on_edited()

    def show_context(self) -> None:
        """The part about the context, to rebuild it even where nothing is changed. No field of it has the focus: what
        one goes on typing must not end in a number.
        """
        self._for_rebuild = Feature.REBUILD in self._state.features
        self._on_edited()
        first = self._fields["context", next(iter(ContextSettings.model_fields))]
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
            for (of, _), widget in self._fields.items():
                if of == table:
                    widget.setEnabled(not missing)

    @Slot()
    def _on_apply_clicked(self) -> None:
        edited, before = self._edited(), self._settings.context
        rebuild = self._for_rebuild or edited.context != before
        self._for_rebuild = False
        self._close.setFocus()  # Apply is disabled now, and what comes after it is a field
        self._take_over(edited)
        self.applied.emit(edited)
        if rebuild:
            self.close()
            self.rebuild_clicked.emit(edited.context, self._ledger.keep)

    @Slot()
    def _on_defaults_clicked(self) -> None:
        defaults = Settings()
        for (table, name), widget in self._fields.items():
            if table not in _FEATURES or _FEATURES[table] in self._state.features:
                _set_value(widget, getattr(getattr(defaults, table), name))
        self._on_edited()

    @Slot()
    def _on_theme_changed(self) -> None:
        self._settings = self._settings.model_copy(update={"theme": ThemeChoice(self._theme_choice.currentData())})
        self.applied.emit(self._settings)

    @Slot()
    def _on_edited(self) -> None:
        edited = self._edited()
        rebuild = self._for_rebuild or edited.context != self._settings.context
        self._ledger.setVisible(rebuild)
        if rebuild:
            self._ledger.show_context(self._state.context)
            self._ledger.ask(edited.context)
        refused = rebuild and bool(self._ledger.refused)
        self._apply.setEnabled((edited != self._settings or self._for_rebuild) and not refused)
        self._apply.setText("Apply and rebuild" if rebuild else "Apply")

    def _edited(self) -> Settings:
        values: dict[str, dict[str, Any]] = {"context": {}, "sampling": {}, "cache": {}}
        for (table, name), widget in self._fields.items():
            values[table][name] = _value(widget)
        return self._settings.model_copy(
            update={
                "context": ContextSettings(**values["context"]),
                "sampling": Sampling(**values["sampling"]),
                "cache": CachePolicy(**values["cache"]),
                "system_prompt": self._prompt.toPlainText(),
            }
        )

    def _fill(self) -> None:
        self._heading("Appearance", first=True)
        self._row(Settings.model_fields["theme"], self._theme_choice)
        self._theme_choice.currentIndexChanged.connect(self._on_theme_changed)
        self._heading("System prompt")
        row = self._grid.rowCount()
        self._grid.addWidget(self._prompt, row, 0, 1, 3)
        about = label(Settings.model_fields["system_prompt"].description or "", tone="secondary", scale="small")
        self._grid.addWidget(about, row + 1, 0, 1, 2)
        self._prompt.textChanged.connect(self._on_edited)
        self._heading("Sampling")
        self._table("sampling", Sampling)
        self._heading("Cache")
        self._table("cache", CachePolicy)
        self._heading("Context")
        self._table("context", ContextSettings)

    def _table(self, table: str, model: type[ContextSettings | Sampling | CachePolicy]) -> None:
        if table in _FEATURES:
            self._missing[table] = label("", tone="secondary")
            self._grid.addWidget(self._missing[table], self._grid.rowCount(), 0, 1, 2)
        for name, info in model.model_fields.items():
            low, high = 0.0, float(_MAX_INT)
            for limit in info.metadata:
                low, high = float(getattr(limit, "ge", low)), float(getattr(limit, "le", high))
            widget = self._fields[table, name] = self._control(cast(type, info.annotation), low, high)
            widget.setAccessibleName(info.title or name)
            widget.setAccessibleDescription(info.description or "")
            self._row(info, widget)

    def _control(self, kind: type, low: float, high: float) -> QWidget:
        if kind is bool:
            check = QCheckBox()
            check.toggled.connect(self._on_edited)
            return check
        if issubclass(kind, StrEnum):
            combo = Choice(self._theme)
            for value in kind:
                combo.addItem(policy_of(value).label if isinstance(value, Overflow) else value.value, value)
            combo.currentIndexChanged.connect(self._on_edited)
            return wheel_scrolls(combo)
        if kind is float:
            real = QDoubleSpinBox()
            real.setRange(low, high)
            real.setDecimals(2)
            real.setSingleStep(0.05)
            real.valueChanged.connect(self._on_edited)
            return wheel_scrolls(roomy(real))
        if high == RANDOM_SEED:
            seed = SeedField()
            seed.edited.connect(self._on_edited)
            return seed
        whole = QSpinBox()
        whole.setRange(int(low), int(high))
        whole.setGroupSeparatorShown(True)
        whole.valueChanged.connect(self._on_edited)
        return wheel_scrolls(roomy(whole))

    def _heading(self, text: str, first: bool = False) -> None:
        heading = label(text, scale="large")
        heading.setContentsMargins(0, 0 if first else 16, 0, 4)
        self._grid.addWidget(heading, self._grid.rowCount(), 0, 1, 2)

    def _row(self, info: FieldInfo, widget: QWidget) -> None:
        """Title, llama.cpp's name beside it where there is one, and description; the control at the right."""
        row = self._grid.rowCount()
        words = QVBoxLayout()
        words.setContentsMargins(0, 4, 0, 4)
        words.setSpacing(0)
        caption = label(info.title or "")
        caption.setBuddy(widget)
        names = QHBoxLayout()
        names.setSpacing(8)
        names.addWidget(caption)
        if theirs := llama_name(info):
            beside = label(theirs, tone="secondary", family="mono")
            beside.setToolTip(f"llama.cpp's name: {theirs}")
            names.addWidget(beside)
        names.addStretch(1)
        about = label(info.description or "", tone="secondary", scale="small")
        about.setWordWrap(True)
        words.addLayout(names)
        words.addWidget(about)
        self._grid.addLayout(words, row, 0, 1, 2)
        self._grid.addWidget(widget, row, 2, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight)
        if not isinstance(widget, QCheckBox):
            widget.setFixedWidth(_FIELD_PX)


def _value(widget: QWidget) -> Any:
    if isinstance(widget, QCheckBox):
        return widget.isChecked()
    if isinstance(widget, QComboBox):
        return widget.currentData()
    return cast(QSpinBox | QDoubleSpinBox | SeedField, widget).value()


def _set_value(widget: QWidget, value: Any) -> None:
    widget.blockSignals(True)
    if isinstance(widget, QCheckBox):
        widget.setChecked(bool(value))
    elif isinstance(widget, QComboBox):
        widget.setCurrentIndex(widget.findData(value))
    elif isinstance(widget, SeedField):
        widget.set_value(value)
    else:
        cast(QSpinBox | QDoubleSpinBox, widget).setValue(value)
    widget.blockSignals(False)
