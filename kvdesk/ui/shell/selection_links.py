"""Selected text selects its cells, selected cells mark their text, and either fills the form for operations in;
positions that are selected elsewhere do both. What is looked at on one side, by pointer or keyboard, lights up on the
other for as long as that.
"""

from collections.abc import Sequence

import numpy as np
from PySide6.QtCore import QObject

from kvdesk.message import MessageId, as_read
from kvdesk.session import Changed, Store
from kvdesk.translation import plural, tr
from kvdesk.ui.messages.chat_view import ChatView
from kvdesk.ui.shell.inspector import Inspector
from kvdesk.ui.widgets.access.announce import announce
from kvdesk.ui.widgets.throttle import Throttle
from kvdesk.viewmodel.cells import links

_INTERVAL_MS = 50  # a selection that is drawn with the mouse


class SelectionLinks(QObject):
    """Between the messages of the shown conversation and the map of the cache as it is now."""

    def __init__(self, parent: QObject, state: Store, chat: ChatView, inspector: Inspector) -> None:
        super().__init__(parent)
        self._state, self._chat, self._inspector = state, chat, inspector
        self._wanted: tuple[MessageId, int, int] | None = None
        self._showing = Throttle(self, _INTERVAL_MS, self._show_cells)
        self._chooses = False
        chat.text_selected.connect(self._on_text_selected)
        inspector.cell_map.cells_selected.connect(self._on_cells_selected)
        self._message: MessageId | None = None  # that is looked at
        self._announces = False  # to a screen reader
        self._lighting = Throttle(self, _INTERVAL_MS, self._light_cells)
        self._cell = -1, -1, -1  # that is hovered: cache, stream, cell
        self._pointing = Throttle(self, _INTERVAL_MS, self._point_at_text)
        chat.looked_at.connect(self._on_looked_at)
        inspector.cell_map.view_shown.connect(self._on_view_shown)
        inspector.cell_map.pointed_at.connect(self._on_pointed_at)
        self.destroyed.connect(state.listen(self._on_range, Changed.RANGE))

    def _on_text_selected(self, message: str, first: int, last: int) -> None:
        self._wanted = MessageId(message), first, last
        self._showing.request()

    def _show_cells(self) -> None:
        """The cells of the text that is selected."""
        view, selected = self._state.view, self._state.selected
        spans = self._state.spans.get(selected) if selected else None
        if self._wanted is None or view is None or spans is None:
            return
        message, first, last = self._wanted
        self._inspector.cell_map.show_selection(links.cells_of_text(spans, view.snapshot, message, first, last))
        span = next((span for span in spans.spans if span.message == message), None)
        if span is not None and first < last:
            self._choose(spans.seq_id, *links.positions_of_text(span, first, last))

    def _on_looked_at(self, message: str, by_keyboard: bool) -> None:
        self._message = MessageId(message) if message else None
        self._announces = by_keyboard
        if message:
            self._lighting.request()
        else:
            self._lighting.now()

    def _on_view_shown(self) -> None:
        if self._message is not None:
            self._lighting.request()

    def _light_cells(self) -> None:
        """The cells of the message that is looked at."""
        view, selected, cells = self._state.view, self._state.selected, self._inspector.cell_map
        spans = self._state.spans.get(selected) if selected else None
        span = next((span for span in spans.spans if span.message == self._message), None) if spans else None
        if view is None or spans is None or span is None or not cells.isVisible():
            cells.light(())
            return
        runs = links.cells_of_positions(view.snapshot, spans.seq_id, span.p0, span.p1)
        cells.light(runs)
        if self._announces:
            self._announces = False
            announce(cells, _words(runs))

    def _on_pointed_at(self, cache: int, stream: int, cell: int) -> None:
        self._cell = cache, stream, cell
        if cell < 0:
            self._pointing.now()
        else:
            self._pointing.request()

    def _point_at_text(self) -> None:
        """The word of the cell that is hovered, if the shown conversation has it in sight."""
        (cache, stream, cell), view = self._cell, self._state.view
        places: dict[MessageId, tuple[int, int]] = {}
        spans = self._state.spans.get(self._state.selected) if self._state.selected else None
        if cell >= 0 and view is not None and spans is not None:
            found = links.text_of_cells({spans.seq_id: spans}, view.snapshot, cache, stream, cell, cell + 1)
            places = {one.message: (one.start, one.end) for one in found if one.exact}
        self._chat.point_at(places)

    def _on_cells_selected(self, cache: int, stream: int, first: int, last: int) -> None:
        """The text of the cells that are selected, and their positions."""
        self._chat.clear_highlights()
        view = self._state.view
        if view is None or cache < 0:
            return
        spans = {spans.seq_id: spans for spans in self._state.spans.values()}
        for found in links.text_of_cells(spans, view.snapshot, cache, stream, first, last):
            whole = self._chat.widget_of(found.message)
            end = found.end if found.exact else len(as_read(whole.message).text) if whole else 0
            self._chat.highlight(found.message, found.start, end)
        self._fill_in(cache, stream, first, last)

    def _fill_in(self, cache: int, stream: int, first: int, last: int) -> None:
        """The positions of the selected cells, of the sequence that has most of them; the shown one at a tie."""
        own = self._state.target_of(self._state.selected)
        found = None
        if self._state.view is not None:
            of = own.seq_id if own is not None else -1
            found = links.range_of_cells(self._state.view.snapshot, cache, stream, first, last, of)
        if found is not None:
            self._choose(*found)

    def _choose(self, seq_id: int, p0: int, p1: int) -> None:
        """What was selected here is shown here already."""
        self._chooses = True
        self._state.choose_range(seq_id, p0, p1)
        self._chooses = False

    def _on_range(self, *_heard: object) -> None:
        if not self._chooses:
            self._show_range()

    def _show_range(self) -> None:
        """Positions that were selected elsewhere: their cells, and their text in the shown conversation."""
        view, chosen = self._state.view, self._state.range
        if view is None or chosen is None or chosen.p0 < 0 or chosen.p1 < 0:
            return
        cells = self._inspector.cell_map
        cells.show_selection(links.cells_of_positions(view.snapshot, *chosen))
        self._chat.clear_highlights()
        spans = self._state.spans.get(self._state.selected) if self._state.selected else None
        if spans is None or spans.seq_id != chosen.seq_id:
            return
        for span in spans.spans:
            found = links.text_of_positions(span, np.arange(chosen.p0, chosen.p1, dtype=np.int32))
            if found is not None and found.exact and found.start < found.end:
                self._chat.highlight(found.message, found.start, found.end)


def _words(runs: Sequence[links.CellRun]) -> str:
    """How many cells a message has, and where."""
    n = sum(len(run.cells) for run in runs)
    if not n:
        return tr("None of its tokens is in the cache.")
    first, last = min(int(run.cells[0]) for run in runs), max(int(run.cells[-1]) for run in runs)
    words = plural("It has cell {first} of the map.", "It has %n cells of the map, {first} to {last}.", n)
    return words.format(first=f"{first:,}", last=f"{last:,}")
