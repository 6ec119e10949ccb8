"""A control for one field of a declared table: what it shows is asked and set in the same way for every kind."""

from enum import StrEnum
from typing import Any, Final, cast, get_origin

from pydantic.fields import FieldInfo
from PySide6.QtCore import QSignalBlocker, SignalInstance
from PySide6.QtWidgets import QCheckBox, QComboBox, QWidget

from kvdesk.grammar.json_schema import gbnf_of
from kvdesk.grammar.state import checked
from kvdesk.policies.overflow import policy_of
from kvdesk.settings import RANDOM_SEED, Mirostat, Overflow, Sampling, ServeSettings, sampling
from kvdesk.translation import tr
from kvdesk.ui.settings.sampler_order import SamplerOrder
from kvdesk.ui.settings.seed_field import SeedField
from kvdesk.ui.settings.text_field import TextField
from kvdesk.ui.widgets.choice import Choice
from kvdesk.ui.widgets.number_fields import RealField, WholeField
from kvdesk.ui.widgets.style.theme import Theme

_MAX_INT: Final = 2**31 - 1


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
        combo = _EnumChoice(kind)
        combo.currentIndexChanged.connect(edited)
        return combo
    if high == RANDOM_SEED:
        seed = SeedField()
        seed.edited.connect(edited)
        return seed
    grouped = info is not ServeSettings.model_fields["port"]
    number = RealField(low, high) if kind is float else WholeField(int(low), int(high), grouped=grouped)
    number.valueChanged.connect(edited)
    number.problem_changed.connect(edited)
    return number


class _EnumChoice(Choice):
    """The values of an enumeration. Qt keeps them as plain texts."""

    def __init__(self, kind: type[StrEnum]) -> None:
        super().__init__()
        self._kind = kind
        for value in kind:
            self.addItem(_label_of(value), value)

    def value(self) -> StrEnum:
        return self._kind(self.currentData())


def is_wide(control: QWidget) -> bool:
    """Whether it needs the whole width under its description."""
    return isinstance(control, TextField | SamplerOrder)


def value_of(control: QWidget) -> Any:
    """What a control shows."""
    if isinstance(control, QCheckBox):
        return control.isChecked()
    if isinstance(control, _EnumChoice):
        return control.value()
    return cast(WholeField | RealField | SeedField | TextField | SamplerOrder, control).value()


def problem_of(control: QWidget) -> str:
    """What is wrong with what a control shows; "" if it is a value."""
    return control.problem if isinstance(control, TextField | SeedField | WholeField | RealField) else ""


def set_value(control: QWidget, value: Any) -> None:
    """Show a value; that is no edit."""
    with QSignalBlocker(control):
        if isinstance(control, QCheckBox):
            control.setChecked(bool(value))
        elif isinstance(control, QComboBox):
            control.setCurrentIndex(control.findData(value))
        elif isinstance(control, SeedField | TextField | SamplerOrder):
            control.set_value(value)
        else:
            cast(WholeField | RealField, control).setValue(value)


def _long_control(theme: Theme, info: FieldInfo, edited: SignalInstance) -> QWidget:
    """Of a text, or a list."""
    fields = Sampling.model_fields
    field: TextField | SamplerOrder
    if info is fields["samplers"]:
        field = SamplerOrder(theme)
    elif info is fields["logit_bias"]:
        field = TextField(theme, sampling.bias_text, sampling.parsed_biases)
    elif info is fields["dry_sequence_breakers"]:
        field = TextField(theme, sampling.escaped_lines, sampling.parsed_breakers)
    elif info is fields["stop"]:
        field = TextField(theme, sampling.escaped_lines, sampling.parsed_stops)
    elif info is fields["grammar"]:
        field = TextField(theme, str, sampling.checked_text, checked)
    elif info is fields["json_schema"]:
        field = TextField(theme, str, sampling.checked_text, gbnf_of)
    else:
        field = TextField(theme, str, sampling.checked_text)
    field.edited.connect(edited)
    return field


def _label_of(value: StrEnum) -> str:
    if isinstance(value, Overflow):
        return tr(policy_of(value).label)
    if isinstance(value, Mirostat):
        return {Mirostat.OFF: tr("Off"), Mirostat.V1: tr("Mirostat 1"), Mirostat.V2: tr("Mirostat 2")}[value]
    return value.value
