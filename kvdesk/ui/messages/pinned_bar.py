"""The pinned messages of a chat, over its messages: a click goes there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QHBoxLayout, QMenu, QSizePolicy, QToolButton, QVBoxLayout, QWidget

from kvdesk.chat import Message, MessageId
from kvdesk.graphemes import cut
from kvdesk.translation import tr
from kvdesk.ui.widgets.controls import ElidedButton, IconButton, plain_tip
from kvdesk.ui.widgets.kit import Kit

MOST_LISTED: Final = 3  # the others are in a menu
_TEXT: Final = 160  # characters of a message that can stand on a line
_IN_MENU: Final = 60


class PinnedBar(QWidget):
    """Hidden where nothing is pinned. `go`: to a message."""

    def __init__(self, kit: Kit, go: Callable[[MessageId], None]) -> None:
        super().__init__()
        self._kit, self._theme, self._go = kit, kit.theme, go
        self._shown: tuple[tuple[MessageId, str], ...] = ()
        self.setAccessibleName(tr("Pinned messages"))
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(12, 0, 12, 4)
        self._column.setSpacing(0)
        self._rows: list[QWidget] = []
        self.hide()

    @property
    def texts(self) -> tuple[str, ...]:
        """What is listed."""
        return tuple(text for _, text in self._shown)

    @property
    def buttons(self) -> tuple[ElidedButton, ...]:
        return tuple(self.findChildren(ElidedButton)) if self._shown else ()

    def show_pinned(self, messages: Sequence[Message]) -> None:
        """These messages, the oldest first."""
        shown = tuple((message.id, one_line(message.text)) for message in messages)
        if shown == self._shown:
            return
        self._shown = shown
        for row in self._rows:
            self._column.removeWidget(row)
            row.hide()
            row.setParent(None)
            row.deleteLater()
        self._rows = [self._row(name, text) for name, text in shown[:MOST_LISTED]]
        if len(shown) > MOST_LISTED:
            self._rows.append(self._more(shown[MOST_LISTED:]))
        for row in self._rows:
            self._column.addWidget(row)
        self.setVisible(bool(shown))

    def _row(self, name: MessageId, text: str) -> QWidget:
        row = QWidget()
        line = QHBoxLayout(row)
        line.setContentsMargins(0, 0, 0, 0)
        line.setSpacing(0)
        go = ElidedButton(text)
        go.setProperty("quiet", True)
        go.setProperty("scale", "small")
        go.setIcon(self._theme.icon("pin", self._theme.colours.secondary))
        go.setAccessibleName(tr("Go to the pinned message: {text}").format(text=text))
        go.setToolTip(
            plain_tip(text + "\n\n" + tr("Pinned: a click goes there. A pin does not keep it in the context."))
        )
        go.clicked.connect(lambda: self._go(name))
        unpin = IconButton(self._theme, "close", tr("Unpin: {text}").format(text=text), tr("Unpin"))
        unpin.clicked.connect(lambda: self._unpin(name))
        line.addWidget(go)
        line.addStretch(1)
        line.addWidget(unpin)
        return row

    def _unpin(self, name: MessageId) -> None:
        if (selected := self._kit.store.selected) is not None:
            self._kit.commands.pin_message(selected, name, pinned=False)

    def _more(self, rest: Sequence[tuple[MessageId, str]]) -> QWidget:
        button = QToolButton()
        button.setText(tr("%n more pinned", len(rest)))
        button.setProperty("link", "true")
        button.setProperty("scale", "small")
        button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextOnly)
        button.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        button.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Fixed)
        menu = QMenu(button)
        for name, text in rest:
            menu.addAction(cut(text, _IN_MENU).replace("&", "&&"), partial(self._go, name))
        button.setMenu(menu)
        return button


def one_line(text: str) -> str:
    """The beginning of a text on one line, without the marks of Markdown that stand before a line."""
    words = " ".join(text[: 4 * _TEXT].split())
    return cut(words.lstrip("#>*- ") or words, _TEXT)
