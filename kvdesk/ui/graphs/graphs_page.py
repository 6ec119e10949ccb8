"""The page with every graph, their time axis and their export."""

from collections.abc import Callable
from pathlib import Path
from typing import Final

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QButtonGroup, QHBoxLayout, QMenu, QToolButton, QWidget

from kvdesk.translation import marked, tr
from kvdesk.ui.graphs.graph_stack import GraphStack
from kvdesk.ui.graphs.picture import write_csv, write_png, write_svg
from kvdesk.ui.graphs.span_graph import SpanGraph
from kvdesk.ui.graphs.time_graph import TimePlot
from kvdesk.ui.widgets import boxes
from kvdesk.ui.widgets.choose_file import ask_where_to_save
from kvdesk.ui.widgets.controls import ElidedLabel, label, push_button, set_tone, tab_button
from kvdesk.ui.widgets.scroll_column import ScrollColumn
from kvdesk.ui.widgets.style.theme import Theme
from kvdesk.viewmodel.graphs.measurements import Measurements

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
        self.picture = QWidget()
        """What is exported as a picture: every graph, also those scrolled out of view."""
        below = label(tr("cells that attention reads (n_kv)"), tone="secondary", scale="small")
        boxes.column(
            (self.stack, 7),
            (self.spans, 1),
            (below, 0, Qt.AlignmentFlag.AlignRight),
            on=self.picture,
            margins=(0, 0, 12, 0),
            spacing=8,
        )
        scroll = ScrollColumn(self.picture, tr("Every graph"))
        scroll.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        line = boxes.row(self._note, margins=(0, 0, 12, 0))
        boxes.column(self._make_tools(), line, (scroll, 1), on=self, margins=0, spacing=4)
        self._on_moved()

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
        self.window_buttons = QButtonGroup(self)
        for i, (name, seconds) in enumerate(_WINDOWS):
            what = tr("Show everything") if seconds is None else tr("Show the last {time}").format(time=tr(name))
            self.window_buttons.addButton(_tool(tr(name), what, what), i)
        self.window_buttons.idClicked.connect(lambda index: self.stack.follow(_WINDOWS[index][1]))
        self.follow_button = _tool(
            tr("Follow"),
            tr("Follow the newest reading"),
            tr("Keep the newest reading in sight (End)") + "\n" + tr(_KEYS),
        )
        self.follow_button.clicked.connect(self.stack.set_following)
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
        windows = boxes.row(*self.window_buttons.buttons(), spacing=4)
        return boxes.row(
            windows, boxes.Gap(8), self.follow_button, boxes.Stretch(1), self._export, margins=(0, 0, 12, 0), spacing=4
        )

    def _on_moved(self) -> None:
        """The buttons show the state of the axis; no window is chosen while it is held."""
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
                tr("{name} could not be written: {why}").format(name=file.name, why=error.strerror or error), "danger"
            )
        else:
            self._show_note(tr("Written: {file}").format(file=file))

    def _show_note(self, text: str, tone: str = "secondary") -> None:
        set_tone(self._note, tone)
        self._note.setText(text)


def _tool(text: str, name: str, tip: str) -> QToolButton:
    button = tab_button(text, name=name, tip=tip)
    button.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
    return button
