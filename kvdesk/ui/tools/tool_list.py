"""The tools of a server, each with its description; those without a tick are offered to no chat."""

from collections.abc import Callable, Sequence
from typing import Final

from PySide6.QtWidgets import QCheckBox, QWidget

from kvdesk.tools.servers import Tool
from kvdesk.ui.widgets import boxes
from kvdesk.ui.widgets.controls import ElidedLabel, plain_tip
from kvdesk.ui.widgets.kit import Kit
from kvdesk.ui.widgets.style.sizes import BOX_PX
from kvdesk.ui.widgets.style.theme import Theme

_TIP_CHARS: Final = 1000


class ToolList(QWidget):
    """A line for each tool. server: its name."""

    def __init__(self, kit: Kit, server: str) -> None:
        super().__init__()
        self._kit, self._server = kit, server
        self._rows: dict[Tool, _ToolRow] = {}
        self._column = boxes.column(on=self, margins=(20, 0, 0, 4), spacing=2)

    @property
    def boxes(self) -> dict[str, QCheckBox]:
        """By the names of the tools."""
        return {tool.name: row.box for tool, row in self._rows.items()}

    def show_tools(self, tools: Sequence[Tool], left_out: Sequence[str]) -> None:
        """These and no others."""
        shown = sorted(tools, key=lambda tool: tool.name)
        boxes.show_rows(self._column, self._rows, shown, lambda tool: _ToolRow(self._kit.theme, tool, self._on_clicked))
        for name, box in self.boxes.items():
            box.setChecked(name not in left_out)

    def _on_clicked(self) -> None:
        left_out = tuple(name for name, box in self.boxes.items() if not box.isChecked())
        self._kit.commands.tools.leave_out(self._server, left_out)


class _ToolRow(QWidget):
    def __init__(self, theme: Theme, tool: Tool, clicked: Callable[[], None]) -> None:
        super().__init__()
        self._theme = theme
        said = tool.description[:_TIP_CHARS]
        self.box = QCheckBox(tool.name)
        self.box.setAccessibleDescription(said)
        self.box.setToolTip(plain_tip(said))
        self.box.clicked.connect(lambda _checked: clicked())
        self._about = ElidedLabel(" ".join(said.split()), tone="secondary", scale="small")
        boxes.column(self.box, self._about, on=self, margins=0, spacing=2)
        theme.changed.connect(self._fit)
        self._fit()

    def _fit(self) -> None:
        self._about.setContentsMargins(self._theme.px(BOX_PX), 0, 0, 4)
