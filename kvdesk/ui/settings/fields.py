"""A control for one field of a declared table: what it shows is asked and set in the same way for every kind."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Final, cast, get_origin

from pydantic.fields import FieldInfo
from PySide6.QtCore import SignalInstance
from PySide6.QtWidgets import QCheckBox, QComboBox, QDoubleSpinBox, QSpinBox, QWidget

from kvdesk.policies.overflow import policy_of
from kvdesk.settings import RANDOM_SEED, Mirostat, Overflow, Sampling
from kvdesk.settings.sampling import (
    bias_text,
    checked_text,
    escaped_lines,
    parsed_biases,
    parsed_breakers,
    parsed_stops,
)
from kvdesk.translation import tr
from kvdesk.ui.settings.sampler_order import SamplerOrder
from kvdesk.ui.settings.seed_field import SeedField
from kvdesk.ui.settings.text_field import TextField, grammar_problem, schema_problem
from kvdesk.ui.widgets.controls import Choice, roomy, wheel_scrolls
from kvdesk.ui.widgets.theme import Theme

_MAX_INT: Final = 2**31 - 1
_DECIMALS: Final = 4


class RealField(QDoubleSpinBox):
    """A number with two digits after the point, or up to four where it has them."""

    def __init__(self, low: float, high: float) -> None:
        super().__init__()
        self.setDecimals(_DECIMALS)
        self.setRange(low, high)
        self.setSingleStep(0.05)

    def textFromValue(self, value: float) -> str:
        text = super().textFromValue(value)
        unneeded = min(len(text) - len(text.rstrip("0")), _DECIMALS - 2)
        return text[: len(text) - unneeded]


def bounds(info: FieldInfo) -> tuple[float, float]:
    """The range of a number."""
    low, high = 0.0, float(_MAX_INT)
    for limit in info.metadata:
        low, high = float(getattr(limit, "ge", low)), float(getattr(limit, "le", high))
    return low, high


def control_of(theme: Theme, info: FieldInfo, edited: SignalInstance) -> QWidget:
    """The control of a field. `edited` is sent when a person has changed it."""
    kind: Any = info.annotation
    low, high = bounds(info)
    if kind is bool:
        check = QCheckBox()
        check.toggled.connect(edited)
        return check
    if kind is str or get_origin(kind) is tuple:
        return _long_control(theme, info, edited)
    if issubclass(kind, StrEnum):
        combo = Choice(theme)
        for value in kind:
            combo.addItem(_label_of(value), value)
        combo.currentIndexChanged.connect(edited)
        return wheel_scrolls(combo)
    if kind is float:
        real = RealField(low, high)
        real.valueChanged.connect(edited)
        return wheel_scrolls(roomy(real))
    if high == RANDOM_SEED:
        seed = SeedField()
        seed.edited.connect(edited)
        return seed
    whole = QSpinBox()
    whole.setRange(int(low), int(high))
    whole.setGroupSeparatorShown(True)
    whole.valueChanged.connect(edited)
    return wheel_scrolls(roomy(whole))


def is_wide(control: QWidget) -> bool:
    """Whether it needs the whole width under its description."""
    return isinstance(control, TextField | SamplerOrder)


def value_of(control: QWidget) -> Any:
    """What a control shows."""
    if isinstance(control, QCheckBox):
        return control.isChecked()
    if isinstance(control, QComboBox):
        return control.currentData()
    return cast(QSpinBox | QDoubleSpinBox | SeedField | TextField | SamplerOrder, control).value()


def set_value(control: QWidget, value: Any) -> None:
    """Show a value; that is no edit."""
    before = control.blockSignals(True)
    if isinstance(control, QCheckBox):
        control.setChecked(bool(value))
    elif isinstance(control, QComboBox):
        control.setCurrentIndex(control.findData(value))
    elif isinstance(control, SeedField | TextField | SamplerOrder):
        control.set_value(value)
    else:
        cast(QSpinBox | QDoubleSpinBox, control).setValue(value)
    control.blockSignals(before)


def _long_control(theme: Theme, info: FieldInfo, edited: SignalInstance) -> QWidget:
    """Of a text, or a list."""
    fields = Sampling.model_fields
    field: TextField | SamplerOrder
    if info is fields["samplers"]:
        field = SamplerOrder(theme)
    elif info is fields["logit_bias"]:
        field = TextField(theme, bias_text, parsed_biases)
    elif info is fields["dry_sequence_breakers"]:
        field = TextField(theme, escaped_lines, parsed_breakers)
    elif info is fields["stop"]:
        field = TextField(theme, escaped_lines, parsed_stops)
    elif info is fields["grammar"]:
        field = TextField(theme, str, checked_text, grammar_problem)
    elif info is fields["json_schema"]:
        field = TextField(theme, str, checked_text, schema_problem)
    else:
        field = TextField(theme, str, checked_text)
    field.edited.connect(edited)
    return field


def _label_of(value: StrEnum) -> str:
    if isinstance(value, Overflow):
        return tr(policy_of(value).label)
    if isinstance(value, Mirostat):
        return {Mirostat.OFF: tr("Off"), Mirostat.V1: tr("Mirostat 1"), Mirostat.V2: tr("Mirostat 2")}[value]
    return value.value
