"""What would leave with the chosen positions, under the form: cells, bytes, and on request their share of attention."""

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from kvdesk.protocol.attention import Attend, Attended, AttentionPreview, PreviewAttention
from kvdesk.protocol.messages import CommandFailed
from kvdesk.session import Changed
from kvdesk.session.changed import Update
from kvdesk.session.operation_specs import Chosen
from kvdesk.translation import tr
from kvdesk.ui.widgets import boxes
from kvdesk.ui.widgets.access.announce import announce
from kvdesk.ui.widgets.controls import label, push_button
from kvdesk.ui.widgets.kit import Kit
from kvdesk.viewmodel.cells.leaving import Leaving, leaving, next_to_leave


class LeavingRow(QWidget):
    """Nothing is computed before a person has read the price."""

    range_wanted = Signal(int, int, int)  # seq_id, p0, p1: what leaves next

    def __init__(self, kit: Kit) -> None:
        super().__init__()
        self._kit, self._store = kit, kit.store
        self._leaving: Leaving | None = None
        self._chosen = Chosen(None)
        self._price = ""  # of what is chosen, once it was asked for
        self._number = 0  # of the last `Attend`, below 0: those of the Attention tab are above
        self._words = label("", scale="small", wrap=True)
        self._worth = label("", tone="secondary", scale="small", wrap=True)
        self.measure = push_button(tr("Attention"), scale="small", clicked=self._on_measure_clicked)
        self.next = push_button(tr("Next to leave"), scale="small", clicked=self._on_next_clicked)
        buttons = boxes.row((self._words, 1), self.next, self.measure, spacing=8)
        boxes.column(buttons, self._worth, on=self, margins=0, spacing=2)
        self.destroyed.connect(kit.store.listen(self._on_changed, often=()))

    @property
    def text(self) -> str:
        """All that is said."""
        return f"{self._words.text()} {self._worth.text()}".strip()

    def show_chosen(self, chosen: Chosen) -> None:
        """Other positions, or other cells behind them."""
        store, target = self._store, chosen.target
        self._chosen = chosen
        found = None
        if store.view is not None and store.context is not None and target is not None and target.n_cells:
            found = leaving(store.view, store.context, target.seq_id, chosen.p0, chosen.p1, target.pos_max)
        if found != self._leaving:
            self._leaving, self._price, self._number = found, "", self._number - 1
            self._say("")
        self._words.setText(found.words if found is not None else "")
        self._show_buttons()

    def _show_buttons(self) -> None:
        allowed, why = self._store.answer("attention")
        if allowed and (self._leaving is None or self._leaving.queries is None):
            why = tr("No token is behind these positions that could look at them.")
        can = allowed and self._leaving is not None and self._leaving.queries is not None
        tip = tr("How much of the attention of the last tokens goes to these cells. First says what that costs.")
        self.measure.setText(tr("Compute") if self._price else tr("Attention"))
        self.measure.setEnabled(can)
        self.measure.setToolTip(self._price or tip if can else why)
        self.measure.setAccessibleDescription(self.measure.toolTip())
        ranged = self._next()
        self.next.setEnabled(ranged is not None)
        none = tr("No message of this chat leaves next: nothing has to, or its policy takes single tokens.")
        tip = tr("Chooses the messages that leave next when the context of this chat is full")
        self.next.setToolTip(tip if ranged is not None else none)

    def _next(self) -> tuple[int, int] | None:
        conversation = self._chosen.conversation
        spans = self._store.spans.get(conversation)
        if spans is None or self._chosen.target is None:
            return None
        return next_to_leave(spans.spans, self._store.retention_of(conversation))

    def _say(self, words: str) -> None:
        self._worth.setText(words)
        self._worth.setVisible(bool(words))

    def _on_changed(self, _changed: Changed, update: Update | None) -> None:
        found = self._leaving
        match update:
            case AttentionPreview() if found is not None and update.queries == found.queries and not self._price:
                if self._worth.text():  # it was asked for here
                    self._price = update.sentence
                    self._say(update.refused or update.sentence)
                    self._show_buttons()
            case Attended() if found is not None and update.number == self._number:
                self._price = ""
                self._say(found.worth(update))
                announce(self, self.text)
                self._show_buttons()
            case CommandFailed(command=Attend() as command) if command.number == self._number:
                self._say(update.sentence)

    def _on_measure_clicked(self) -> None:
        queries = self._leaving.queries if self._leaving is not None else None
        if queries is None:
            return
        if not self._price:
            self._say(tr("What it costs is being asked for…"))
            self._kit.commands.submit(PreviewAttention(queries))
            return
        self._number -= 1
        self._say(tr("Computing…"))
        self._kit.commands.submit(Attend(queries, self._number))

    def _on_next_clicked(self) -> None:
        found = self._next()
        if found is not None:
            self.range_wanted.emit(self._chosen.seq_id, *found)
