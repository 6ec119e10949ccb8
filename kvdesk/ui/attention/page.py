"""The Attention tab: which token is looked from, what that costs, and what it looked at by cell, word and head."""

from typing import Final

from PySide6.QtCore import Qt
from PySide6.QtGui import QHideEvent, QKeyEvent, QShowEvent
from PySide6.QtWidgets import QCheckBox, QWidget

from kvdesk.protocol.attention import Attend, AttentionPreview, PreviewAttention, Queries
from kvdesk.protocol.cache import CacheView
from kvdesk.quantities import seconds_text
from kvdesk.session import Changed
from kvdesk.session.changed import Update
from kvdesk.translation import plural, tr
from kvdesk.ui.attention.choices import LookChoices
from kvdesk.ui.attention.head_grid import HeadGrid
from kvdesk.ui.attention.spot_row import SpotRow, token_at
from kvdesk.ui.attention.table import AttendedTable
from kvdesk.ui.map.cell_map import CellMapView
from kvdesk.ui.map.colours import ColourBy
from kvdesk.ui.map.legend import CellLegend
from kvdesk.ui.map.legend_entries import MapLegend
from kvdesk.ui.widgets import boxes
from kvdesk.ui.widgets.access.announce import announce
from kvdesk.ui.widgets.collapsible import Collapsible
from kvdesk.ui.widgets.controls import ElidedLabel, label, push_button, set_tone
from kvdesk.ui.widgets.kit import Kit
from kvdesk.ui.widgets.scroll_column import ScrollColumn
from kvdesk.ui.widgets.throttle import Throttle
from kvdesk.values import replace
from kvdesk.viewmodel.cells import attention
from kvdesk.viewmodel.cells.attention import Shown, Spot
from kvdesk.viewmodel.cells.head_pictures import Heads
from kvdesk.viewmodel.cells.links import cells_of_positions, range_of_cells
from kvdesk.viewmodel.cells.readout import megabytes

_MAP_SHARE: Final = 0.2  # of the height of the pane
_ASK_MS: Final = 300
_AT_ONCE_S: Final = 1.0
_MARGIN_PX: Final = 12


class AttentionPage(QWidget):
    """Nothing is computed before a person asks for it, and has read the price."""

    def __init__(self, kit: Kit) -> None:
        super().__init__()
        self._kit, self._theme, self._store = kit, kit.theme, kit.store
        self._asked: Queries | None = None  # whose price was asked for last
        self._cell = -1, -1, -1  # cache, stream and cell under the cursor of the map
        self._drawn: Shown | None = None
        self._chooses = False  # a row is selected in the table
        self._make_controls()
        self.map = CellMapView(kit.theme)
        self.map.set_colour_by(ColourBy.ATTENTION)
        self.map.show_token_texts(kit.store.texts)
        self.map.setAccessibleName(tr("Map of the cells that were looked at"))
        self.map.cells_selected.connect(self._on_cells_selected)
        self.map.pointed_at.connect(self._on_pointed_at)
        self.map.setToolTip(tr("Space selects a cell, Enter looks from it"))
        self._legend = CellLegend(kit.theme)
        self.map.key_changed.connect(self._on_key_changed)
        self._about = ElidedLabel(tone="secondary", scale="small")  # the cell or head that is looked at
        self.map.described.connect(lambda first, second: self._about.setText(f"{first}  ·  {second}".strip(" ·")))
        self.table = AttendedTable(kit.theme)
        self.table.chosen.connect(self._on_row_chosen)
        self.heads = HeadGrid(kit.theme)
        self.heads.chosen.connect(self._on_head_chosen)
        self.heads.described.connect(self._on_head_described)
        self._title = label("", weight="strong", scale="small", wrap=True)
        hint = tr(
            "Click a word of the chat or select a cell, then compute: map, words and table show what it looked at."
        )
        self._hint = label(hint, tone="secondary", scale="small", wrap=True)
        self._lay_out()
        self._pricing = Throttle(self, _ASK_MS, self._ask_price)
        self.destroyed.connect(kit.store.listen(self._on_changed))
        self._show()

    def _make_controls(self) -> None:
        self.spot_row, self.choices = SpotRow(self._kit), LookChoices(self._store)
        self._price = label("", scale="small", wrap=True)
        self.compute = push_button(tr("Compute"), scale="small", primary=True, clicked=self._compute)
        self.follow = QCheckBox(tr("At once"))
        self.follow.setToolTip(
            tr("Compute without a click for every token that is looked from, while that takes less than 1 s")
        )
        self._theme.give_font(self.follow, "small")
        self.follow.toggled.connect(self._follow)

    def _lay_out(self) -> None:
        margins = (0, 0, _MARGIN_PX, 0)
        rows = [boxes.row((part, 1), margins=margins) for part in (self.spot_row, self.choices)]
        buttons = boxes.column(boxes.row(self.follow, self.compute, spacing=8), boxes.Stretch(1), spacing=0)
        price = boxes.row((self._price, 1), buttons, margins=margins, spacing=8)
        content = QWidget()
        self._results = QWidget()
        self.fold = Collapsible(self._theme, tr("Heads and layers"), self.heads, opened=True)
        boxes.column(self.table, self.fold, on=self._results, margins=0, spacing=8)
        boxes.column(self._hint, self._title, self._results, boxes.Stretch(1), on=content, margins=margins, spacing=8)
        scroll = self._scroll = ScrollColumn(content, tr("What was looked at"))
        below = boxes.column(self._legend, self._about, margins=margins, spacing=2)
        boxes.column(*rows, price, self.map, below, (scroll, 1), on=self, margins=0, spacing=8)

    def set_room(self, height: int) -> None:
        """The height of the whole pane."""
        self.map.set_room(round(_MAP_SHARE * height))

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._store.look(self._store.attention.watched(is_open=True))
        self._show()
        self._show_range()

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self._store.look(self._store.attention.watched(is_open=False))

    # --- what is known ------------------------------------------------------------------------------------------------

    def _on_changed(self, changed: Changed, update: Update | None) -> None:
        if isinstance(update, AttentionPreview) or changed & (Changed.SELECTED | Changed.CONTEXT):
            self._asked = None  # also while nobody looks
        if not self.isVisible():
            return
        if isinstance(update, CacheView):
            self._show_map()
        if changed & Changed.RANGE:
            self._show_range()
        shown = (
            Changed.ATTENTION | Changed.NUMBERS | Changed.CONTEXT | Changed.SELECTED | Changed.RUNNING | Changed.RANGE
        )
        if changed & shown:
            self._show()
        if isinstance(update, AttentionPreview):
            self._follow()

    def _wanted(self) -> Queries | None:
        """What would be computed."""
        store, span = self._store, self._store.spot_span
        if span is None:
            return None
        spans = store.spans_in(int(span.seq_id))
        return attention.queries_of(Spot(int(span.seq_id), store.spot_pos), store.attention.scope, spans, span.pos_max)

    def _show(self) -> None:
        looking, wanted = self._store.attention, self._wanted()
        self.spot_row.show_spot()
        self.choices.show_choice()
        self._show_price(wanted)
        if looking.shown is not self._drawn:
            self._show_results(looking.shown)
        self._show_title()
        self._show_map()
        if wanted is not None and self._known_price(wanted) is None:
            self._pricing.request()

    @property
    def _is_saved(self) -> bool:
        """The shown chat has no cells, but its state is saved."""
        target = self._store.target_of(self._store.selected)
        return target is not None and not target.n_cells and target.swapped_bytes > 0

    @property
    def _is_growing(self) -> bool:
        """The last token is looked from, and others come behind it."""
        return self._store.attention.spot is None and self._store.is_answering

    def _known_price(self, wanted: Queries | None) -> AttentionPreview | None:
        price = self._store.attention.price
        return price if price is not None and price.queries == wanted else None

    def _show_map(self) -> None:
        store = self._store
        if store.view is not None:
            self.map.show_attention(store.attention.shown)
            self.map.show_view(store.view, *store.looks(store.leases))

    def _show_price(self, wanted: Queries | None) -> None:
        looking = self._store.attention
        allowed, why = self._store.answer("attention")
        price, tone = self._known_price(wanted), ""
        can = allowed and (looking.running or (price is not None and not price.refused))
        restores = allowed and wanted is None and self._is_saved
        if not allowed:
            text, tone = why, "warning"
        elif restores:
            text = tr("This chat is saved outside the cache. Swap it in to see what its tokens look at.")
            tone, can = "secondary", not self._store.running
        elif wanted is None:
            text, tone = tr("This chat has no cells in the cache. Send a message first."), "secondary"
        elif looking.running:
            text, tone = tr("Computing…"), "secondary"
        elif self._is_growing:
            text = tr("An answer is being written. Its last token can be looked from when it has ended.")
            text += " " + tr("Beside it, each of its tokens would be decoded twice.")
            tone, can = "secondary", False
        elif looking.problem:
            text, tone = looking.problem, "danger"
        elif price is not None and price.refused:
            text, tone = price.refused, "warning"
        elif looking.shown is not None and looking.shown.attended.queries == wanted and not self._is_stale:
            text, tone = _took(looking.shown), "secondary"
        else:
            text = price.sentence if price is not None else tr("What it costs is being asked for…")
        self._price.setText(text)
        set_tone(self._price, tone)
        self.compute.setText(tr("Stop") if looking.running else tr("Swap in") if restores else tr("Compute"))
        self.compute.setEnabled(can)
        self.compute.setAccessibleDescription(text)

    @property
    def _is_stale(self) -> bool:
        """Whether cells have changed since the result."""
        shown, view = self._store.attention.shown, self._store.view
        return shown is not None and view is not None and shown.is_stale(view.snapshot)

    def _show_title(self) -> None:
        shown = self._store.attention.shown
        for widget in (self._title, self._results):
            widget.setVisible(shown is not None)
        self._hint.setVisible(shown is None)
        if shown is None:
            self._title.setText("")
            return
        title = self._title_of(shown)
        is_stale = self._is_stale
        if is_stale:
            title += " " + tr("The cells have changed since: compute it again.")
        self._title.setText(title)
        set_tone(self._title, "warning" if is_stale else "")

    def _title_of(self, shown: Shown) -> str:
        choice = shown.choice
        pos = int(shown.attended.pos[-1])
        column = shown.column_of(pos)
        token = int(shown.attended.columns.token[column]) if column is not None else -1
        spot = (
            attention.token_words(token, self._store.texts) if token >= 0 else token_at(self._store, shown.seq_id, pos)
        )
        where = tr("all layers") if choice.layer is None else tr("layer {layer}").format(layer=choice.layer)
        heads = tr("all heads") if choice.head is None else tr("head {head}").format(head=choice.head)
        title = plural(
            "What {token} looked at: {layers}, {heads}.",
            "What %n tokens up to {token} looked at: {layers}, {heads}.",
            shown.n_tokens,
        )
        return title.format(token=spot, layers=where, heads=heads)

    def _show_results(self, shown: Shown | None) -> None:
        is_new = shown is not None and (self._drawn is None or self._drawn.attended is not shown.attended)
        self._drawn = shown
        self.table.show_rows(shown, self._store.texts)
        if is_new or shown is None:
            self.heads.show_heads(Heads(shown.attended, self._store.texts) if shown is not None else None)
        choice = self._store.attention.choice
        self.heads.show_choice(choice.layer, choice.head)
        if shown is not None:
            rows = shown.rows()
            most = next((column for column in rows if not shown.sinks[column]), None)
            if most is not None:
                announce(self, f"{self._title_of(shown)} {attention.column_words(shown, most, self._store.texts)}")

    def _show_range(self) -> None:
        """What is selected in the map of the cache, in the chat or here."""
        store, chosen = self._store, self._store.range
        if store.view is None or chosen is None or chosen.p0 < 0 or chosen.p1 < 0:
            return
        shown = store.attention.shown
        if shown is not None and shown.seq_id == chosen.seq_id and not self._chooses:
            self.table.show_range(chosen.p0, chosen.p1)
        self.map.show_selection(cells_of_positions(store.view.snapshot, *chosen))

    # --- what a person does -------------------------------------------------------------------------------------------

    def _ask_price(self) -> None:
        wanted = self._wanted()
        if wanted is None or wanted == self._asked or self._is_growing or not self.isVisible():
            return
        if self._store.answer("attention")[0]:
            self._asked = wanted
            self._kit.commands.submit(PreviewAttention(wanted))

    def _compute(self) -> None:
        wanted, store = self._wanted(), self._store
        if store.attention.running:
            self._kit.commands.cancel_work()
            store.look(store.attention.stopped())
        elif wanted is not None:
            store.look(store.attention.begun())
            self._kit.commands.submit(Attend(wanted, store.attention.number))
        elif self._is_saved:
            self._kit.actions.run("cache.swap_in")

    def _follow(self) -> None:
        """Compute what is cheap, where that is wanted."""
        wanted, looking = self._wanted(), self._store.attention
        price = self._known_price(wanted)
        if not self.follow.isChecked() or price is None or price.refused or looking.running or looking.problem:
            return
        is_known = looking.shown is not None and looking.shown.attended.queries == wanted and not self._is_stale
        if not is_known and price.seconds is not None and price.seconds < _AT_ONCE_S:
            self._compute()

    def _on_head_described(self, words: str) -> None:
        """What the keyboard is at is in sight."""
        self._about.setText(words)
        box = self.heads.cursor_box if self.heads.hasFocus() else None
        if box is not None and (inside := self._scroll.widget()) is not None:
            at = self.heads.mapTo(inside, box.center())
            self._scroll.ensureVisible(at.x(), at.y(), 0, 2 * box.height())

    def _on_head_chosen(self, layer: int, head: int) -> None:
        """That head alone; all of them again where it was chosen already."""
        looking = self._store.attention
        choice = replace(looking.choice, layer=layer, head=head)
        if choice == looking.choice:
            choice = replace(choice, layer=None, head=None)
        self._store.look(looking.of_choice(choice))

    def _on_key_changed(self, key: MapLegend) -> None:
        """The page of the cache explains what is the same in all maps."""
        self._legend.show_key(replace(key, entries=key.entries[: key.n_own]))

    def _on_pointed_at(self, cache: int, stream: int, cell: int) -> None:
        self._cell = cache, stream, cell

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Enter in the map looks from the cell under its cursor."""
        is_enter = event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter)
        found = self._range_of(*self._cell, self._cell[2] + 1) if is_enter and self.map.hasFocus() else None
        if found is None:
            super().keyPressEvent(event)
        else:
            self.spot_row.look_from(Spot(found[0], found[1]))

    def _on_row_chosen(self, pos: int) -> None:
        """The rows that are selected stay so."""
        if (shown := self._store.attention.shown) is not None:
            self._chooses = True
            self._store.choose_range(shown.seq_id, pos, pos + 1)
            self._chooses = False

    def _on_cells_selected(self, cache: int, stream: int, first: int, last: int) -> None:
        if (found := self._range_of(cache, stream, first, last)) is not None:
            self._store.choose_range(*found)

    def _range_of(self, cache: int, stream: int, first: int, last: int) -> tuple[int, int, int] | None:
        """Sequence and positions of these cells; None if they have none."""
        view, span = self._store.view, self._store.spot_span
        if view is None or cache < 0:
            return None
        return range_of_cells(view.snapshot, cache, stream, first, last, int(span.seq_id) if span is not None else -1)


def _took(shown: Shown) -> str:
    done = shown.attended
    took = tr("It took {seconds} and {mb} MB for a moment.")
    return took.format(seconds=seconds_text(done.ms / 1e3), mb=megabytes(done.n_bytes))
