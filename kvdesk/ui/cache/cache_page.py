"""The Cache tab: the map, which stays in sight, above operations by hand and what they did, numbers and rulers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from PySide6.QtCore import Qt, QTimer
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QSizePolicy, QStackedWidget, QWidget

from kvdesk.protocol import calls
from kvdesk.protocol.cache import CacheView, SpeedSample
from kvdesk.protocol.features import Feature
from kvdesk.session import Changed
from kvdesk.session.changed import Update
from kvdesk.session.state import branch_of
from kvdesk.translation import marked, tr
from kvdesk.ui.cache.operation_answers import OperationAnswers
from kvdesk.ui.cache.overview import Overview
from kvdesk.ui.map.cell_map import CellMapView
from kvdesk.ui.map.legend import CellLegend
from kvdesk.ui.map.legend_entries import MapLegend
from kvdesk.ui.widgets import boxes
from kvdesk.ui.widgets.controls import ElidedLabel, label, push_button
from kvdesk.ui.widgets.kit import Kit
from kvdesk.ui.widgets.scroll_column import ScrollColumn
from kvdesk.viewmodel.cells.readout import positions_of, totals
from kvdesk.viewmodel.cells.ruler_row import RulerRow, empty_row, together

if TYPE_CHECKING:
    from kvdesk.ui.cache.instruments import Instruments

_POSSIBLE: Final = ~(Changed.VIEW | Changed.GROWTH)
_ROW_PX: Final = 18
_ABOUT: Final = marked(
    "One square is one token, in its chat's colour; grey is free. "
    "The model reads up to the dashed line, the stronger grey too."
)
_MARGIN_PX: Final = 12
_LEAST_MAP_PX: Final = 80
_LEAST_BELOW_PX: Final = 66


class CachePage(QWidget):
    """Shows the cache as it is now. Most of it is made when it is first needed: a person who sees the map and four
    numbers does not wait for it.
    """

    def __init__(self, kit: Kit) -> None:
        super().__init__()
        theme, store = kit.theme, kit.store
        self._kit, self._theme, self._store = kit, theme, store
        self.made_instruments: Instruments | None = None
        """None until they were needed."""
        self.map = CellMapView(theme)
        self.map.described.connect(self._on_described)
        self.map.follow(store)
        self.overview = Overview(kit)
        self._shows_all = False
        self._legend = CellLegend(theme)
        self.map.key_changed.connect(self._on_key_changed)
        self._first, self._second = ElidedLabel(), ElidedLabel(scale="small")
        theme.give_font(self._first, "mono_small")
        about = tr("Removes this conversation's cells from the cache; its text stays.")
        self.forget = push_button(
            tr("Forget cells"),
            tip=f"{about}\n{calls.seq_rm('seq_id', -1, -1)}",
            name=tr("Forget this conversation's cells"),
            scale="small",
            clicked=kit.act("cache.forget"),
        )
        about = tr("Frees the context and makes a new one; every conversation is computed again at its next message.")
        self.rebuild = push_button(
            tr("Rebuild context"),
            tip=f"{about}\n{calls.new_context()}",
            scale="small",
            clicked=kit.act("cache.rebuild"),
        )
        self._lay_out()
        self.show_all(False)
        theme.changed.connect(self._reserve_readout)
        self.answers = OperationAnswers(self, kit)
        self.destroyed.connect(store.listen(self._on_changed, often=(SpeedSample, CacheView)))
        self._on_changed(~Changed.NOTHING, None)

    @property
    def instruments(self) -> Instruments:
        """All of the page but the map and four numbers, made now if they were not yet."""
        if self.made_instruments is None:
            from kvdesk.ui.cache.instruments import make_instruments

            made = self.made_instruments = make_instruments(self._kit, self.map, self.forget, self.rebuild)
            made.effect.dismissed.connect(self._place_undo)
            made.operations.toggled.connect(lambda is_open: self.reveal(made.operations) if is_open else None)
            made.trends.fold.toggled.connect(self._on_trends_toggled)
            made.bar.setContentsMargins(0, 0, _MARGIN_PX, 0)
            self._pinned.insertWidget(0, made.bar)
            for i, widget in enumerate(made[1:-1]):
                self._column.insertWidget(i, widget)
            self._column.insertWidget(self._column.count() - 1, made.trends)
            self._show_instruments()
            self._show_possible()
        return self.made_instruments

    def _on_changed(self, changed: Changed, update: Update | None) -> None:
        if changed is not Changed.NOTHING:
            self._show_changed(changed)
        self.answers.show(changed, update)

    def _show_changed(self, changed: Changed) -> None:
        store = self._store
        if changed & Changed.NUMBERS and store.view is not None:
            self.show_numbers()
        if changed & Changed.FEATURES:
            for button, feature in ((self.forget, Feature.CACHE_OPERATIONS), (self.rebuild, Feature.REBUILD)):
                if missing := store.missing(feature):
                    button.setToolTip(missing)
        if changed & Changed.REBUILDING:
            self.rebuild.setText(tr("Rebuilding…") if store.rebuilding else tr("Rebuild context"))
        if changed & _POSSIBLE:
            self._show_possible()

    def _show_possible(self) -> None:
        """What can be done now: the buttons, and the form of operations by hand."""
        store = self._store
        held = store.cells.get(store.selected, 0) if store.selected is not None else 0
        can_operate = Feature.CACHE_OPERATIONS in store.features and not store.dead and not store.rebuilding
        self.forget.setEnabled(can_operate and held > 0 and not store.is_answering)
        can_rebuild = Feature.REBUILD in store.features and store.context is not None and not store.running
        self.rebuild.setEnabled(can_rebuild and not store.dead and not store.rebuilding)
        if (made := self.made_instruments) is not None:
            made.operations.show_state()
            made.effect.show_undoable(() if store.running or store.dead else store.undoable)
            self._place_undo()

    def show_all(self, shows_all: bool) -> None:
        """All instruments; else the map and four numbers, in words that need no glossary."""
        self._shows_all = shows_all
        if shows_all or self.made_instruments is not None:
            self._show_instruments()
        self.overview.setHidden(shows_all)
        self._key.setCurrentIndex(1 if shows_all else 0)
        self._reserve_readout()

    def _show_instruments(self) -> None:
        for widget in self.instruments.lasting:
            widget.setVisible(self._shows_all)

    def _place_undo(self) -> None:
        """One button: where the effect is shown, else beside the call."""
        self.instruments.operations.offer_undo(not self.instruments.effect.offers_undo)

    def show_numbers(self) -> None:
        """Metrics, rulers and graphs."""
        state = self._store
        if (made := self.made_instruments) is not None:
            made.trends.draw_due()
        if state.view is None:
            return
        snapshot, leases = state.view.snapshot, state.leases
        if not self._shows_all:
            self.overview.show_numbers(totals(snapshot), state.turn)
            return
        colours, titles = state.looks(leases)
        self.instruments.numbers.show_view(state.view, titles)
        rows = []
        for span in snapshot.sequences:
            seq_id = int(span.seq_id)
            if not span.n_cells and seq_id not in colours:
                continue
            lease = leases.get(seq_id)
            of = lease.conversation if lease else None
            rows.append(
                RulerRow(
                    titles[seq_id] if lease and lease.client else state.title(of, seq_id),
                    colours.get(seq_id),
                    span,
                    positions_of(snapshot, span.seq_id),
                    conversation=of or "",
                    branch=branch_of(leases, seq_id),
                )
            )
        shown = state.conversations.get(state.selected) if state.selected else None
        rows = together(rows)
        if shown is not None and all(lease.conversation != shown.id for lease in leases.values()):
            rows.append(empty_row(state.title(shown.id, -1), shown.colour))
        self.instruments.rulers.show_rows(rows, snapshot.n_ctx)

    def set_room(self, height: int) -> None:
        """The map takes at most half of the height of the whole pane."""
        self.map.set_room(round(height / 2))

    def reveal(self, widget: QWidget) -> None:
        """Scroll to a part of the page that has just appeared; to its beginning where it is too high."""

        def scroll() -> None:
            self._scroll.ensureWidgetVisible(widget, 0, 8)
            bar = self._scroll.verticalScrollBar()
            bar.setValue(min(bar.value(), widget.y()))

        QTimer.singleShot(0, self, scroll)

    def _on_trends_toggled(self, is_open: bool) -> None:
        self._column.setStretchFactor(self.instruments.trends, int(is_open))
        if is_open:
            self.reveal(self.instruments.trends)

    def _on_described(self, first: str, second: str) -> None:
        self._first.setText(first)
        self._second.setText(second)
        self._readout.setCurrentIndex(1 if first else 0)

    def _on_key_changed(self, key: MapLegend) -> None:
        self._legend.show_key(key)
        self._reserve_readout()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._reserve_readout()

    def _reserve_readout(self) -> None:
        """Height for the key of the map, and for the two lines about a cell."""
        width, row = self.map.width() - _MARGIN_PX, self._theme.px(_ROW_PX)
        key = (self._legend if self._shows_all else self._about).heightForWidth(width)
        height = max(2 * row, key)
        if height != self._readout.minimumHeight():
            self._readout.setFixedHeight(height)

    def _lay_out(self) -> None:
        lines = QWidget()
        boxes.column(self._first, self._second, on=lines, margins=0, spacing=0)
        self._readout = QStackedWidget()
        about = self._about = label(tr(_ABOUT), tone="secondary", scale="small", wrap=True)
        about.setAlignment(Qt.AlignmentFlag.AlignTop)
        self._key = QStackedWidget()
        self._key.addWidget(about)
        self._key.addWidget(self._legend)
        self._readout.addWidget(self._key)
        self._readout.addWidget(lines)
        content = QWidget()
        all_the_room = boxes.Stretch()  # while the graphs are folded away
        self._column = boxes.column(
            (self.overview, 1), all_the_room, on=content, margins=(0, 0, _MARGIN_PX, 0), spacing=8
        )
        scroll = self._scroll = ScrollColumn(content, tr("The cache as it is"))
        self._readout.setContentsMargins(0, 0, _MARGIN_PX, 0)
        # the map's scroll bar is in the margin: the cells have all of the width
        pinned = self._pinned = boxes.column(self.map, self._readout, margins=0, spacing=8)
        scroll.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Ignored)
        self._theme.follow(self._give_way)
        boxes.column(pinned, (scroll, 1), on=self, margins=0, spacing=8)

    def _give_way(self) -> None:
        """In a low pane the map gives way, and a little of what is below it stays."""
        self.map.give_way(self._theme.px(_LEAST_MAP_PX))
        self._scroll.setMinimumHeight(self._theme.px(_LEAST_BELOW_PX))
