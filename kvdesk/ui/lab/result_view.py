"""The result of a run: verdict, plots, figures, tables, how it was measured; or two runs side by side."""

from collections.abc import Sequence
from typing import Final

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QScrollArea, QVBoxLayout, QWidget

from kvdesk.protocol.experiment import Parameter, Plot, Table
from kvdesk.session import Commands
from kvdesk.translation import tr
from kvdesk.ui.lab.curves import CurvePlot
from kvdesk.ui.lab.tables import ResultTable
from kvdesk.ui.widgets import boxes
from kvdesk.ui.widgets.controls import label, push_button
from kvdesk.ui.widgets.style.theme import Theme
from kvdesk.viewmodel.lab import PastResult, both, comparison, conditions, differences, figures_table, same_verdict

_BETWEEN: Final = 16  # px from one part to the next


class ResultView(QScrollArea):
    """Verdict, figures, plots and tables."""

    def __init__(self, theme: Theme, commands: Commands) -> None:
        super().__init__()
        self._commands = commands
        self._theme = theme
        self._parts: list[QWidget] = []
        self.setWidgetResizable(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)

    def show_result(self, past: PastResult, parameters: Sequence[Parameter] = ()) -> None:
        """The answer, then the numbers it rests on. `parameters`: of its form, for their names."""
        record = past.record
        result = record.finished.result
        page = self._page()
        page.addWidget(self._verdict(result.verdict.short))
        page.addLayout(self._head(past))
        if result.figures:
            self._add_table(page, figures_table(result.figures))
        for plot in result.plots:
            self._add_plot(page, plot, result.series_names)
        for table in result.tables:
            self._add_table(page, table)
        in_full = (result.verdict.sentence,) if result.verdict.answer else ()
        for sentence in (*in_full, *result.remarks, str(record.finished.load)):
            page.addWidget(_prose(sentence))
        self._add_table(page, conditions(record, parameters))
        page.addStretch(1)

    def _add_plot(self, page: QVBoxLayout, plot: Plot, names: Sequence[str]) -> None:
        drawn = CurvePlot(self._theme)
        drawn.show_plot(plot, names)
        page.addWidget(drawn)

    def show_both(self, first: PastResult, second: PastResult, parameters: Sequence[Parameter] = ()) -> None:
        """Two runs of one experiment."""
        page = self._page()
        page.addWidget(_prose(same_verdict(first.record, second.record), weight="strong"))
        for name, past in (("A", first), ("B", second)):
            page.addLayout(self._head(past, name))
            page.addWidget(self._verdict(past.record.finished.result.verdict.short))
        self._add_table(page, comparison(first.record, second.record))
        self._add_table(page, differences(first.record, second.record, parameters))
        a, b = first.record.finished.result, second.record.finished.result
        together = [both(*plots) for plots in zip(a.plots, b.plots, strict=False)]
        names = [series.name for plot in together for series in plot.series]
        for plot in together:
            self._add_plot(page, plot, names)
        page.addStretch(1)

    def show_words(self, text: str) -> None:
        """In the place of a result."""
        page = self._page()
        page.addWidget(_prose(text))
        page.addStretch(1)

    def _page(self) -> QVBoxLayout:
        """An empty page in place of the one that is shown."""
        page = QWidget()
        page.setObjectName("column")
        column = boxes.column(on=page, margins=(0, 0, 12, 12), spacing=_BETWEEN)
        self.setWidget(page)
        return column

    def _head(self, past: PastResult, name: str = "") -> QHBoxLayout:
        names = [label(name, weight="strong")] if name else []
        seconds = past.record.finished.seconds
        text = tr("{when} UTC · {model} · {form} form · {seconds} s").format(
            when=past.when, model=past.model, form=past.form, seconds=f"{seconds:,.1f}"
        )
        about = label(text, tone="secondary", scale="small", wrap=True)
        button = push_button(
            tr("Open the report"),
            scale="small",
            tip=tr("Open the page with plots, samples and machine in the browser"),
            clicked=lambda: self._commands.lab.open_report(past),
        )
        return boxes.row(*names, (about, 1), button, spacing=8)

    def _verdict(self, sentence: str) -> QWidget:
        """The answer, in a card."""
        card = QFrame()
        card.setProperty("card", "effect")
        text = _prose(sentence, weight="strong")
        text.setProperty("scale", "large")
        boxes.row(text, on=card, margins=(16, 12, 16, 12))
        return card

    def _add_table(self, page: QVBoxLayout, table: Table) -> None:
        if table.rows:
            page.addWidget(ResultTable(self._theme, table))


def _prose(text: str, *, tone: str = "secondary", weight: str = "") -> QLabel:
    return label(text, tone="" if weight else tone, weight=weight, wrap=True, selectable=True)
