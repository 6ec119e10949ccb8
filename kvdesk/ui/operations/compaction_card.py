"""Compact: what it would do, drawn and counted under the form, before it is done."""

from typing import Final

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QButtonGroup, QFrame, QGridLayout, QRadioButton

from kvdesk.cache.compaction import CompactionPlan, Layout
from kvdesk.protocol.operations import Compact, CompactionPreview, Operate, PreviewCompaction
from kvdesk.session.operation_specs import COMPACT, Chosen, refusal
from kvdesk.session.state import State
from kvdesk.translation import marked, tr
from kvdesk.ui.map.small_map import SmallMap
from kvdesk.ui.widgets import boxes
from kvdesk.ui.widgets.controls import label, push_button, set_tone
from kvdesk.ui.widgets.kit import Kit
from kvdesk.ui.widgets.timers import once
from kvdesk.viewmodel.graphs.cell_metrics import HIGH_WATER, READ

_LAYOUTS = {
    Layout.KEEP_ORDER: (marked("Keep order"), marked("the same order without gaps")),
    Layout.BY_CONVERSATION: (marked("Group by conversation"), marked("each conversation's cells side by side")),
    Layout.HOT_FIRST: (marked("Recently used first"), marked("grouped by conversation, the last used in front")),
}
_ASK_MS: Final = 500  # at most this often while the cache changes
_MAP_PX: Final = 72


class CompactionCard(QFrame):
    """Hidden until `ask`; asks for previews while it is shown. The map of the page shows the cells as they are now."""

    def __init__(self, kit: Kit) -> None:
        super().__init__()
        theme = kit.theme
        self.setProperty("card", "ask")
        self.setAccessibleName(tr("Compact the cache"))
        self._kit, self._state = kit, kit.store
        self._asked_for: tuple[object, ...] = ()
        self._layouts = QButtonGroup(self)
        self._after = SmallMap(theme, tr("Map of the cache after a compaction"), _MAP_PX)
        self._call = label("", family="mono", tone="secondary", wrap=True)
        self._figures = label("", family="mono", wrap=True)
        self._remark = label("", scale="small", wrap=True)
        self._pieces = label("", tone="secondary", scale="small", wrap=True)
        self.compact_button = push_button(tr("Compact"), scale="small", primary=True, clicked=self._on_compact_clicked)
        self.cancel_button = push_button(
            tr("Cancel"), scale="small", tip=tr("Everything stays as it is"), clicked=self.refuse
        )
        title = label(tr("Compact the cache"), weight="strong", scale="small")
        boxes.column(
            boxes.row((title, 1), self.cancel_button, self.compact_button, spacing=8),
            self._make_choices(),
            self._remark,
            self._figures,
            label(tr("After"), tone="secondary", scale="small"),
            self._after,
            self._pieces,
            self._call,
            on=self,
            margins=(12, 8, 12, 12),
            spacing=6,
        )
        self._again = once(self, _ASK_MS, self._ask)
        self.hide()

    @property
    def layout_chosen(self) -> Layout:
        return list(_LAYOUTS)[max(self._layouts.checkedId(), 0)]

    def choose(self, layout: Layout) -> None:
        self._layouts.button(list(_LAYOUTS).index(layout)).setChecked(True)

    def ask(self) -> None:
        """Show what each order of the cells would change."""
        self.compact_button.setEnabled(False)
        self._call.setText(Compact(self.layout_chosen).call())
        self._figures.setText("\n\n")  # their room, so that all of the card is in sight
        self._remark.setText("")
        self._pieces.hide()
        self.show()
        self._layouts.button(max(self._layouts.checkedId(), 0)).setFocus()
        self.show_state()
        self._ask()

    def refuse(self) -> None:
        """Everything stays as it is."""
        self.hide()
        self._kit.actions.run("chat.write")

    def show_state(self) -> None:
        """The cells or their owners have changed."""
        if self.isHidden():
            return
        if why := refusal(COMPACT, Chosen(None), self._state):
            self.compact_button.setEnabled(False)
            self._remark.setText(why)
        elif self._wanted() != self._asked_for and not self._again.isActive():
            self._again.start()

    def show_preview(self, preview: CompactionPreview) -> None:
        """Show the plan of a compaction; ignored when it is that of another order."""
        if preview.plan.layout != self.layout_chosen:
            return
        plan, state = preview.plan, self._state
        view = state.view
        operation = view.snapshot.operation if view else 0
        self._after.show_maps(plan.after, operation, *state.looks(state.history.leases_at(operation)))
        self._call.setText(Compact(plan.layout).call())
        self._figures.setText("\n".join(_lines(plan, preview.gain)))
        pieces = _pieces(plan, state)
        self._pieces.setText("\n".join((tr("Pieces of neighbouring cells"), *pieces)))
        self._pieces.setVisible(bool(pieces))
        self._remark.setText(preview.remark)
        set_tone(self._remark, "secondary" if plan.changes_nothing else "")
        why = refusal(COMPACT, Chosen(None), state)
        self.compact_button.setEnabled(not why and not plan.changes_nothing)

    def _wanted(self) -> tuple[object, ...]:
        view = self._state.view
        return self.layout_chosen, view.snapshot.operation if view else -1

    def _ask(self) -> None:
        if not self.isHidden() and not refusal(COMPACT, Chosen(None), self._state):
            self._asked_for = self._wanted()
            self._kit.commands.submit(PreviewCompaction(self.layout_chosen, self._hot()))

    def _on_layout_toggled(self, _id: int, is_chosen: bool) -> None:
        if is_chosen:
            self.compact_button.setEnabled(False)
            self._ask()

    def _on_compact_clicked(self) -> None:
        self.hide()
        self._kit.commands.submit(Operate(Compact(self.layout_chosen, self._hot())))

    def _hot(self) -> tuple[int, ...]:
        """Sequences in the order in which their conversations were used, last first; only where it matters."""
        if self.layout_chosen is not Layout.HOT_FIRST:
            return ()
        owned = self._state.sequences
        return tuple(owned[name] for name in self._state.conversations if name in owned)

    def _make_choices(self) -> QGridLayout:
        grid = boxes.grid(12, 6, 0, 1)
        for i, (name, about) in enumerate(_LAYOUTS.values()):
            button = QRadioButton(tr(name))
            button.setProperty("scale", "small")
            button.setAccessibleDescription(tr(about))
            button.setChecked(i == 0)
            self._layouts.addButton(button, i)
            what = label(tr(about), tone="secondary", scale="small", wrap=True)
            for column, widget in enumerate((button, what)):
                grid.addWidget(widget, i, column, Qt.AlignmentFlag.AlignTop)
        self._layouts.idToggled.connect(self._on_layout_toggled)
        return grid


def _title(state: State, seq_id: int) -> str:
    operation = state.view.snapshot.operation if state.view else 0
    return state.title_in(state.history.leases_at(operation), seq_id)


def _pieces(plan: CompactionPlan, state: State) -> list[str]:
    """In how many pieces the cells of each conversation are, before and after, where that changes."""
    if plan.changes_nothing:
        return []
    return [f"“{_title(state, seq)}”: {b + 1:,} → {a + 1:,}" for s in plan.streams for seq, b, a in s.scatter if a != b]


def _lines(plan: CompactionPlan, gain: float | None) -> list[str]:
    """The plan in figures, one line a matter."""
    high_before = max((s.high_water_before for s in plan.streams), default=0)
    high_after = max((s.high_water_after for s in plan.streams), default=0)
    lines = [
        f"{tr(HIGH_WATER)}: {high_before:,} → {high_after:,}",
        f"{tr(READ)}: {plan.n_kv_before:,} → {plan.n_kv_after:,}",
    ]
    if plan.changes_nothing:
        return lines  # there are no bytes to move and no speed to gain
    predicted = f"{(gain - 1) * 100:+.1f} %" if gain is not None else tr("not measured yet")
    lines.append(
        tr("{size} MB to move   decode speed {predicted}").format(
            size=f"{plan.bytes_to_move / 1e6:,.1f}", predicted=predicted
        )
    )
    return lines
