"""Combo boxes that show what has no room, and leave the wheel to the page."""

import sys
from typing import Final

from PySide6.QtCore import QEvent, QObject, QSize, Qt
from PySide6.QtWidgets import QComboBox, QLabel, QStyle, QStyleOptionComboBox, QWidget

from kvdesk.ui.widgets.access.key_tips import tip_text
from kvdesk.ui.widgets.controls import dress, whole_tip

_NAMED_BY_TEXT: Final = sys.platform != "win32"


class Choice(QComboBox):
    """A combo box in which a text that has no room ends in …

    Where no label beside it is its buddy, its name and tooltip are its description: on Linux and macOS the name that Qt
    tells a screen reader is the current text (QAccessibleComboBox::text).
    """

    _described = ""  # by its name and tooltip

    def __init__(self, *, name: str = "", scale: str = "") -> None:
        super().__init__()
        self.setAccessibleName(name)
        wheel_scrolls(self)
        dress(self, scale=scale)

    def event(self, event: QEvent) -> bool:
        if _NAMED_BY_TEXT and event.type() in (QEvent.Type.Polish, QEvent.Type.ToolTipChange):
            self._describe()
        if event.type() == QEvent.Type.ToolTip:
            option = QStyleOptionComboBox()
            self.initStyleOption(option)
            if option.currentText != self.currentText():
                return whole_tip(self, event, self.currentText())
        return super().event(event)

    def sizeHint(self) -> QSize:
        return super().sizeHint() + QSize(2, 0)  # Qt rounds the padding of a style sheet, and its text would be elided

    def minimumSizeHint(self) -> QSize:
        return super().minimumSizeHint() + QSize(2, 0)

    def _describe(self) -> None:
        if self.accessibleDescription() == self._described and self.accessibleName() and not _has_caption(self):
            self._described = ". ".join(filter(None, (self.accessibleName(), tip_text(self.toolTip()))))
            self.setAccessibleDescription(self._described)

    def showPopup(self) -> None:
        """Its texts have room beside a scroll bar too."""
        view = self.view()
        if self.count() > self.maxVisibleItems():
            beside = view.verticalScrollBar().sizeHint().width() + 2 * view.frameWidth()
            view.setMinimumWidth(view.sizeHintForColumn(0) + beside)
        super().showPopup()

    def initStyleOption(self, option: QStyleOptionComboBox) -> None:
        super().initStyleOption(option)
        part = QStyle.SubControl.SC_ComboBoxEditField
        field = self.style().subControlRect(QStyle.ComplexControl.CC_ComboBox, option, part, self)
        elided = Qt.TextElideMode.ElideRight
        option.currentText = self.fontMetrics().elidedText(self.currentText(), elided, field.width())


def _has_caption(choice: QComboBox) -> bool:
    """Whether a label beside it names it."""
    around = choice.parentWidget()
    return around is not None and any(one.buddy() is choice for one in around.findChildren(QLabel))


def small_choice(name: str) -> Choice:
    """One in small letters, as wide as its widest text."""
    choice = Choice(name=name, scale="small")
    choice.setSizeAdjustPolicy(Choice.SizeAdjustPolicy.AdjustToContents)
    return choice


def wheel_scrolls(field: QWidget) -> None:
    """The wheel scrolls the page around a field; it changes the field only while one edits it."""
    field.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
    field.installEventFilter(_WheelFilter(field))


class _WheelFilter(QObject):
    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Wheel and isinstance(watched, QWidget) and not watched.hasFocus():
            event.ignore()
            return True
        return super().eventFilter(watched, event)
