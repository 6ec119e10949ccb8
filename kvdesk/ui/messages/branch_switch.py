"""‹ 2/3 ›: which of several messages at one place is shown, and the way to its neighbours."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtWidgets import QHBoxLayout, QWidget

from kvdesk.chat import MessageId
from kvdesk.translation import tr
from kvdesk.ui.widgets.controls import IconButton, label
from kvdesk.ui.widgets.theme import Theme


class BranchSwitch(QWidget):
    """Hidden where there is only one. `show`: another one; `compare`: put all of them side by side."""

    def __init__(self, theme: Theme, show: Callable[[MessageId], None], compare: Callable[[], None]) -> None:
        super().__init__()
        self._all: tuple[MessageId, ...] = ()
        self._at, self._show = 0, show
        self._before = IconButton(theme, "chevron-left", tr("The version before this one"))
        self._after = IconButton(theme, "chevron-right", tr("The version after this one"))
        self._before.clicked.connect(lambda: self._go(-1))
        self._after.clicked.connect(lambda: self._go(1))
        self.compare = IconButton(theme, "compare", tr("Compare these answers"), tr("Show these answers side by side"))
        self.compare.clicked.connect(compare)
        self._text = label("", tone="secondary", scale="small")
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(0)
        for widget in (self._before, self._text, self._after, self.compare):
            row.addWidget(widget)
        self.hide()

    @property
    def text(self) -> str:
        return "" if self.isHidden() else self._text.text()

    @property
    def buttons(self) -> tuple[IconButton, IconButton]:
        return self._before, self._after

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
