"""The right pane: the cell map, numbers, rulers, graphs and the two buttons; and the log behind a second tab."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import (
    QButtonGroup,
    QHBoxLayout,
    QPushButton,
    QScrollArea,
    QStackedWidget,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from kvdesk.chat import Conversation, ConversationId
from kvdesk.messages import CacheView, ContextInfo, LogLine, OperationDone, TokenTexts
from kvdesk.operations import BatchRefused, LoadSample
from kvdesk.ui.cell_map import CellMapView
from kvdesk.ui.controls import ElidedLabel, IconButton
from kvdesk.ui.graphs import Graphs, GraphsPage
from kvdesk.ui.legend import Legend
from kvdesk.ui.log_panel import LogPanel
from kvdesk.ui.measurements import Measurements
from kvdesk.ui.numbers_panel import NumbersPanel
from kvdesk.ui.readout import positions_of
from kvdesk.ui.ruler_row import RulerRow
from kvdesk.ui.rulers import Rulers
from kvdesk.ui.theme import Look
from kvdesk.ui.throttle import Throttle

TEXT_INTERVAL_MS = 250  # numbers change at most 4 times a second


class Inspector(QWidget):
    """Shows cache views; says which button was pressed."""

    forget_clicked = Signal()
    rebuild_clicked = Signal()
    close_clicked = Signal()
    cache_tab_shown = Signal(bool)

    def __init__(self, look: Look) -> None:
        super().__init__()
        self.setProperty("pane", "panel")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self._look = look
        self._view: CacheView | None = None
        self._texts: dict[int, str] = {}
        self._conversations: Mapping[ConversationId, Conversation] = {}
        self._map = CellMapView(look)
        self._map.show_token_texts(self._texts)
        self._map.described.connect(self._on_described)
        self._legend = Legend(look)
        self._first, self._second = ElidedLabel(), ElidedLabel()
        self._first.setFont(look.mono_small)
        self._second.setProperty("scale", "small")
        self.measured = Measurements()
        self._context: ContextInfo | None = None
        self._numbers = NumbersPanel(look, self.measured)
        self._rulers = Rulers(look)
        self._graphs = Graphs(look, self.measured)
        self._graphs_page = GraphsPage(look, self.measured)
        self._log = LogPanel(look)
        self._forget = QPushButton("Forget this conversation's cells")
        self._forget.setToolTip(
            "Removes its cells from the cache; its text stays.\nllama_memory_seq_rm(mem, seq, -1, -1)"
        )
        self._forget.clicked.connect(self.forget_clicked)
        self._rebuild = QPushButton("Rebuild context")
        self._rebuild.setToolTip(
            "Frees the context and makes a new one; every conversation is read again at its next turn.\n"
            "llama_free(ctx), llama_init_from_model(model, params)"
        )
        self._rebuild.clicked.connect(self.rebuild_clicked)
        for button in (self._forget, self._rebuild):
            button.setProperty("scale", "small")
        self._stack = QStackedWidget()
        self._stack.addWidget(self._make_cache_page())
        self._stack.addWidget(self._graphs_page)
        self._stack.addWidget(self._log)
        column = QVBoxLayout(self)
        column.setContentsMargins(12, 8, 0, 12)
        column.setSpacing(8)
        column.addLayout(self._make_tabs())
        column.addWidget(self._stack, 1)
        self._writing = Throttle(self, TEXT_INTERVAL_MS, self._write_numbers)
        self.set_can(forget=False, rebuild=False)

    @property
    def cell_map(self) -> CellMapView:
        return self._map

    @property
    def numbers(self) -> NumbersPanel:
        return self._numbers

    @property
    def rulers(self) -> Rulers:
        return self._rulers

    @property
    def graphs(self) -> Graphs:
        return self._graphs

    @property
    def graphs_page(self) -> GraphsPage:
        return self._graphs_page

    @property
    def log(self) -> LogPanel:
        return self._log

    @property
    def forget_button(self) -> QPushButton:
        return self._forget

    @property
    def rebuild_button(self) -> QPushButton:
        return self._rebuild

    @property
    def readout(self) -> str:
        return f"{self._first.full_text}\n{self._second.full_text}".strip()

    @property
    def shows_cache(self) -> bool:
        return self._stack.currentIndex() < 2  # the graphs draw the cache too

    def show_conversations(self, conversations: Sequence[Conversation]) -> None:
        self._conversations = {conversation.id: conversation for conversation in conversations}
        if self._view is not None:
            self.show_view(self._view)

    def show_view(self, view: CacheView) -> None:
        new = self._view is None or view.snapshot.operation != self._view.snapshot.operation
        self._view = view
        colours, titles = {}, {}
        for lease in view.leases:
            if conversation := self._conversations.get(lease.conversation):
                colours[lease.seq_id] = conversation.colour
                titles[lease.seq_id] = conversation.title
        self._map.show_view(view, colours, titles)
        if new:
            self.measured.add_view(view, self._context)
        self._writing.request()

    def show_texts(self, texts: TokenTexts) -> None:
        self._texts.update(texts.texts)

    def set_context(self, context: ContextInfo) -> None:
        self._context = context

    def add_operation(self, operation: OperationDone) -> None:
        name = operation.conversation
        conversation = self._conversations.get(name) if name else None
        self.measured.add_operation(operation, conversation.colour if conversation else None)

    def note(self, event: LoadSample | BatchRefused | LogLine) -> None:
        """Something that one part alone shows."""
        match event:
            case LoadSample():
                self.measured.add_load(event)
            case BatchRefused():
                self._rulers.show_refused(event)
            case LogLine():
                self._log.append(event)

    def set_can(self, *, forget: bool, rebuild: bool) -> None:
        self._forget.setEnabled(forget)
        self._rebuild.setEnabled(rebuild)

    def set_rebuilding(self, rebuilding: bool) -> None:
        self._rebuild.setText("Rebuilding…" if rebuilding else "Rebuild context")

    @Slot(str, str)
    def _on_described(self, first: str, second: str) -> None:
        self._first.setText(first)
        self._second.setText(second)
        self._readout.setCurrentIndex(1 if first else 0)

    @Slot(int)
    def _on_tab(self, index: int) -> None:
        self._stack.setCurrentIndex(index)
        self.cache_tab_shown.emit(self.shows_cache)

    def _write_numbers(self) -> None:
        if self._view is None:
            return
        snapshot = self._view.snapshot
        leased = {lease.seq_id: lease.conversation for lease in self._view.leases}
        titles = {seq: self._conversations[name].title for seq, name in leased.items() if name in self._conversations}
        self._numbers.show_view(self._view, titles)
        rows = []
        for span in snapshot.sequences:
            name = leased.get(span.seq_id)
            conversation = self._conversations.get(name) if name else None
            if not span.n_cells and conversation is None:
                continue
            rows.append(
                RulerRow(
                    title=conversation.title if conversation else f"sequence {span.seq_id}",
                    colour=conversation.colour if conversation else None,
                    seq_id=span.seq_id,
                    pos_min=span.pos_min,
                    pos_max=span.pos_max,
                    n_cells=span.n_cells,
                    n_shared=span.n_shared,
                    positions=positions_of(snapshot, span.seq_id),
                )
            )
        self._rulers.show_rows(rows, snapshot.n_ctx)

    def _make_tabs(self) -> QHBoxLayout:
        row = QHBoxLayout()
        row.setContentsMargins(0, 0, 12, 0)
        row.setSpacing(4)
        group = QButtonGroup(self)
        for i, name in enumerate(("Cache", "Graphs", "Log")):
            tab = QToolButton()
            tab.setText(name)
            tab.setCheckable(True)
            tab.setChecked(i == 0)
            tab.setProperty("tab", True)
            tab.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
            tab.setAccessibleName(f"Show the {name.lower()}")
            group.addButton(tab, i)
            row.addWidget(tab)
        group.idClicked.connect(self._on_tab)
        row.addStretch(1)
        close = IconButton(self._look, "close", "Hide the inspector", "Hide the inspector (Ctrl+I)")
        close.clicked.connect(self.close_clicked)
        row.addWidget(close)
        return row

    def _make_cache_page(self) -> QWidget:
        lines = QWidget()
        pair = QVBoxLayout(lines)
        pair.setContentsMargins(0, 0, 0, 0)
        pair.setSpacing(0)
        pair.addWidget(self._first)
        pair.addWidget(self._second)
        self._readout = QStackedWidget()
        self._readout.addWidget(self._legend)
        self._readout.addWidget(lines)
        self._readout.setFixedHeight(36)
        buttons = QHBoxLayout()
        buttons.setSpacing(8)
        buttons.setContentsMargins(0, 0, 12, 0)
        buttons.addWidget(self._forget)
        buttons.addWidget(self._rebuild)
        buttons.addStretch(1)
        content = QWidget()
        content.setObjectName("column")
        column = QVBoxLayout(content)
        column.setContentsMargins(0, 0, 12, 0)
        column.setSpacing(8)
        column.addWidget(self._map)
        column.addWidget(self._readout)
        column.addWidget(self._numbers)
        column.addWidget(self._rulers)
        column.addWidget(self._graphs, 1)
        scroll = QScrollArea()
        scroll.setWidgetResizable(True)
        scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        scroll.setWidget(content)
        page = QWidget()
        both = QVBoxLayout(page)
        both.setContentsMargins(0, 0, 0, 0)
        both.setSpacing(8)
        both.addWidget(scroll, 1)
        both.addLayout(buttons)
        return page

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._map.set_room(round(self.height() * 0.34))
