"""Fields for numbers. What cannot be read stays as it was typed and says why; the value is then the one before it.

`kvdesk.numerals` reads what is typed, whatever the language. Qt's own reading takes the other separator for a mark that
groups thousands, or swallows it, and swallows a digit that makes a number too large.
"""

from typing import TYPE_CHECKING, Final

from PySide6.QtCore import Signal
from PySide6.QtGui import QValidator
from PySide6.QtWidgets import QAbstractSpinBox, QDoubleSpinBox, QSpinBox, QToolTip

from kvdesk.numerals import read_real, read_whole
from kvdesk.translation import plural, tr
from kvdesk.ui.widgets.access.announce import announce
from kvdesk.ui.widgets.choice import wheel_scrolls
from kvdesk.ui.widgets.controls import below, restyle

DECIMALS: Final = 4
_LEAST_DECIMALS: Final = 2  # that are shown

if TYPE_CHECKING:

    class _Box(QAbstractSpinBox):
        """What QSpinBox and QDoubleSpinBox have in common."""

        problem_changed: Signal

        def value(self) -> float: ...
        def setValue(self, value: float) -> None: ...
        def minimum(self) -> float: ...
        def maximum(self) -> float: ...
        def textFromValue(self, value: float) -> str: ...

else:
    _Box = object


class NumberField(_Box):
    """What both kinds share. `problem`: why the text is no value of the field; "" if it is one."""

    problem = ""
    _refused: str | None = None
    """The text, if it is no value."""
    _kept = 0.0
    """The value before one began to type."""

    def _prepare(self) -> None:
        """The box exists."""
        wheel_scrolls(self)
        self.lineEdit().textChanged.connect(self._on_text_changed)
        self.editingFinished.connect(self._on_editing_finished)
        self.lineEdit().setTextMargins(6, 0, 6, 0)  # which style sheets do not reach

    def _read(self, text: str) -> float | None:
        raise NotImplementedError

    def _problem_of(self, text: str) -> str:
        """Why `text` is no value of this field; "" if it is one."""
        if text and text == self.specialValueText():
            return ""
        number = self._read(text)
        if number is None:
            return tr("“{text}” is not a number.").format(text=text) if text.strip() else tr("A number is missing.")
        if not self.minimum() <= number <= self.maximum():
            low, high = (f"{limit:,.{DECIMALS}f}".rstrip("0").rstrip(".") for limit in (self.minimum(), self.maximum()))
            return tr("{text} is not between {low} and {high}.").format(text=text, low=low, high=high)
        return ""

    def _value_of(self, text: str) -> float:
        """Of a text without a problem."""
        number = self._read(text)
        return self.minimum() if number is None else number

    def _judge(self, text: str) -> None:
        """Take `text` as what is shown, and say whether it is a value."""
        before, self.problem = self.problem, self._problem_of(text)
        self._refused = text if self.problem else None
        if before == self.problem:
            return
        restyle(self, "refused", bool(self.problem))
        self.problem_changed.emit(self.problem)

    def _on_text_changed(self, text: str) -> None:
        self._judge(text)
        is_special = bool(self.specialValueText()) and self._kept == self.minimum()  # it would take the text's place
        if self.problem and not is_special:
            super().setValue(self._kept)  # what was typed so far may have been a value: "1" on the way to "1x"

    def _on_editing_finished(self) -> None:
        if self.problem:
            announce(self, self.problem)
            QToolTip.showText(below(self), self.problem, self)
        else:
            self._kept = self.value()

    # --- Qt's ---------------------------------------------------------------------------------------------------------

    def validate(self, text: str, pos: int) -> tuple[QValidator.State, str, int]:
        """Nothing is swallowed while it is typed."""
        fits = not self._problem_of(text)
        return QValidator.State.Acceptable if fits else QValidator.State.Intermediate, text, pos

    def fixup(self, text: str) -> str:
        return text

    def textFromValue(self, value: float) -> str:
        """Of the value, or what is refused: Qt asks when the focus leaves."""
        return super().textFromValue(value) if self._refused is None else self._refused

    def setValue(self, value: float) -> None:
        """Also in the place of a text that was refused."""
        self._refused = None
        before = self.lineEdit().text()
        super().setValue(value)
        self._kept = self.value()
        if self.problem and self.lineEdit().text() == before:  # of the same value: Qt does not write it again
            shown = self.textFromValue(value)
            special = self.specialValueText()
            self.lineEdit().setText(special if special and value == self.minimum() else shown)
        self._judge(self.lineEdit().text())

    def stepBy(self, steps: int) -> None:
        """From the last value, where the text is none."""
        if self.problem:
            self.setValue(self.value())
        super().stepBy(steps)
        self._kept = self.value()


class WholeField(NumberField, QSpinBox):  # type: ignore[misc]
    """A whole number, with its thousands grouped."""

    problem_changed = Signal(str)

    def __init__(self, low: int, high: int, *, grouped: bool = True) -> None:
        super().__init__()
        self.setRange(low, high)
        self.setGroupSeparatorShown(grouped)
        self._kept = self.value()
        self._prepare()

    def _read(self, text: str) -> int | None:
        return read_whole(text)

    def value(self) -> int:
        return QSpinBox.value(self)

    def valueFromText(self, text: str) -> int:
        return int(self._value_of(text))


class RealField(NumberField, QDoubleSpinBox):
    """A number with two digits after the point, or up to `decimals` if it has them.

    With `decimals` 0: a whole number that may be larger than those of `WholeField`, which end at 2^31 - 1.
    """

    problem_changed = Signal(str)

    def __init__(self, low: float, high: float, decimals: int = DECIMALS) -> None:
        super().__init__()
        self.setDecimals(decimals)
        self.setRange(low, high)
        self.setSingleStep(0.05 if decimals else 1)
        self._kept = self.value()
        self._prepare()

    def _read(self, text: str) -> float | None:
        return read_real(text) if self.decimals() else read_whole(text)

    def _problem_of(self, text: str) -> str:
        number = self._read(text)
        if number is not None and abs(number) < 1e15 and round(number, self.decimals()) != number:
            said = plural(
                "{text} has more than 1 digit after the point.",
                "{text} has more than %n digits after the point.",
                self.decimals(),
            )
            return said.format(text=text)
        return super()._problem_of(text)

    def value(self) -> float:
        return QDoubleSpinBox.value(self)

    def valueFromText(self, text: str) -> float:
        return self._value_of(text)

    def textFromValue(self, value: float) -> str:
        text = super().textFromValue(value)
        if self._refused is not None:
            return text
        zeros = len(text) - len(text.rstrip(self.locale().zeroDigit()))
        return text[: len(text) - min(zeros, max(self.decimals() - _LEAST_DECIMALS, 0))]
