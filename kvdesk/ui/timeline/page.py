"""The Timeline tab: every operation, and the map as any of them left it.

Without a choice it follows what happens. Once a row, the slider or a step chose an operation the map shows the state
after it, under a band that says so, until "Back to now".
"""

from datetime import datetime
from functools import partial
from typing import Final

from PySide6.QtCore import QModelIndex, Qt
from PySide6.QtGui import QFontMetrics, QShowEvent
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractItemView,
    QFrame,
    QHeaderView,
    QSizePolicy,
    QStackedWidget,
    QTableView,
    QWidget,
)

from kvdesk.cache.journal.recording import Recording
from kvdesk.errors import UserError
from kvdesk.protocol.cache import CacheView, ContextReady, OperationDone, RecordingTaken, SpeedSample, TakeRecording
from kvdesk.protocol.chat import ModelLoaded
from kvdesk.quantities import operations_text
from kvdesk.session import Changed, Commands, Store
from kvdesk.session.changed import Update
from kvdesk.session.state import History
from kvdesk.translation import plural, tr
from kvdesk.ui.map.small_map import SmallMap
from kvdesk.ui.operations.effect_view import EffectView
from kvdesk.ui.timeline.model import ROW_PX, ROW_ROLE, TimelineDelegate, TimelineHead, TimelineModel
from kvdesk.ui.timeline.rows import Shown
from kvdesk.ui.timeline.scrubber import Scrubber
from kvdesk.ui.widgets import boxes
from kvdesk.ui.widgets.access.typing import passes_typing_on
from kvdesk.ui.widgets.choice import Choice
from kvdesk.ui.widgets.choose_file import ask_where_to_save
from kvdesk.ui.widgets.controls import ElidedLabel, label, push_button
from kvdesk.ui.widgets.grid import make_plain
from kvdesk.ui.widgets.scroll_column import ScrollColumn
from kvdesk.ui.widgets.style.theme import Theme
from kvdesk.ui.widgets.throttle import Throttle
from kvdesk.viewmodel.cells.effect_text import took
from kvdesk.viewmodel.palette import N_COLOURS

ASK_MS: Final = 500  # a recording is asked for at most this often
_DRAW_MS: Final = 50
_UNIX_S: Final = 1e9  # 2001: a time below it counts from the start of a log
_MOST_FITTED: Final = 20_000  # rows that may be of different heights


class TimelinePage(QWidget):
    """Shows a recording. `live`: there is a cache now, and newer recordings can be had for the asking; the one of the
    context before it can be chosen instead.
    """

    def __init__(self, theme: Theme, store: Store, commands: Commands, live: bool = True) -> None:
        super().__init__()
        self._theme = theme
        self._state, self._commands, self._live = store, commands, live
        self._recording: Recording | None = None  # that is shown
        self._newest: Recording | None = None
        self.at: int | None = None
        """The operation whose state is shown; None while it follows what happens."""
        self._stale = True
        self._choosing = True  # the row becomes current by hand
        self.model = TimelineModel(self)
        self.map = SmallMap(theme, tr("Map of the cache after the operation that is shown"), 80)
        self.map.show_token_texts(store.texts)
        self._band = QFrame()
        self._band.setProperty("card", "history")
        self._band_text = label("", wrap=True)
        self._now = push_button(tr("Back to now"), scale="small", clicked=self.follow)
        self._following = label(
            tr("The map is live. Choose an operation to see the map after it."),
            tone="secondary",
            scale="small",
            wrap=True,
        )
        self._state_line = QStackedWidget()  # as high with either: a click that brings the band moves no row under it
        self._state_line.addWidget(self._following)
        self._state_line.addWidget(self._band)
        self._state_line.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Maximum)
        self.scrubber = Scrubber(theme)
        self.scrubber.moved.connect(self.show_operation)
        self.scrubber.stepped.connect(self._on_stepped)
        self.filter = Choice(scale="small", name=tr("Operations that are listed"))
        for shown in Shown:
            self.filter.addItem(tr(shown.value), shown)
        self.filter.currentIndexChanged.connect(self._on_filter_changed)
        self.which = Choice(scale="small", name=tr("Context whose journal is shown"))
        self.which.addItems([tr("Journal of this context"), tr("Journal before the rebuild")])
        self.which.currentIndexChanged.connect(self._on_which_changed)
        self.which.hide()
        self._count = ElidedLabel(tone="secondary", scale="small")
        self._export = push_button(
            tr("Export…"),
            scale="small",
            tip=tr("Saves the journal as JSON lines; `kvdesk replay FILE` opens it without a model"),
            clicked=self._on_export_clicked,
        )
        self._at_end = True  # of the list
        self.view = self._make_list(theme)
        theme.follow(self._fit_rows)
        self._what = label("", weight="strong", scale="small", wrap=True)
        self._call = label("", family="mono", wrap=True, selectable=True)
        self._about = label("", tone="secondary", scale="small", wrap=True)
        self._effect = EffectView(theme, commands, closable=False)
        self._lay_out()
        self._asking = Throttle(self, ASK_MS, self._ask)
        self._drawing = Throttle(self, _DRAW_MS, self._draw)
        self._show_position()
        self.which.setVisible(store.past is not None)
        self.destroyed.connect(store.listen(self._on_changed))

    def _on_changed(self, _changed: Changed, update: Update | None) -> None:
        match update:
            case SpeedSample() | CacheView() | OperationDone():
                self.note_change()
            case ContextReady():
                self._reset()
            case ModelLoaded():  # what the tokens of the one before were is not known any more
                self.which.setCurrentIndex(0)
                self.which.hide()
            case RecordingTaken():
                if update.is_over:
                    self.which.setVisible(self._state.past is not None)
                else:
                    self.show_recording(update.recording)

    @property
    def is_past(self) -> bool:
        """Whether the context before this one is shown."""
        return self._state.past is not None and self.which.currentIndex() == 1

    def set_room(self, height: int) -> None:
        """Height of the whole pane: the map takes a part of it that leaves room for the list."""
        self.map.set_room(max(80, min(round(height * 0.3), height - 460)))

    def note_change(self) -> None:
        """Something has happened to the cache: what is known here is old."""
        self._stale = True
        if self._live and self.isVisible():
            self._asking.request()

    def _reset(self) -> None:
        """Another context: a new journal begins."""
        self._newest = None
        self.which.setCurrentIndex(0)
        self._change_recording(None)
        self.note_change()

    def show_recording(self, recording: Recording) -> None:
        """The recording shown now."""
        self._newest = recording
        if not self.is_past:
            self._show_recording(recording)

    def _show_recording(self, recording: Recording) -> None:
        self._recording = recording
        self.model.show_recording(recording)
        if self.at is not None and not recording.start <= self.at:
            self.at = recording.start
        self._show_position()
        self._drawing.request()

    def _on_scrolled(self, value: int) -> None:
        if most := self.view.verticalScrollBar().maximum():  # 0 while the list is filled again
            self._at_end = value >= most - 4 * self._theme.px(ROW_PX)

    def _on_range_changed(self) -> None:
        """More operations, or a lower list: the last one stays in sight while it follows, of a file the chosen one."""
        if self.at is None and self._at_end:
            self.view.scrollToBottom()
        elif not self._live:
            self.view.scrollTo(self.view.currentIndex())

    def show_operation(self, number: int) -> None:
        """The state after operation `number`; at the last one of a live recording it still does not follow."""
        if self._recording is None:
            return
        self.at = min(max(number, self._recording.start), max(self._recording.last, self._recording.start))
        row = self.model.rows.row_of(self.model.shown, self.at)
        index = self.model.index(row)
        if index.isValid() and index != self.view.currentIndex():
            self._choosing = False
            self.view.setCurrentIndex(index)  # scrolls there
            self._choosing = True
        self._show_position()
        self._drawing.request()

    def follow(self) -> None:
        """Back to now."""
        self.which.setCurrentIndex(0)
        self.at = None
        self.scrubber.stop()
        self._choosing = False
        self.view.setCurrentIndex(QModelIndex())
        self._choosing = True
        self.view.scrollToBottom()
        self._show_position()
        self._drawing.request()

    def _on_which_changed(self) -> None:
        past = self._state.past[0] if self._state.past is not None and self.is_past else None
        self._change_recording(past or self._newest)
        if past is not None:
            self.show_operation(past.last)

    def _change_recording(self, recording: Recording | None) -> None:
        """Another journal, at its end."""
        self.scrubber.stop()
        self._recording = self.at = None
        self.model.show_recording(None)
        if recording is None:
            self._show_position()
        else:
            self._show_recording(recording)

    @property
    def _history(self) -> History:
        past = self._state.past
        return past[1] if past is not None and self.is_past else self._state.history

    def _on_stepped(self, by: int) -> None:
        last = self._recording.last if self._recording else 0
        here = last if self.at is None else self.at
        start = self._recording.start if self._recording else 0
        number = self.model.rows.step(here, by)
        self.show_operation(start if by < 0 and number == here else number)

    def _on_current_changed(self, index: QModelIndex) -> None:
        if index.isValid() and self._choosing:
            self.scrubber.stop()
            row, _ = index.data(ROW_ROLE)
            self.show_operation(row.main)

    def _on_filter_changed(self) -> None:
        self.model.set_shown(Shown(self.filter.currentData()))
        if self.at is None:
            self.view.scrollToBottom()
        else:
            self.show_operation(self.at)

    def _on_export_clicked(self) -> None:
        if self._recording is None:
            return
        if file := ask_where_to_save(
            self, tr("Export the journal"), "kvdesk-journal.jsonl", tr("JSON lines (*.jsonl)")
        ):
            self._commands.save_recording(file, self._recording)

    def _ask(self) -> None:
        if self._live and self._stale and self.isVisible():
            self._stale = False
            self._commands.submit(TakeRecording())

    def _draw(self) -> None:
        """The map after the operation that is shown."""
        recording = self._recording
        if recording is None:
            return
        number = max(recording.last, recording.start) if self.at is None else self.at
        try:
            maps = recording.state_at(number)
        except UserError as error:
            self._about.setText(str(error))
            return
        leases = self._history.leases_at(number)
        colours, titles = self._state.looks(leases)
        if not leases:
            colours = {seq: seq % N_COLOURS for seq in range(256)}  # without owners: by sequence
        self.map.show_maps(maps, number, colours, titles)

    def _show_position(self) -> None:
        recording = self._recording
        first, last = (recording.start, max(recording.last, recording.start)) if recording else (0, 0)
        at = last if self.at is None else self.at
        self.scrubber.show_range(first, last, at)
        self._export.setEnabled(recording is not None and len(recording) > 0)
        n = operations_text(len(recording)) if recording else ""
        self._count.setText(n)
        self._state_line.setCurrentIndex(1 if self.at is not None or not self._live else 0)
        self._now.setVisible(self._live)
        tail = (
            tr(", before the rebuild")
            if self.is_past
            else tr(", not now")
            if self._live
            else tr(" of {last}").format(last=f"{last:,}")
        )
        self._band_text.setText(tr("State after operation {at}{tail}").format(at=f"{at:,}", tail=tail))
        self._show_details(at)

    def _show_details(self, number: int) -> None:
        """The call, its time, reason and cells. Cells placed and freed only for the chosen row: that takes time."""
        entry = self.model.entry(number)
        if entry is None:
            nothing = tr("Every operation on the cache will be listed here, with its call and duration.")
            begin = tr("The journal begins here.") if self._recording is not None and self._recording.last else nothing
            self._what.setText("")
            self._call.setText("")
            self._about.setText(begin)
            self._effect.hide()
            return
        operation = entry.operation
        known = next((c for c in self._state.conversations.values() if c.id == operation.conversation), None)
        who = f"  ·  {known.title}" if known else ""
        self._what.setText(f"{operation.number:,}  {operation.name}{who}")
        self._call.setText(operation.call)
        cells = plural("1 cell changed", "%n cells changed", entry.n_cells)
        time = tr("took {took}").format(took=took(operation.ms)) if operation.ms else ""
        facts = (_when(operation.at_s), time, f"{cells}{self._difference(number)}")
        about = [tr("{facts}.").format(facts=tr(", ").join(filter(None, facts)))]
        if operation.reason:
            about.append(tr("Why: {reason}.").format(reason=operation.reason))
        self._about.setText(" ".join(about))
        done = self._history.effects.get(number)
        if done is None:
            self._effect.hide()
            return
        self._effect.show_effect(done, partial(self._state.title_after, done), self._state.texts)
        self._effect.show_undoable(() if self.is_past else self._state.undoable)

    def _difference(self, number: int) -> str:
        if self.at is None or self._recording is None or self.scrubber.is_playing:
            return ""
        try:
            changes = self._recording.difference(number)
        except UserError:
            return ""
        placed, freed = sum(c.n_placed for c in changes), sum(c.n_freed for c in changes)
        return tr(": {placed} placed, {freed} freed").format(placed=f"{placed:,}", freed=f"{freed:,}")

    def _colour_of(self, conversation: str) -> int | None:
        known = next((c for c in self._state.conversations.values() if c.id == conversation), None)
        return known.colour if known else None

    def _fit_rows(self) -> None:
        """Rows as high as the size of the text needs."""
        view, row = self.view, self._theme.px(ROW_PX)
        view.verticalHeader().setMinimumSectionSize(row)
        view.verticalHeader().setDefaultSectionSize(row)
        view.setMinimumHeight(3 * row)
        view.verticalScrollBar().setSingleStep(row)
        self._fit_lines(0, self.model.rowCount() - 1)

    def _fit_lines(self, first: int, last: int) -> None:
        """Rows whose text takes several lines are higher. Of a very long journal none are."""
        if self.model.rowCount() > _MOST_FITTED:
            return
        row, line = self._theme.px(ROW_PX), QFontMetrics(self._theme.small).lineSpacing()
        for i in range(first, last + 1):
            if (lines := self.model.rows.row(self.model.shown, i).lines) > 1:
                self.view.setRowHeight(i, row + (lines - 1) * line)

    def _make_list(self, theme: Theme) -> QTableView:
        """A table of one column: unlike a list view it does not ask the model about every row to lay them out."""
        view = QTableView()
        passes_typing_on(view)
        view.setModel(self.model)
        delegate = TimelineDelegate(theme, self._colour_of, view)
        delegate.folded.connect(self.model.toggle)
        view.setItemDelegate(delegate)
        view.activated.connect(lambda index: self.model.toggle(index.row()))
        self.model.rowsInserted.connect(lambda _parent, first, last: self._fit_lines(first, last))
        self.model.modelReset.connect(lambda: self._fit_lines(0, self.model.rowCount() - 1))
        view.setAccessibleName(tr("Operations"))
        make_plain(view)
        view.setFrameShape(QFrame.Shape.NoFrame)
        view.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        view.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        view.horizontalHeader().hide()
        view.horizontalHeader().setStretchLastSection(True)
        rows = view.verticalHeader()
        rows.setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        for corner in view.findChildren(QAbstractButton):  # Qt's own, hidden with the headers
            corner.setAccessibleName(tr("All operations"))
        # By rows Qt lays the last one to the lower edge, and all jump by a part of one as soon as another follows.
        view.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        view.verticalScrollBar().valueChanged.connect(self._on_scrolled)
        view.verticalScrollBar().rangeChanged.connect(self._on_range_changed)
        view.selectionModel().currentChanged.connect(self._on_current_changed)
        return view

    def _lay_out(self) -> None:
        boxes.row((self._band_text, 1), self._now, on=self._band, margins=(12, 4, 4, 4))
        tools = boxes.row(self.filter, (self._count, 1), self._export, spacing=8)
        details = QWidget()
        parts = self._what, self._call, self._about, self._effect
        boxes.column(*parts, boxes.Stretch(1), on=details, margins=(0, 0, 8, 0), spacing=4)
        scroll = ScrollColumn(details, tr("What the operation did"))
        scroll.setMinimumHeight(40)
        listed = boxes.column(TimelineHead(self._theme, self.model, self.view), (self.view, 1), spacing=0)
        boxes.column(
            self._state_line,
            self.map,
            self.scrubber,
            (self.which, 0, Qt.AlignmentFlag.AlignLeft),
            tools,
            (listed, 3),
            (scroll, 2),
            on=self,
            margins=(0, 0, 12, 0),
            spacing=8,
        )

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        if self._live:
            self._asking.request()


def _when(at_s: float) -> str:
    """The time of an operation, "" if it is unknown."""
    if 0 < at_s < _UNIX_S:
        return tr("{seconds} s after the start of the log").format(seconds=f"{at_s:,.3f}")
    return datetime.fromtimestamp(at_s).astimezone().strftime("%H:%M:%S") if at_s > 0 else ""
