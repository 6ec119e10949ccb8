"""Which token is looked from, and the way to another one."""

from PySide6.QtWidgets import QWidget

from kvdesk.session import Store
from kvdesk.translation import tr
from kvdesk.ui.widgets import boxes
from kvdesk.ui.widgets.access.announce import announce
from kvdesk.ui.widgets.controls import ElidedLabel, IconButton, push_button
from kvdesk.ui.widgets.kit import Kit
from kvdesk.viewmodel.cells.attention import Spot, token_words
from kvdesk.viewmodel.cells.links import cells_of_positions


class SpotRow(QWidget):
    """The token before and the next one, the last one, the selected one."""

    def __init__(self, kit: Kit) -> None:
        super().__init__()
        self._store = kit.store
        before, after = tr("Look from the token before"), tr("Look from the next token")
        self.steps = (
            IconButton(kit.theme, "chevron-left", before, clicked=lambda: self._step(-1)),
            IconButton(kit.theme, "chevron-right", after, clicked=lambda: self._step(1)),
        )
        self._words = ElidedLabel(weight="strong")
        self.last = push_button(
            tr("Last"),
            name=tr("Look from the last token"),
            scale="small",
            tip=tr("Look from the last token of this chat"),
            clicked=lambda: self._store.look(self._store.attention.looked_from(None)),
        )
        self.selected = push_button(
            tr("Selected"),
            name=tr("Look from what is selected"),
            scale="small",
            tip=tr("Look from the word or the cell that is selected; a click on a word does so too"),
            clicked=self._look_from_selected,
        )
        boxes.row(*self.steps, (self._words, 1), self.last, self.selected, on=self, margins=0, spacing=4)

    @property
    def words(self) -> str:
        """The token in words."""
        return self._words.full_text

    def show_spot(self) -> None:
        """The token as the store has it."""
        store = self._store
        self._words.setText(_spot_words(store))
        for button in self.steps:
            button.setEnabled(store.spot_span is not None)
        self.last.setEnabled(store.attention.spot is not None)
        self.selected.setEnabled(self._selected_spot() is not None)

    def look_from(self, spot: Spot) -> None:
        """Another token, which a screen reader says."""
        self._store.look(self._store.attention.looked_from(spot))
        announce(self, self.words)

    def _step(self, by: int, _checked: bool = False) -> None:
        span = self._store.spot_span
        if span is not None:
            pos = min(max(self._store.spot_pos + by, span.pos_min), span.pos_max)
            self.look_from(Spot(int(span.seq_id), pos))

    def _selected_spot(self) -> Spot | None:
        """The last token of what is selected, where it is one of some sequence."""
        chosen, view = self._store.range, self._store.view
        if chosen is None or view is None or chosen.p1 <= 0:
            return None
        spot = Spot(chosen.seq_id, chosen.p1 - 1)
        return spot if cells_of_positions(view.snapshot, spot.seq_id, spot.pos, spot.pos + 1) else None

    def _look_from_selected(self) -> None:
        if (spot := self._selected_spot()) is not None:
            self.look_from(spot)


def token_at(store: Store, seq_id: int, pos: int) -> str:
    """The token at a position of a sequence, in quotes; its position where no cell has it."""
    view = store.view
    runs = cells_of_positions(view.snapshot, seq_id, pos, pos + 1) if view is not None else ()
    if view is None or not runs:
        return tr("position {pos}").format(pos=f"{pos:,}")
    stream = view.snapshot.maps[runs[0].cache].streams[runs[0].stream]
    return token_words(int(stream.token[runs[0].cells[0]]), store.texts)


def _spot_words(store: Store) -> str:
    span = store.spot_span
    if span is None:
        return ""
    pos, seq_id = store.spot_pos, int(span.seq_id)
    words = f"{token_at(store, seq_id, pos)}  ·  " + tr("position {pos}").format(pos=f"{pos:,}")
    own = store.sequences.get(store.selected, -1) if store.selected is not None else -1
    return words if seq_id == own else f"{words}  ·  {store.title_in(store.leases, seq_id)}"
