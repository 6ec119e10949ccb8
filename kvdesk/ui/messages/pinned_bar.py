"""The pinned messages of a chat, over its messages: a click goes there."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from PySide6.QtCore import QSize, Qt
from PySide6.QtWidgets import QMenu, QSizePolicy, QToolButton, QWidget

from kvdesk.graphemes import cut
from kvdesk.message import Message, MessageId
from kvdesk.translation import tr
from kvdesk.ui.widgets import boxes
from kvdesk.ui.widgets.controls import ElidedButton, IconButton, link_button, plain_tip
from kvdesk.ui.widgets.kit import Kit

MOST_LISTED: Final = 3  # the others are in a menu
_TEXT: Final = 160  # characters of a message on a line
_IN_MENU: Final = 60
_ICON_PX: Final = 16


class PinnedBar(QWidget):
    """Hidden if nothing is pinned. `go`: to a message."""

    def __init__(self, kit: Kit, go: Callable[[MessageId], None]) -> None:
        super().__init__()
        self._kit, self._theme, self._go = kit, kit.theme, go
        self._shown: tuple[tuple[MessageId, str], ...] = ()
        self.setAccessibleName(tr("Pinned messages"))
        self._column = boxes.column(on=self, margins=(12, 0, 12, 4), spacing=0)
        self._rows: list[QWidget] = []
        kit.theme.changed.connect(self._make_rows)
        self.hide()

    def show_pinned(self, messages: Sequence[Message]) -> None:
        """These messages, the oldest first."""
        shown = tuple((message.id, one_line(message.text)) for message in messages)
        if shown != self._shown:
            self._shown = shown
            self._make_rows()

    def _make_rows(self) -> None:
        """With icons in the colours of the theme."""
        shown = self._shown
        boxes.drop(self._column, *self._rows)
        self._rows = [self._row(name, text) for name, text in shown[:MOST_LISTED]]
        if len(shown) > MOST_LISTED:
            self._rows.append(self._more(shown[MOST_LISTED:]))
        for row in self._rows:
            self._column.addWidget(row)
        self.setVisible(bool(shown))

    def _row(self, name: MessageId, text: str) -> QWidget:
        row = QWidget()
        go = ElidedButton(text, quiet=True, scale="small")
        go.setIcon(self._theme.icon("pin", self._theme.colours.secondary))
        go.setIconSize(QSize(self._theme.px(_ICON_PX), self._theme.px(_ICON_PX)))
        go.setAccessibleName(tr("Go to the pinned message: {text}").format(text=text))
        go.setToolTip(
            plain_tip(text + "\n\n" + tr("Pinned: a click goes there. A pin does not keep it in the context."))
        )
        go.clicked.connect(lambda: self._go(name))
        unpin_it = tr("Unpin: {text}").format(text=text)
        unpin = IconButton(self._theme, "close", unpin_it, tr("Unpin"), clicked=lambda: self._unpin(name))
        boxes.row(go, boxes.Stretch(1), unpin, on=row, margins=0, spacing=0)
        return row

    def _unpin(self, name: MessageId) -> None:
        if (selected := self._kit.store.selected) is not None:
            self._kit.commands.conversations.turns.pin(selected, name, pinned=False)

    def _more(self, rest: Sequence[tuple[MessageId, str]]) -> QWidget:
        button = link_button(tr("{n} more pinned").format(n=len(rest)))
        button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextOnly)
        button.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        button.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Fixed)
        menu = QMenu(button)
        for name, text in rest:
            menu.addAction(cut(text, _IN_MENU).replace("&", "&&"), partial(self._go, name))
        button.setMenu(menu)
        return button


def one_line(text: str) -> str:
    """The beginning of a text on one line, without Markdown's marks at its beginning."""
    words = " ".join(text[: 4 * _TEXT].split())
    return cut(words.lstrip("#>*- ") or words, _TEXT)
