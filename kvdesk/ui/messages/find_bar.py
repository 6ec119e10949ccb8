"""Over the messages: what is to be found in the chat that is open, how often it is there, the way from hit to hit."""

from typing import Final

from PySide6.QtCore import QEvent, QSignalBlocker, Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QFrame, QLineEdit

from kvdesk.message import MessageId
from kvdesk.translation import tr
from kvdesk.ui.messages.chat_view import ChatView
from kvdesk.ui.widgets import boxes
from kvdesk.ui.widgets.access.announce import announce
from kvdesk.ui.widgets.access.input_method import composes
from kvdesk.ui.widgets.controls import IconButton, label, set_tone
from kvdesk.ui.widgets.kit import Kit
from kvdesk.viewmodel.chat.find_in_chat import MOST, Finder, Hit, nearest

_MOST: Final = 100  # characters of what is selected that are looked for


class FindBar(QFrame):
    """Hidden until it is asked for. Enter and Shift+Enter go on and back, round and round; `leave` (Esc) closes it."""

    def __init__(self, kit: Kit, view: ChatView) -> None:
        super().__init__()
        theme = kit.theme
        self._kit, self._view = kit, view
        self._finder = Finder()
        self._hits: tuple[Hit, ...] = ()
        self._at = -1
        self._behind = 0  # without a current hit: the first one behind where one was
        self.setProperty("card", "ask")
        self.setAccessibleName(tr("Find in this chat"))
        self.field = _Field()
        self.field.setPlaceholderText(tr("Find in this chat"))
        self.field.setAccessibleName(tr("Find in this chat"))
        self.field.textChanged.connect(self._on_text_changed)
        self.field.stepped.connect(self.step)
        composes(self.field)
        self._count = label("", tone="secondary", scale="small")
        before, after = tr("The hit before (Shift+Enter, Shift+F3)"), tr("The next hit (Enter, F3)")
        self._before = IconButton(theme, "chevron-up", tr("The hit before"), before, clicked=lambda: self.step(-1))
        self._after = IconButton(theme, "chevron-down", tr("The next hit"), after, clicked=lambda: self.step(1))
        close = IconButton(theme, "close", tr("Close"), tr("Close (Esc)"), clicked=self.leave)
        boxes.row(
            (self.field, 1), self._count, self._before, self._after, close, on=self, margins=(8, 4, 4, 4), spacing=4
        )
        view.texts_changed.connect(self._on_texts_changed)
        self.hide()

    @property
    def count(self) -> str:
        """How many hits there are, and which is the current one."""
        return self._count.text()

    @property
    def buttons(self) -> tuple[IconButton, IconButton]:
        """The hit before, and the next one."""
        return self._before, self._after

    def ask(self) -> None:
        """Look for what is selected in a message, else for what was looked for before, and ask for another text."""
        self.show()
        where, selected = self._view.selected
        text = " ".join(selected.split())
        if text and len(text) <= _MOST:
            with QSignalBlocker(self.field):
                self.field.setText(text)
        self.field.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self.field.selectAll()
        self._find(where)

    def step(self, by: int) -> None:
        """Go to the next hit (1), or the one before (-1)."""
        if self._hits:
            here = self._at if self._at >= 0 else self._behind - (by > 0)
            self._at = (here + by) % len(self._hits)
            self._show()

    def leave(self) -> None:
        """Nothing is marked any more."""
        if not self.isHidden():
            self.hide()
            self._hits, self._at = (), -1
            self._finder.forget()
            self._view.mark_found(())
            self._kit.actions.run("chat.write")

    def _on_text_changed(self) -> None:
        self._find(self._hits[self._at].message if self._at >= 0 else None)

    def _find(self, where: MessageId | None) -> None:
        """From a message on, or from where one reads."""
        self._hits = self._finder.hits(self._view.messages, self.field.text())
        self._at = nearest(self._hits, self._view.messages, where or self._view.first_seen)
        self._show()

    def _on_texts_changed(self) -> None:
        """What one reads stays where it is."""
        if self.isHidden() or not self.field.text():
            return
        self._finder.forget()
        here = self._hits[self._at] if self._at >= 0 else None
        before = frozenset(self._hits[: self._at if self._at >= 0 else self._behind])
        self._hits = self._finder.hits(self._view.messages, self.field.text())
        self._at = self._hits.index(here) if here in self._hits else -1
        self._behind = sum(hit in before for hit in self._hits)
        self._view.mark_found((self.field.text(),))
        self._show_count()

    def _show(self) -> None:
        words = (self.field.text(),) if self._hits else ()
        hit = self._hits[self._at] if self._hits else None
        self._view.mark_found(words, hit.message if hit is not None else None, hit.at if hit is not None else -1)
        self._show_count()
        announce(self, self.count)

    def _show_count(self) -> None:
        n = f"{len(self._hits):,}" + ("+" if len(self._hits) == MOST else "")
        found = tr("{i} of {n}").format(i=f"{self._at + 1:,}", n=n)
        self._count.setText((found if self._hits else tr("Nothing found")) if self.field.text() else "")
        set_tone(self._count, "secondary" if self._hits else "warning")
        for button in self.buttons:
            button.setEnabled(bool(self._hits))


class _Field(QLineEdit):
    stepped = Signal(int)

    def event(self, event: QEvent) -> bool:
        pressed = event if isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress else None
        if pressed is not None and pressed.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.stepped.emit(-1 if pressed.modifiers() & Qt.KeyboardModifier.ShiftModifier else 1)
            return True
        return super().event(event)
