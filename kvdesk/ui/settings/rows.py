"""Rows of settings: a control for each field of a declared table, with its range, title and description."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Final, cast

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QDoubleSpinBox,
    QGridLayout,
    QHBoxLayout,
    QSpinBox,
    QVBoxLayout,
    QWidget,
)

from kvdesk.policies.overflow import policy_of
from kvdesk.settings import RANDOM_SEED, Overflow, llama_name
from kvdesk.ui.settings.seed_field import SeedField
from kvdesk.ui.widgets.controls import Choice, label, roomy, wheel_scrolls
from kvdesk.ui.widgets.theme import Theme

_MAX_INT: Final = 2**31 - 1
_FIELD_PX: Final = 176  # every choice in full


class SettingRows(QObject):
    """The rows of a grid with three columns, which it fills from above. `edited`: a person changed a value."""

    edited = Signal()

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self._theme = theme
        self._fields: dict[tuple[str, str], QWidget] = {}
        self.grid = QGridLayout()
        self.grid.setColumnStretch(1, 1)
        self.grid.setHorizontalSpacing(16)
        self.grid.setVerticalSpacing(4)

    def field(self, table: str, name: str) -> QWidget:
        """The control of one setting, such as ("sampling", "top_k")."""
        return self._fields[table, name]

    def fields(self, table: str) -> list[QWidget]:
        """The controls of one table."""
        return [widget for (of, _), widget in self._fields.items() if of == table]

    def values(self, table: str) -> dict[str, Any]:
        """What the controls of one table show, by the names of its fields."""
        return {name: _value(widget) for (of, name), widget in self._fields.items() if of == table}

    def show(self, table: str, values: BaseModel) -> None:
        """Show these values of one table; that is no edit."""
        for (of, name), widget in self._fields.items():
            if of == table:
                _set_value(widget, getattr(values, name))

    def add_heading(self, text: str, first: bool = False) -> None:
        """A heading over the rows that follow."""
        heading = label(text, scale="large")
        heading.setContentsMargins(0, 0 if first else 16, 0, 4)
        self.grid.addWidget(heading, self.grid.rowCount(), 0, 1, 2)

    def add_table(self, table: str, model: type[BaseModel]) -> None:
        """A row for each field of `model`. `table`: the name by which its controls and values are asked for."""
        for name, info in model.model_fields.items():
            low, high = 0.0, float(_MAX_INT)
            for limit in info.metadata:
                low, high = float(getattr(limit, "ge", low)), float(getattr(limit, "le", high))
            widget = self._fields[table, name] = self._control(cast(type, info.annotation), low, high)
            widget.setAccessibleName(info.title or name)
            widget.setAccessibleDescription(info.description or "")
            self.add_row(info, widget)

    def _control(self, kind: type, low: float, high: float) -> QWidget:
        if kind is bool:
            check = QCheckBox()
            check.toggled.connect(self.edited)
            return check
        if issubclass(kind, StrEnum):
            combo = Choice(self._theme)
            for value in kind:
                combo.addItem(policy_of(value).label if isinstance(value, Overflow) else value.value, value)
            combo.currentIndexChanged.connect(self.edited)
            return wheel_scrolls(combo)
        if kind is float:
            real = QDoubleSpinBox()
            real.setRange(low, high)
            real.setDecimals(2)
            real.setSingleStep(0.05)
            real.valueChanged.connect(self.edited)
            return wheel_scrolls(roomy(real))
        if high == RANDOM_SEED:
            seed = SeedField()
            seed.edited.connect(self.edited)
            return seed
        whole = QSpinBox()
        whole.setRange(int(low), int(high))
        whole.setGroupSeparatorShown(True)
        whole.valueChanged.connect(self.edited)
        return wheel_scrolls(roomy(whole))

    def add_row(self, info: FieldInfo, widget: QWidget) -> None:
        """Title, llama.cpp's name beside it where there is one, and description; the control at the right."""
        row = self.grid.rowCount()
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
        self.grid.addLayout(words, row, 0, 1, 2)
        self.grid.addWidget(widget, row, 2, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight)
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
