"""Keys outside of fields: what is typed is for the message field, the menu is that of what has the focus, and Enter
presses buttons.
"""

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtGui import QContextMenuEvent, QKeyEvent
from PySide6.QtWidgets import QAbstractButton, QApplication, QWidget


def is_typing(event: QKeyEvent) -> bool:
    """Whether a key writes something. Not a blank, which presses buttons and scrolls."""
    text, modifiers = event.text(), event.modifiers()
    control = bool(modifiers & Qt.KeyboardModifier.ControlModifier)
    alt = bool(modifiers & Qt.KeyboardModifier.AltModifier)
    is_command = control != alt or bool(modifiers & Qt.KeyboardModifier.MetaModifier)  # both together: AltGr
    return not is_command and bool(text) and text.isprintable() and not text.isspace()


def is_menu_key(event: QKeyEvent) -> bool:
    """Shift+F10. The menu key itself is Qt's."""
    is_shift = event.modifiers() == Qt.KeyboardModifier.ShiftModifier
    return is_shift and event.key() == Qt.Key.Key_F10 and QApplication.activePopupWidget() is None


def presses(widget: QWidget | None, event: QKeyEvent) -> bool:
    """Press the button that has the focus by Enter, as Space and dialogs do; False: it is another key or widget."""
    is_enter = event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and not event.isAutoRepeat()
    if not is_enter or not isinstance(widget, QAbstractButton) or not widget.isEnabled():
        return False
    widget.click()
    return True


def open_menu_of(widget: QWidget) -> None:
    """As the menu key does it."""
    at, reason = widget.rect().center(), QContextMenuEvent.Reason.Keyboard
    QApplication.sendEvent(widget, QContextMenuEvent(reason, at, widget.mapToGlobal(at)))


def passes_typing_on(view: QWidget) -> None:
    """A list that would go to the row with the typed letter leaves typing to the window around it."""
    view.installEventFilter(_Passing(view))


class _Passing(QObject):
    """Belongs to the view."""

    def eventFilter(self, _watched: QObject, event: QEvent) -> bool:
        if isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress and is_typing(event):
            event.ignore()  # so that it goes to the widget around
            return True
        return False
