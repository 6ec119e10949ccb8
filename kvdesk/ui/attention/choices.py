"""Whose attention is looked at, of which layers and heads."""

from typing import Final

from PySide6.QtCore import Qt

from kvdesk.cache.attention_weights import How
from kvdesk.session import Store
from kvdesk.translation import marked, tr
from kvdesk.ui.widgets.allow import allow
from kvdesk.ui.widgets.choice import Choice, small_choice
from kvdesk.ui.widgets.flow import Flow
from kvdesk.viewmodel.cells import attention
from kvdesk.viewmodel.cells.attention import Scope

_HOW: Final[tuple[tuple[str, How, str], ...]] = (
    (marked("Mean"), "mean", marked("The mean of these layers and heads")),
    (marked("Max"), "max", marked("The maximum that any of these heads gave")),
)


class LookChoices(Flow):
    """Layers and heads can be chosen once a result is there."""

    def __init__(self, store: Store) -> None:
        super().__init__((4, 4))
        self._store = store
        self.scope = small_choice(tr("Whose attention"))
        for scope in Scope:
            _add(self.scope, tr(scope.value), scope, scope.meaning)
        self.layer, self.head = small_choice(tr("Layer")), small_choice(tr("Head"))
        self.how = small_choice(tr("How layers and heads are combined"))
        for name, how, meaning in _HOW:
            _add(self.how, tr(name), how, tr(meaning))
        for choice in (self.scope, self.layer, self.head, self.how):
            choice.activated.connect(self._on_chosen)
        self.show_parts((self.scope, self.layer, self.head, self.how))

    def show_choice(self) -> None:
        """What the store has."""
        looking = self._store.attention
        parts = looking.shown.attended.layers if looking.shown is not None else ()
        choice = looking.choice
        n_heads = max((part.n_heads for part in parts if choice.layer in (None, part.layer)), default=0)
        _fill(self.layer, tr("All layers"), tr("Layer {n}"), [part.layer for part in parts])
        _fill(self.head, tr("All heads"), tr("Head {n}"), list(range(n_heads)))
        unknown = "" if parts else tr("Compute first: the result has its layers and heads.")
        alone = tr("One head of one layer has nothing to be combined with.")
        for box, value, why in (
            (self.scope, looking.scope, ""),
            (self.layer, choice.layer, unknown),
            (self.head, choice.head, unknown),
            (self.how, choice.how, "" if choice.layer is None or choice.head is None else alone),
        ):
            box.setCurrentIndex(max(box.findData(value), 0))
            allow(box, why, box.currentData(Qt.ItemDataRole.ToolTipRole) or "")

    def _on_chosen(self) -> None:
        looking = self._store.attention.of_scope(Scope(self.scope.currentData()))
        choice = attention.Choice(self.layer.currentData(), self.head.currentData(), self.how.currentData())
        self._store.look(looking.of_choice(choice))


def _add(box: Choice, text: str, value: str, meaning: str) -> None:
    box.addItem(text, value)
    box.setItemData(box.count() - 1, meaning, Qt.ItemDataRole.ToolTipRole)


def _fill(box: Choice, every: str, one: str, numbers: list[int]) -> None:
    """All, and each by its number."""
    if [box.itemData(i) for i in range(box.count())] != [None, *numbers]:
        box.clear()
        box.addItem(every, None)
        for n in numbers:
            box.addItem(one.format(n=n), n)
