"""The tools of a server, each with its description; those without a tick are offered to no chat."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from PySide6.QtCore import Slot
from PySide6.QtWidgets import QCheckBox, QWidget

from kvdesk.settings import ToolServer
from kvdesk.tools.servers import Tool
from kvdesk.ui.widgets import boxes
from kvdesk.ui.widgets.controls import ElidedLabel, plain_tip
from kvdesk.ui.widgets.kit import Kit
from kvdesk.ui.widgets.sizes import BOX_PX

_TIP_CHARS: Final = 1000


class ToolList(QWidget):
    """A line for each tool."""

    def __init__(self, kit: Kit, server: ToolServer) -> None:
        super().__init__()
        self._kit, self._server = kit, server
        self._shown: tuple[Tool, ...] = ()
        self.boxes: dict[str, QCheckBox] = {}
        self._abouts: list[ElidedLabel] = []
        kit.theme.changed.connect(self._fit)
        self._column = boxes.column(on=self, margins=(20, 0, 0, 4), spacing=2)

    def show_tools(self, tools: Sequence[Tool]) -> None:
        """These and no others."""
        if tuple(tools) == self._shown:
            return
        self._shown = tuple(tools)
        boxes.clear(self._column)
        self.boxes, self._abouts = {}, []
        for tool in sorted(tools, key=lambda one: one.name):
            box = self.boxes[tool.name] = QCheckBox(tool.name)
            box.setChecked(tool.name not in self._server.left_out)
            box.setAccessibleDescription(tool.description[:_TIP_CHARS])
            box.setToolTip(plain_tip(tool.description[:_TIP_CHARS]))
            box.clicked.connect(self._on_clicked)
            about = ElidedLabel(" ".join(tool.description.split())[:_TIP_CHARS], tone="secondary", scale="small")
            self._column.addWidget(box)
            self._abouts.append(about)
            self._column.addWidget(about)
        self._fit()

    @Slot()
    def _fit(self) -> None:
        for about in self._abouts:
            about.setContentsMargins(self._kit.theme.px(BOX_PX), 0, 0, 4)

    def _on_clicked(self, _checked: bool) -> None:
        left_out = tuple(name for name, box in self.boxes.items() if not box.isChecked())
        self._kit.commands.tools.leave_out(self._server.name, left_out)
