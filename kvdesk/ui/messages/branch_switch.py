"""‹ 2/3 ›: which of several messages at one place is shown, and the way to its neighbours."""

from collections.abc import Callable

from PySide6.QtWidgets import QWidget

from kvdesk.message import ConversationId, MessageId
from kvdesk.translation import tr
from kvdesk.ui.widgets import boxes
from kvdesk.ui.widgets.controls import IconButton, label
from kvdesk.ui.widgets.kit import Kit
from kvdesk.ui.widgets.style.theme import Theme


def show_branch(kit: Kit, conversation: ConversationId, message: MessageId) -> None:
    """Show the newest branch that goes through a message, or say why not."""
    if why := kit.store.why_busy:
        kit.store.notify(why)
    else:
        kit.commands.conversations.turns.show_branch(conversation, message)


class BranchSwitch(QWidget):
    """Hidden if there is only one. `show`: another one; `compare`: put all of them side by side."""

    def __init__(self, theme: Theme, show: Callable[[MessageId], None], compare: Callable[[], None]) -> None:
        super().__init__()
        self._all: tuple[MessageId, ...] = ()
        self._at, self._show = 0, show
        before, after = tr("The version before this one"), tr("The version after this one")
        self._before = IconButton(theme, "chevron-left", before, clicked=lambda: self._go(-1))
        self._after = IconButton(theme, "chevron-right", after, clicked=lambda: self._go(1))
        side_by_side = tr("Show these answers side by side")
        self.compare = IconButton(theme, "compare", tr("Compare these answers"), side_by_side, clicked=compare)
        self._text = label("", tone="secondary", scale="small")
        boxes.row(self._before, self._text, self._after, self.compare, on=self, margins=0, spacing=0)
        self.hide()

    def show_branches(self, everyone: tuple[MessageId, ...], own: MessageId, *, can_compare: bool = False) -> None:
        """All messages at this place, in the order they were made, and the one that is shown. `can_compare`: they are
        answers, which can be put side by side.
        """
        self.compare.setVisible(can_compare)
        self._all = everyone
        self._at = everyone.index(own) if own in everyone else 0
        self._text.setText(f"{self._at + 1}/{len(everyone)}")
        said = tr("Version {i} of {n}").format(i=self._at + 1, n=len(everyone))
        self._text.setAccessibleName(said)
        self._text.setToolTip(said)
        self._before.setEnabled(self._at > 0)
        self._after.setEnabled(self._at + 1 < len(everyone))
        self.setVisible(self.has_several)

    @property
    def has_several(self) -> bool:
        return len(self._all) > 1

    def _go(self, by: int) -> None:
        if 0 <= self._at + by < len(self._all):
            self._show(self._all[self._at + by])
