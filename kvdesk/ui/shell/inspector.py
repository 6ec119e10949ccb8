"""The right pane: a row of tabs over the cache as it is now, graphs, the time line, and the log."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar, cast

from PySide6.QtCore import Qt, QTimer, Signal, Slot
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QButtonGroup, QHBoxLayout, QPushButton, QStackedWidget, QToolButton, QVBoxLayout, QWidget

from kvdesk.protocol.blocks import BlockMapView
from kvdesk.protocol.cache import CacheView, LoadSample, MemoryLedger, OperationDone, TokenTexts
from kvdesk.protocol.chat import LogLine
from kvdesk.protocol.features import Feature
from kvdesk.protocol.operations import BatchRefused
from kvdesk.translation import tr
from kvdesk.ui.cache.cache_page import CachePage
from kvdesk.ui.map.cell_map import CellMapView
from kvdesk.ui.widgets.controls import IconButton, label
from kvdesk.ui.widgets.theme import Theme
from kvdesk.values import dataclass
from kvdesk.viewmodel.cache_state import CacheState
from kvdesk.viewmodel.measurements import Measurements

if TYPE_CHECKING:
    from kvdesk.ui.blocks.page import BlocksPage
    from kvdesk.ui.cache.numbers_panel import NumbersPanel
    from kvdesk.ui.cache.rulers import Rulers
    from kvdesk.ui.shell.log_panel import LogPanel
    from kvdesk.ui.timeline.page import TimelinePage

PageT = TypeVar("PageT", bound=QWidget)

ALL_PX: Final = 350  # the narrowest it can be
CALM_PX: Final = 288
_COUNT_S: Final = 0.2  # from one count of cells to the next while an answer is written


class PageParts(NamedTuple):
    """The data that pages show. `texts`: of token ids that are known."""

    theme: Theme
    state: CacheState
    measured: Measurements
    texts: dict[int, str]


@dataclass(frozen=True, slots=True)
class Page:
    """A page of the inspector.

    label       on its tab
    needs       the feature of the back end without which it has nothing to show; None: it always has
    make        makes its widget
    late        made, and its modules imported, when it is first shown or has something to keep
    instead_of  the page whose place it takes where the back end has what it needs; else it has no tab
    """

    label: str
    needs: Feature | None
    make: Callable[[PageParts], QWidget]
    late: bool = False
    instead_of: str = ""


def _make_graphs(parts: PageParts) -> QWidget:
    from kvdesk.ui.graphs.graphs_page import GraphsPage

    return GraphsPage(parts.theme, parts.measured)


def _make_blocks(parts: PageParts) -> QWidget:
    from kvdesk.ui.blocks.page import BlocksPage

    return BlocksPage(parts.theme)


def _make_timeline(parts: PageParts) -> QWidget:
    from kvdesk.ui.timeline.page import TimelinePage

    return TimelinePage(parts.theme, parts.state, parts.texts)


def _make_log(parts: PageParts) -> QWidget:
    from kvdesk.ui.shell.log_panel import LogPanel

    return LogPanel(parts.theme)


PAGES: Final = (
    Page("Cache", Feature.CACHE_VIEW, lambda parts: CachePage(parts.theme, parts.measured)),
    Page("Blocks", Feature.BLOCK_MAP, _make_blocks, late=True, instead_of="Cache"),
    Page("Graphs", Feature.CACHE_VIEW, _make_graphs, late=True),  # importing pyqtgraph takes 0.4 s
    Page("Timeline", Feature.CACHE_VIEW, _make_timeline, late=True),
    Page("Log", None, _make_log, late=True),
)
"""In the order of the tabs; the first is shown at first."""
LABELS: Final = tuple(page.label for page in PAGES)


def shown_name(label: str) -> str:
    """The label of a page in the person's language."""
    names = {
        "Cache": tr("Cache"),
        "Graphs": tr("Graphs"),
        "Timeline": tr("Timeline"),
        "Blocks": tr("Blocks"),
        "Log": tr("Log"),
    }
    return names.get(label, label)


class Inspector(QWidget):
    """Shows what the cache state says; says which button was pressed."""

    forget_clicked = Signal()
    rebuild_clicked = Signal()
    close_clicked = Signal()
    tab_shown = Signal(str)
    all_wanted = Signal(bool)  # all of it, or only the map and four numbers
    undo_clicked = Signal(int)  # on the time line, as the next two
    recording_wanted = Signal()
    export_requested = Signal(str, object)  # path, Recording

    def __init__(
        self,
        theme: Theme,
        state: CacheState,
        measured: Measurements | None = None,
        texts: dict[int, str] | None = None,
    ) -> None:
        """measured, texts: those of an inspector before it, which go on."""
        super().__init__()
        self.setProperty("pane", "panel")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self._theme = theme
        self._state = state
        self._operation: int | None = None
        self._counted_s = 0.0
        self._texts = {} if texts is None else texts
        self.measured = Measurements() if measured is None else measured
        self._parts = PageParts(theme, state, self.measured, self._texts)
        self._made = [None if page.late else page.make(self._parts) for page in PAGES]
        self._cache = self._page(CachePage)
        self._timeline: TimelinePage | None = None
        self._cache.map.show_token_texts(self._texts)
        self._cache.forget_clicked.connect(self.forget_clicked)
        self._cache.rebuild_clicked.connect(self.rebuild_clicked)
        self._cache.all_clicked.connect(lambda: self.all_wanted.emit(True))
        self._cache.less_clicked.connect(lambda: self.all_wanted.emit(False))
        self._shows_all = False
        self._tabs = QButtonGroup(self)
        self._stack = QStackedWidget()
        for made in self._made:
            self._stack.addWidget(made or _being_made())
        self._missing = label("", tone="secondary")  # in the place of a page that has nothing to show
        self._missing.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._missing.setWordWrap(True)
        self._stack.addWidget(self._missing)
        column = QVBoxLayout(self)
        column.setContentsMargins(12, 8, 0, 12)
        column.setSpacing(8)
        column.addLayout(self._make_tabs())
        column.addWidget(self._stack, 1)
        self.set_can(forget=False, rebuild=False)
        self._show_all(False)
        theme.changed.connect(self._fit)

    def show_features(self) -> None:
        """What the back end has is known: say what is missing where it would be."""
        for button, feature in (
            (self._cache.forget, Feature.CACHE_OPERATIONS),
            (self._cache.rebuild, Feature.REBUILD),
        ):
            if missing := self._state.missing(feature):
                button.setToolTip(missing)
        if not self._has(self._tabs.checkedId()):
            self.show_tab(self._first)
        self._show_tabs()
        self._on_tab(self._tabs.checkedId())

    def show_all(self, shows_all: bool) -> None:
        """Tabs and everything on them; else the cell map and four numbers."""
        if shows_all != self._shows_all:
            self._show_all(shows_all)
            self.show_numbers()

    def _show_all(self, shows_all: bool) -> None:
        self._shows_all = shows_all
        if not shows_all:
            self.show_tab(self._first)
        self._show_tabs()
        self._title.setHidden(shows_all)
        self._fit()
        self._cache.show_all(shows_all)
        self._share_room()

    def _show_tabs(self) -> None:
        for i in range(len(PAGES)):
            self._tabs.button(i).setVisible(self._shows_all and self._has(i))

    def _has(self, index: int) -> bool:
        """Whether the page with this number has a tab."""
        page = PAGES[index]
        return (
            self._can_show(page)
            if page.instead_of
            else all(other.instead_of != page.label or not self._can_show(other) for other in PAGES)
        )

    def _can_show(self, page: Page) -> bool:
        """Whether the back end has what the page needs."""
        return page.needs is None or not self._state.missing(page.needs)

    @property
    def _first(self) -> str:
        """The page that is shown at first."""
        return next(label for i, label in enumerate(LABELS) if self._has(i))

    def reveal_all(self) -> None:
        """Something is to be shown that is not in the map and the four numbers."""
        if not self._shows_all:
            self.all_wanted.emit(True)

    @property
    def shows_all(self) -> bool:
        return self._shows_all

    @property
    def cache(self) -> CachePage:
        return self._cache

    @property
    def cell_map(self) -> CellMapView:
        return self._cache.map

    @property
    def numbers(self) -> NumbersPanel:
        return self._cache.instruments.numbers

    @property
    def rulers(self) -> Rulers:
        return self._cache.instruments.rulers

    @property
    def blocks(self) -> BlocksPage:
        from kvdesk.ui.blocks.page import BlocksPage

        self._make(LABELS.index("Blocks"))
        return self._page(BlocksPage)

    @property
    def timeline(self) -> TimelinePage:
        self._make(LABELS.index("Timeline"))
        assert self._timeline is not None
        return self._timeline

    @property
    def made_timeline(self) -> TimelinePage | None:
        """The time line if it has been made: it need not be for what it would only forget."""
        return self._timeline

    @property
    def log(self) -> LogPanel:
        from kvdesk.ui.shell.log_panel import LogPanel

        self._make(LABELS.index("Log"))
        return self._page(LogPanel)

    @property
    def forget_button(self) -> QPushButton:
        return self._cache.forget

    @property
    def rebuild_button(self) -> QPushButton:
        return self._cache.rebuild

    @property
    def readout(self) -> str:
        return self._cache.readout

    @property
    def texts(self) -> dict[int, str]:
        """The texts of token ids that are known."""
        return self._texts

    @property
    def tab(self) -> str:
        return LABELS[self._tabs.checkedId()]

    @property
    def shows_cache(self) -> bool:
        """Whether what is shown follows the cache."""
        return PAGES[self._tabs.checkedId()].needs is Feature.CACHE_VIEW and not self.missing

    @property
    def missing(self) -> str:
        """The sentence in the place of the page that is chosen, empty where the page is there."""
        return self._missing.text()

    def show_tab(self, name: str) -> None:
        self._tabs.button(LABELS.index(name)).click()

    def show_names(self) -> None:
        """The conversations have changed: titles, colours, which one is selected."""
        self._cache.show_map(self._state)

    def show_view(self) -> None:
        """A new view of the cache is in the state."""
        view = self._state.view
        if view is None:
            return
        self._cache.show_map(self._state)
        if view.snapshot.operation != self._operation:
            self._operation = view.snapshot.operation
            self._count(view)

    def show_numbers(self) -> None:
        """Write what need not follow every view."""
        self._cache.show_numbers(self._state)

    def _count(self, view: CacheView) -> None:
        """Add the view to the measurements."""
        now = time.monotonic()
        if not self._state.running or now - self._counted_s >= _COUNT_S:
            self._counted_s = now
            self.measured.add_view(view, self._state.context)

    def forget_model(self) -> None:
        """Another model is open: readings and token texts of the one before are not its own."""
        self.measured.forget()
        self._texts.clear()

    def add_operation(self, operation: OperationDone) -> None:
        name = operation.conversation
        conversation = self._state.conversations.get(name) if name else None
        self.measured.add_operation(operation, conversation.colour if conversation else None)

    def note(self, event: LoadSample | BatchRefused | LogLine | MemoryLedger | TokenTexts | BlockMapView) -> None:
        """Something that one part alone shows."""
        match event:
            case MemoryLedger():
                self.measured.set_ledger(event)
            case LoadSample():
                self.measured.add_load(event)
            case BatchRefused():
                self.rulers.show_refused(event)
            case LogLine():
                self.log.append(event)
            case BlockMapView():
                self.blocks.show_view(event)
            case TokenTexts():
                self._texts.update(event.texts)

    def set_can(self, *, forget: bool, rebuild: bool) -> None:
        self._cache.forget.setEnabled(forget)
        self._cache.rebuild.setEnabled(rebuild)
        self._cache.show_possible(self._state)

    def set_rebuilding(self, rebuilding: bool) -> None:
        self._cache.rebuild.setText(tr("Rebuilding…") if rebuilding else tr("Rebuild context"))

    @Slot(int)
    def _on_tab(self, index: int) -> None:
        needs = PAGES[index].needs
        missing = self._state.missing(needs) if needs is not None else ""
        self._missing.setText("\n".join(filter(None, (missing, self._state.limit))) if missing else "")
        if self.missing:
            self._stack.setCurrentWidget(self._missing)
        else:
            if self._made[index] is None:  # that takes a while: the tab changes at once
                self._stack.setCurrentIndex(index)
                self.repaint()
            self._make(index)
            self._stack.setCurrentIndex(index)
        self.tab_shown.emit(LABELS[index])

    def _make(self, index: int) -> None:
        """Make the page with this number if that has not been done."""
        if self._made[index] is None:
            self._made[index] = made = PAGES[index].make(self._parts)
            if (empty := self._stack.widget(index)) is not None:
                self._stack.removeWidget(empty)
                empty.deleteLater()
            self._stack.insertWidget(index, made)
            if PAGES[index].label == "Timeline":
                self._connect_timeline(cast("TimelinePage", made))
            QTimer.singleShot(0, self, self._fit)  # when it has its fonts and its numbers

    def _connect_timeline(self, timeline: TimelinePage) -> None:
        self._timeline = timeline
        timeline.undo_clicked.connect(self.undo_clicked)
        timeline.recording_wanted.connect(self.recording_wanted)
        timeline.export_requested.connect(self.export_requested)
        timeline.set_room(self.height())

    def _page(self, kind: type[PageT]) -> PageT:
        """The page of this class, which has been made."""
        return next(page for page in self._made if isinstance(page, kind))

    def _make_tabs(self) -> QHBoxLayout:
        row = QHBoxLayout()
        row.setContentsMargins(0, 0, 12, 0)
        row.setSpacing(4)
        for i, name in enumerate(LABELS):
            tab = QToolButton()
            tab.setText(shown_name(name))
            tab.setCheckable(True)
            tab.setChecked(i == 0)
            tab.setProperty("tab", True)
            tab.setFocusPolicy(Qt.FocusPolicy.TabFocus)  # a click looks at something; one types on in the composer
            tab.setAccessibleName(tr("Show the page {page}").format(page=shown_name(name)))
            self._tabs.addButton(tab, i)
            row.addWidget(tab)
        self._tabs.idClicked.connect(self._on_tab)
        self._title = label(tr("KV cache"), weight="strong")
        self._title.setMinimumHeight(32)
        row.addWidget(self._title)
        row.addStretch(1)
        close = IconButton(self._theme, "close", tr("Hide the inspector"), tr("Hide the inspector (Ctrl+I)"))
        close.clicked.connect(self.close_clicked)
        row.addWidget(close)
        return row

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._share_room()
        if self._timeline is not None:
            self._timeline.set_room(self.height())

    @Slot()
    def _fit(self) -> None:
        """With all its pages it is as wide as they need, in any language."""
        least = self._theme.px(ALL_PX if self._shows_all else CALM_PX)
        self.setMinimumWidth(max(least, self.minimumSizeHint().width()) if self._shows_all else least)

    def _share_room(self) -> None:
        self._cache.map.set_room(round(self.height() / 2))


def _being_made() -> QWidget:
    """In the place of a page until it is there."""
    words = label(tr("The page is being made…"), tone="secondary")
    words.setAlignment(Qt.AlignmentFlag.AlignCenter)
    return words
