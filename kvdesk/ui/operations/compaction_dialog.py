"""Compact: what it would do, drawn and counted, before it is done; and what it did. Not modal."""

from __future__ import annotations

from PySide6.QtCore import Qt, QTimer, Signal, Slot
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import (
    QButtonGroup,
    QDialog,
    QGridLayout,
    QHBoxLayout,
    QPushButton,
    QRadioButton,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from kvdesk.cache.compaction import CompactionPlan, Layout
from kvdesk.protocol.cache import OperationDone, SpeedSample
from kvdesk.protocol.operations import Compact, CompactionPreview, PreviewCompaction
from kvdesk.translation import marked, tr
from kvdesk.ui.map.small_map import SmallMap
from kvdesk.ui.operations.effect_view import EffectView
from kvdesk.ui.widgets.controls import fit_to_screen, label, set_tone
from kvdesk.ui.widgets.sizes import DIALOG_MARGIN_PX
from kvdesk.ui.widgets.theme import Theme
from kvdesk.viewmodel.cache_state import CacheState
from kvdesk.viewmodel.cell_metrics import HIGH_WATER, READ
from kvdesk.viewmodel.operation_specs import COMPACT, Chosen, refusal

_LAYOUTS = {
    Layout.KEEP_ORDER: (marked("Keep order"), marked("the same order without gaps")),
    Layout.BY_CONVERSATION: (marked("Group by conversation"), marked("each conversation's cells side by side")),
    Layout.HOT_FIRST: (
        marked("Recently used first"),
        marked("grouped by conversation, the last used in front"),
    ),
}
_ASK_MS = 500  # at most this often while the cache changes


class CompactionDialog(QDialog):
    """Asks for previews while it is open; says when compaction is wanted."""

    asked = Signal(object)  # PreviewCompaction
    operated = Signal(object)  # Compact
    undo_clicked = Signal(int)

    def __init__(self, theme: Theme, state: CacheState, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle(tr("Compact the cache"))
        self._state = state
        self._asked_for: tuple[object, ...] = ()
        self._preview: CompactionPreview | None = None
        self._layouts = QButtonGroup(self)
        self._now = SmallMap(theme, tr("Map of the cache now"), 132)
        self._after = SmallMap(theme, tr("Map of the cache after a compaction"), 132)
        self._figures = label("", family="mono")
        self._figures.setWordWrap(True)
        self._remark = label("", scale="small")
        self._remark.setWordWrap(True)
        self._effect = EffectView(theme, closable=False)
        self._effect.undo_clicked.connect(self.undo_clicked)
        self.compact_button = QPushButton(tr("Compact"))
        self.compact_button.setProperty("primary", True)
        self.compact_button.clicked.connect(self._on_compact_clicked)
        close = QPushButton(tr("Close"))
        close.clicked.connect(self.close)
        buttons = QHBoxLayout()
        buttons.setSpacing(8)
        buttons.addStretch(1)
        buttons.addWidget(close)
        buttons.addWidget(self.compact_button)
        maps = QGridLayout()
        maps.setHorizontalSpacing(16)
        maps.setVerticalSpacing(4)
        for column, (name, view) in enumerate(((tr("Now"), self._now), (tr("After"), self._after))):
            maps.addWidget(label(name, tone="secondary", scale="small"), 0, column)
            maps.addWidget(view, 1, column)
            maps.setColumnStretch(column, 1)
        content = QWidget()
        content.setObjectName("column")
        column_ = QVBoxLayout(content)
        column_.setContentsMargins(DIALOG_MARGIN_PX, DIALOG_MARGIN_PX, DIALOG_MARGIN_PX, 8)
        column_.setSpacing(12)
        column_.addLayout(self._make_choices())
        column_.addLayout(maps)
        column_.addWidget(self._figures)
        column_.addWidget(self._remark)
        column_.addWidget(self._effect)
        column_.addStretch(1)
        scroll = self._scroll = QScrollArea()
        scroll.setAccessibleName(tr("Compaction"))
        scroll.setWidgetResizable(True)
        scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        scroll.setWidget(content)
        outer = QVBoxLayout(self)
        outer.setContentsMargins(0, 0, 0, DIALOG_MARGIN_PX)
        outer.addWidget(scroll, 1)
        buttons.setContentsMargins(DIALOG_MARGIN_PX, 0, DIALOG_MARGIN_PX, 0)
        outer.addLayout(buttons)
        self._again = QTimer(self, singleShot=True, interval=_ASK_MS)
        self._again.timeout.connect(self._ask)
        self.resize(theme.px(640), theme.px(620))

    @property
    def layout_chosen(self) -> Layout:
        return list(_LAYOUTS)[max(self._layouts.checkedId(), 0)]

    @property
    def text(self) -> str:
        """The text about the plan."""
        return f"{self._figures.text()}\n{self._remark.text()}"

    @property
    def effect(self) -> EffectView:
        return self._effect

    def choose(self, layout: Layout) -> None:
        self._layouts.button(list(_LAYOUTS).index(layout)).setChecked(True)

    def show_state(self) -> None:
        """The cells or their owners have changed."""
        if not self.isVisible():
            return
        why = refusal(COMPACT, Chosen(None), self._state)
        if why:
            self.compact_button.setEnabled(False)
            self._remark.setText(why)
            return
        if (view := self._state.view) is not None:
            self._now.show_view(view, *self._state.looks(self._state.leases))
            self._effect.show_undoable(view.undoable)
        if self._wanted() != self._asked_for and not self._again.isActive():
            self._again.start()

    def show_preview(self, preview: CompactionPreview) -> None:
        """Show the plan of a compaction."""
        if preview.plan.layout != self.layout_chosen:
            return
        self._preview = preview
        plan, state = preview.plan, self._state
        view = state.view
        operation = view.snapshot.operation if view else 0
        self._after.show_maps(plan.after, operation, *state.looks(state.history.leases_at(operation)))
        self._figures.setText("\n".join(_lines(plan, preview.gain, state)))
        self._remark.setText(preview.remark)
        self.compact_button.setToolTip(Compact(plan.layout).call())
        set_tone(self._remark, "secondary" if plan.changes_nothing else "")
        why = refusal(COMPACT, Chosen(None), state)
        self.compact_button.setEnabled(not why and not plan.changes_nothing)

    def show_done(self, done: OperationDone, texts: dict[int, str]) -> None:
        """Show the effect of the compaction."""
        self._effect.show_effect(done, lambda seq: _title(self._state, seq), texts)
        QTimer.singleShot(0, self, lambda: self._scroll.ensureWidgetVisible(self._effect))

    def add_speed(self, sample: SpeedSample) -> None:
        self._effect.add_speed(sample)

    def _wanted(self) -> tuple[object, ...]:
        view = self._state.view
        return self.layout_chosen, view.snapshot.operation if view else -1

    @Slot()
    def _ask(self) -> None:
        if self.isVisible() and not refusal(COMPACT, Chosen(None), self._state):
            self._asked_for = self._wanted()
            self.asked.emit(PreviewCompaction(self.layout_chosen, self._hot()))

    @Slot()
    def _on_layout_chosen(self) -> None:
        self.compact_button.setEnabled(False)
        self._ask()

    @Slot()
    def _on_compact_clicked(self) -> None:
        self.compact_button.setEnabled(False)
        self.operated.emit(Compact(self.layout_chosen, self._hot()))

    def _hot(self) -> tuple[int, ...]:
        """Sequences in the order in which their conversations were used, last first; only where it matters."""
        if self.layout_chosen is not Layout.HOT_FIRST:
            return ()
        owned = self._state.sequences
        return tuple(owned[name] for name in self._state.conversations if name in owned)

    def _make_choices(self) -> QGridLayout:
        grid = QGridLayout()
        grid.setHorizontalSpacing(16)
        grid.setVerticalSpacing(4)
        grid.setColumnStretch(1, 1)
        for i, (name, about) in enumerate(_LAYOUTS.values()):
            button = QRadioButton(tr(name))
            button.setAccessibleDescription(tr(about))
            button.setChecked(i == 0)
            self._layouts.addButton(button, i)
            grid.addWidget(button, i, 0)
            grid.addWidget(label(tr(about), tone="secondary", scale="small"), i, 1)
        self._layouts.idToggled.connect(lambda _id, on: self._on_layout_chosen() if on else None)
        return grid

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        fit_to_screen(self)
        self._effect.hide()
        self.compact_button.setEnabled(False)
        self.show_state()
        self._ask()


def _title(state: CacheState, seq_id: int) -> str:
    operation = state.view.snapshot.operation if state.view else 0
    return state.title_in(state.history.leases_at(operation), seq_id)


def _lines(plan: CompactionPlan, gain: float | None, state: CacheState) -> list[str]:
    """The plan in figures, one line a matter."""
    high_before = max((s.high_water_before for s in plan.streams), default=0)
    high_after = max((s.high_water_after for s in plan.streams), default=0)
    high, read = f"{high_before:,} → {high_after:,}", f"{plan.n_kv_before:,} → {plan.n_kv_after:,}"
    lines = [f"{tr(HIGH_WATER)}: {high}   {tr(READ)}: {read}"]
    if plan.changes_nothing:
        return lines  # there are no bytes to move and no speed to gain
    predicted = f"{(gain - 1) * 100:+.1f} %" if gain is not None else tr("not measured yet")
    lines.append(
        tr("{size} MB to move   decode speed {predicted}").format(
            size=f"{plan.bytes_to_move / 1e6:,.1f}", predicted=predicted
        )
    )
    runs = [f"“{_title(state, seq)}”: {b + 1:,} → {a + 1:,}" for s in plan.streams for seq, b, a in s.scatter if a != b]
    return [*lines, tr("Pieces of neighbouring cells"), *(f"    {run}" for run in runs)] if runs else lines
