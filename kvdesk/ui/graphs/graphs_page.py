"""The page with every graph, their time axis and their export."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from PySide6.QtCore import Qt, Slot
from PySide6.QtWidgets import (
    QButtonGroup,
    QHBoxLayout,
    QMenu,
    QToolButton,
    QWidget,
)

from kvdesk.translation import marked, tr
from kvdesk.ui.graphs.graph_stack import GraphStack
from kvdesk.ui.graphs.picture import write_csv, write_png, write_svg
from kvdesk.ui.graphs.span_graph import SpanGraph
from kvdesk.ui.graphs.time_graph import TimePlot
from kvdesk.ui.widgets import boxes
from kvdesk.ui.widgets.choose_file import ask_where_to_save
from kvdesk.ui.widgets.controls import ElidedLabel, label, push_button, set_tone
from kvdesk.ui.widgets.scroll_column import ScrollColumn
from kvdesk.ui.widgets.theme import Theme
from kvdesk.viewmodel.measurements import Measurements

_WINDOWS: Final[tuple[tuple[str, float | None], ...]] = (
    (marked("30 s"), 30.0),
    (marked("5 min"), 300.0),
    (marked("All"), None),
)
_KEYS: Final = marked(
    "Ctrl and the wheel zoom, a drag moves the time axis; keys: Left, Right, Ctrl+Left, Ctrl+Right, +, -, End"
)


class GraphsPage(QWidget):
    """Every graph over one time axis. Above them how much time is shown, whether it follows, and the export."""

    def __init__(self, theme: Theme, measured: Measurements) -> None:
        super().__init__()
        self._theme, self._measured = theme, measured
        plots = [TimePlot(theme, spec, ticks=spec is measured.graphs[-1]) for spec in measured.graphs]
        self.stack = GraphStack(theme, measured, plots, movable=True)
        for plot in plots:
            plot.zoomed.connect(self.stack.zoom)
            plot.panned.connect(self.stack.pan)
        self.stack.axis.follow(300.0)
        self.stack.moved.connect(self._on_moved)
        self.spans = SpanGraph(theme, measured)
        self._note = ElidedLabel(self.stack.note, tone="secondary", scale="small")
        self.stack.read.connect(self._show_note)
        self._content = QWidget()
        self._content.setObjectName("column")
        boxes.column(
            (self.stack, 7),
            (self.spans, 1),
            _centred(tr("cells that attention reads (n_kv)")),
            on=self._content,
            margins=(0, 0, 12, 0),
            spacing=8,
        )
        scroll = ScrollColumn()
        scroll.setAccessibleName(tr("Every graph"))
        scroll.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        scroll.setWidget(self._content)
        column = boxes.column(self._make_tools(), on=self, margins=0, spacing=4)
        line = boxes.row(self._note, margins=(0, 0, 12, 0))
        column.addLayout(line)
        column.addWidget(scroll, 1)
        self._on_moved()

    @property
    def picture(self) -> QWidget:
        """The widget that is exported as a picture: every graph, also those scrolled out of view."""
        return self._content

    @property
    def note(self) -> str:
        return self._note.full_text

    def export(self, file: Path) -> None:
        """Write a .png or .svg of every graph, or a .csv of every series. Raises OSError, also for another ending."""
        writers: dict[str, Callable[[], None]] = {
            ".png": lambda: write_png(self.picture, self._theme.colours.panel, file),
            ".svg": lambda: write_svg(self.picture, self._theme.colours.panel, file),
            ".csv": lambda: write_csv(self._measured, file),
        }
        write = writers.get(file.suffix.lower())
        if write is None:
            raise OSError(tr("{name} must end in .png, .svg or .csv").format(name=file.name))
        self.stack.draw()
        self.spans.draw()
        write()

    def _make_tools(self) -> QHBoxLayout:
        row = boxes.row(margins=(0, 0, 12, 0), spacing=4)
        self.window_buttons = QButtonGroup(self)
        for i, (name, seconds) in enumerate(_WINDOWS):
            what = tr("Show everything") if seconds is None else tr("Show the last {time}").format(time=tr(name))
            button = _tool(tr(name), what, what)
            self.window_buttons.addButton(button, i)
            row.addWidget(button)
        self.window_buttons.idClicked.connect(self._on_window)
        self.follow_button = _tool(
            tr("Follow"),
            tr("Follow the newest reading"),
            tr("Keep the newest reading in sight (End)") + "\n" + tr(_KEYS),
        )
        self.follow_button.clicked.connect(self._on_follow)
        row.addSpacing(8)
        row.addWidget(self.follow_button)
        row.addStretch(1)
        self._export = push_button(
            tr("Export"),
            scale="small",
            name=tr("Export the graphs"),
            tip=tr("Write the graphs as a picture, or every series as a table"),
        )
        menu = QMenu(self._export)
        for kind, what in (
            ("png", tr("Picture (PNG)…")),
            ("svg", tr("Drawing (SVG)…")),
            ("csv", tr("Every series (CSV)…")),
        ):
            menu.addAction(what).setData(kind)
        menu.triggered.connect(lambda action: self._ask(str(action.data())))
        self._export.setMenu(menu)
        row.addWidget(self._export)
        return row

    @Slot(int)
    def _on_window(self, index: int) -> None:
        self.stack.follow(_WINDOWS[index][1])

    @Slot(bool)
    def _on_follow(self, following: bool) -> None:
        self.stack.set_following(following)

    @Slot()
    def _on_moved(self) -> None:
        """The buttons say how it is; no window is chosen while the axis stands."""
        axis = self.stack.axis
        self.follow_button.setChecked(axis.following)
        chosen = [seconds for _, seconds in _WINDOWS].index(axis.window_s) if axis.following else -1
        self.window_buttons.setExclusive(False)
        for i, button in enumerate(self.window_buttons.buttons()):
            button.setChecked(i == chosen)
        self.window_buttons.setExclusive(True)

    def _ask(self, kind: str) -> None:
        file = ask_where_to_save(self, tr("Export the graphs"), f"kvdesk-graphs.{kind}", f"*.{kind}")
        if file is None:
            return
        try:
            self.export(file)
        except OSError as error:
            self._show_note(
                tr("{name} could not be written: {why}").format(name=file.name, why=error.strerror or error),
                "danger",
            )
        else:
            self._show_note(tr("Written: {file}").format(file=file))

    @Slot(str)
    def _show_note(self, text: str, tone: str = "secondary") -> None:
        set_tone(self._note, tone)
        self._note.setText(text)


def _tool(text: str, name: str, tip: str) -> QToolButton:
    button = QToolButton()
    button.setText(text)
    button.setCheckable(True)
    button.setProperty("tab", True)
    button.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
    button.setAccessibleName(name)
    button.setToolTip(tip)
    return button


def _centred(text: str) -> QWidget:
    result = label(text, tone="secondary", scale="small")
    result.setAlignment(Qt.AlignmentFlag.AlignRight)
    return result
