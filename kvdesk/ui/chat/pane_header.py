"""Over the messages: the title, the model as a chip, and the ways to what is beside the chat."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QPoint, QSize, Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QAbstractButton, QWidget

from kvdesk.translation import tr
from kvdesk.ui.chat.model_chip import ModelChip
from kvdesk.ui.chat.overflow_choice import OverflowChoice
from kvdesk.ui.chat.parameters_button import ParametersButton
from kvdesk.ui.widgets import boxes
from kvdesk.ui.widgets.controls import ElidedLabel, IconButton, below, set_tone
from kvdesk.ui.widgets.kit import Kit

if TYPE_CHECKING:
    from kvdesk.ui.tools.tools_choice import ToolsChoice

ONE_LINE_PX: Final = 760  # from here on a title of the usual length and the name of a model have room in one line


class PaneHeader(QWidget):
    """One line if there is room for it, else the title above the model."""

    menu_clicked = Signal(QPoint)  # where the main menu comes to lie

    def __init__(self, kit: Kit) -> None:
        super().__init__()
        self._kit = kit
        self._choice: ToolsChoice | None = None  # made when it is opened
        theme = self._theme = kit.theme
        act = kit.act
        sidebar = IconButton(theme, "sidebar", tr("Show or hide the chats"), clicked=act("view.sidebar"))
        sidebar.setObjectName("sidebarButton")
        inspector = IconButton(
            theme, "inspector", tr("Show or hide the cache inspector"), clicked=act("view.inspector")
        )
        inspector.setObjectName("inspectorButton")
        self._more = IconButton(theme, "more", tr("Menu"))
        self._more.clicked.connect(lambda: self.menu_clicked.emit(below(self._more)))
        self._more.setObjectName("menuButton")
        tip = tr("Branches (Ctrl+Shift+B)")
        self._branches = IconButton(theme, "branches", tr("Branches of this chat"), tip, clicked=act("chat.branches"))
        self._branches.hide()
        self._title = ElidedLabel(weight="strong")
        self._title.setMinimumWidth(64)
        self.model = ModelChip(kit)
        self.parameters = ParametersButton(theme)
        self.parameters.clicked.connect(act("chat.parameters"))
        self.tools = IconButton(theme, "tools", tr("Tools of this chat"), clicked=act("chat.tools"))
        self.overflow = OverflowChoice(theme, self._more)
        icons = boxes.row(self._branches, self.tools, self.parameters, inspector, self._more, margins=0, spacing=8)
        grid = self._grid = boxes.grid(8, 0, 0, 1, on=self, margins=(12, 8, 12, 8))
        grid.addWidget(sidebar, 0, 0)
        grid.addWidget(self._title, 0, 1)
        grid.addLayout(icons, 0, 3)
        self._place_model()
        for button in self.findChildren(QAbstractButton):
            button.setFocusPolicy(Qt.FocusPolicy.TabFocus)  # after a click one goes on in the message box

    def minimumSizeHint(self) -> QSize:
        """As wide as two lines need."""
        size = super().minimumSizeHint()
        lost = self.model.minimumSizeHint().width() + self._grid.horizontalSpacing() if self._is_wide else 0
        return size - QSize(lost, 0)

    @property
    def _is_wide(self) -> bool:
        return self.width() >= self._theme.px(ONE_LINE_PX)

    def _place_model(self) -> None:
        """Behind the title; below it and the icons if one line is too short."""
        row, column, n = (0, 2, 1) if self._is_wide else (1, 1, 3)
        self._grid.addWidget(self.model, row, column, 1, n, Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._place_model()

    def set_branches(self, there: bool) -> None:
        """Whether the chat has several branches."""
        self._branches.setVisible(there)

    def set_title(self, title: str, is_new: bool) -> None:
        self._title.setText(title or (tr("New chat") if is_new else ""))
        set_tone(self._title, "" if title else "secondary")

    def show_tools(self, servers: Sequence[str]) -> None:
        """The servers whose tools the chat has."""
        names = tr(", ").join(servers)
        self.tools.set_ink("accent" if servers else "secondary")
        self.tools.setToolTip(tr("Tools of this chat: {names}").format(names=names or tr("none")))
        self.tools.setAccessibleDescription(names)

    @property
    def tools_choice(self) -> ToolsChoice:
        """The choice of the chat's tools."""
        if self._choice is None:
            from kvdesk.ui.tools.tools_choice import ToolsChoice

            self._choice = ToolsChoice(self._kit, self.tools)
        return self._choice

    def choose_tools(self) -> None:
        """Show the choice of the chat's tools."""
        self.tools_choice.choose()
