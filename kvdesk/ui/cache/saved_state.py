"""A saved KV cache: what is in the file, its layers and tokens, whether it would be restored, how it differs from
another. Shows values; which files are read is not its business.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QObject, QPersistentModelIndex, Qt, Signal
from PySide6.QtWidgets import QAbstractItemView, QScrollArea, QSplitter, QTableView, QWidget

from kvdesk.printable import printable
from kvdesk.state_files import report
from kvdesk.state_files.found import Answer, Numbers, StateFile
from kvdesk.translation import tr
from kvdesk.ui.widgets import boxes
from kvdesk.ui.widgets.controls import label, push_button, set_tone
from kvdesk.ui.widgets.grid import make_plain
from kvdesk.ui.widgets.style.theme import Theme
from kvdesk.values import replace

_ROW_PX: Final = 24
_MEASURED: Final = 200
"""Rows that the width of a column is measured by."""
_TONES: Final = {True: "good", False: "danger", None: "secondary"}
Index = QModelIndex | QPersistentModelIndex
Row = tuple[str, ...]


class SavedStateView(QWidget):
    """`show_answer` with each answer; the signals ask for another one."""

    model_wanted = Signal()
    other_wanted = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self.about, self.reasons, self.difference = (label("", wrap=True, selectable=True) for _ in range(3))
        self.verdict = label("", weight="strong")
        self.layers = _Table(theme, tr("Layers"))
        self.tokens = _Table(theme, tr("Tokens"))
        self.model_button = push_button(
            tr("Restore into a model…"),
            tip=tr("Would llama.cpp take this file into a context of that model, or why not"),
            clicked=self.model_wanted,
        )
        self.other_button = push_button(
            tr("Compare with…"),
            tip=tr("Tokens, cells and numbers of K and V beside those of another file"),
            clicked=self.other_wanted,
        )
        head = boxes.row((self.verdict, 1), self.other_button, self.model_button)
        above = QWidget()
        words = self.reasons, self.difference, self.about
        boxes.column(*words, boxes.Stretch(1), on=above, margins=(0, 0, 12, 8), spacing=8)
        scrolled = QScrollArea()
        scrolled.setFrameShape(QScrollArea.Shape.NoFrame)
        scrolled.setWidgetResizable(True)
        scrolled.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        scrolled.setWidget(above)
        for part in (above, scrolled.viewport()):
            part.setAutoFillBackground(False)
        both = QSplitter(Qt.Orientation.Vertical)
        for part in (scrolled, self.layers, self.tokens):
            both.addWidget(part)
        both.setSizes([200, 360, 240])
        boxes.column(head, (both, 1), on=self, margins=0)

    def show_answer(self, answer: Answer) -> None:
        """The first file, and what was asked of it."""
        file = answer.files[0]
        shown = (replace(one, texts=()) for one in answer.files)  # the table has them
        self.about.setText("\n\n".join("\n".join(report.file_lines(one, by_layer=False)) for one in shown))
        fit = answer.fit
        first, *more = report.fit_lines(fit) if fit is not None else (tr("would restore: no model is chosen"),)
        self.verdict.setText(first[:1].upper() + first[1:])
        set_tone(self.verdict, _TONES[fit.fits if fit is not None else None])
        self.reasons.setText("\n".join(line.strip() for line in more))
        self.reasons.setVisible(bool(more))
        self.difference.setVisible(answer.difference is not None)
        if answer.difference is not None:
            self.difference.setText("\n".join(report.difference_lines(answer.difference, answer.files)))
        layers = list(_layers(file))
        self.layers.show_rows(_layer_columns(), len(layers), layers.__getitem__)
        self.layers.setVisible(bool(layers))
        row_px = self.layers.verticalHeader().defaultSectionSize()
        self.layers.setMaximumHeight(self.layers.horizontalHeader().sizeHint().height() + row_px * (len(layers) + 1))
        tokens = file.tokens or ()
        self.tokens.show_rows(
            (tr("Place"), tr("Token"), *((tr("Text"),) if file.texts else ())),
            len(tokens),
            lambda i: (str(i), str(tokens[i]), *((printable(file.texts[i]),) if file.texts else ())),
        )
        self.tokens.setVisible(bool(tokens))


class _Table(QTableView):
    """Rows of text."""

    def __init__(self, theme: Theme, name: str) -> None:
        super().__init__()
        self.setAccessibleName(name)
        self.setObjectName("rows")
        theme.give_font(self, "mono_small")
        make_plain(self)
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self._theme = theme
        theme.follow(self._fit)
        head = self.horizontalHeader()
        head.setResizeContentsPrecision(_MEASURED)
        head.setDefaultAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        self._rows = _Rows(self)
        self.setModel(self._rows)

    def _fit(self) -> None:
        """Rows as high as the size of the text needs."""
        self.verticalHeader().setDefaultSectionSize(self._theme.px(_ROW_PX))

    def show_rows(self, columns: Sequence[str], n: int, row: Callable[[int], Row]) -> None:
        self._rows.set_rows(columns, n, row)
        self.horizontalHeader().setStretchLastSection(columns[-1] == tr("Text"))
        self.resizeColumnsToContents()


class _Rows(QAbstractTableModel):
    """`row` gives the texts of a row when it is shown: there may be a hundred thousand."""

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._columns: Sequence[str] = ()
        self._n = 0
        self._row: Callable[[int], Row] = lambda _i: ()
        self._numbers = frozenset((*_layer_columns()[4:], tr("Place"), tr("Token")))

    def set_rows(self, columns: Sequence[str], n: int, row: Callable[[int], Row]) -> None:
        self.beginResetModel()
        self._columns, self._n, self._row = columns, n, row
        self.endResetModel()

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008 - Qt's signature
        return 0 if parent.isValid() else self._n

    def columnCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008 - Qt's signature
        return 0 if parent.isValid() else len(self._columns)

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if orientation is not Qt.Orientation.Horizontal:
            return None
        if role == Qt.ItemDataRole.TextAlignmentRole and self._columns[section] in self._numbers:
            return Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
        return self._columns[section] if role == Qt.ItemDataRole.DisplayRole else None

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if role == Qt.ItemDataRole.DisplayRole:
            return self._row(index.row())[index.column()]
        if role == Qt.ItemDataRole.TextAlignmentRole and self._columns[index.column()] in self._numbers:
            return Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
        return None


def _layer_columns() -> Row:
    return (
        *(tr("Cache"), tr("Layer"), tr("Tensor"), tr("Type"), tr("Bytes a cell")),
        *(tr("Mean norm"), tr("Largest norm"), tr("Least"), tr("Greatest"), tr("Not finite")),
    )


def _layers(file: StateFile) -> list[Row]:
    names = [tr(name) for name in report.CACHES]
    rows = []
    for name, streams in zip(names, file.caches, strict=False):
        for number, stream in enumerate(streams):
            where = f"{name} {number}" if len(streams) > 1 else name
            rows += [_row(where, one) for one in sorted(stream.tensors, key=lambda one: (one.layer, one.kind))]
    return rows + [_row(tr("recurrent part"), one) for one in file.state_tensors]


def _row(where: str, one: Numbers) -> Row:
    measured = (one.norm_mean, one.norm_max, one.low, one.high)
    numbers = ("–" if value is None else f"{value:.4g}" for value in measured)
    return where, str(one.layer), one.kind.upper(), one.type, f"{one.row_bytes:,}", *numbers, f"{one.n_bad:,}"
