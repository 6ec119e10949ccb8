"""The right pane: a row of tabs over the cache as it is now, graphs, the time line, and the log."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar, runtime_checkable

from PySide6.QtCore import QSize, Qt, QTimer, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QButtonGroup, QHBoxLayout, QLayout, QStackedWidget, QWidget

from kvdesk.protocol.chat import LogLine, ModelLoaded
from kvdesk.protocol.features import Feature
from kvdesk.session import Changed
from kvdesk.session.changed import Update
from kvdesk.translation import marked, tr
from kvdesk.ui.cache.cache_page import CachePage
from kvdesk.ui.map.cell_map import CellMapView
from kvdesk.ui.widgets import boxes
from kvdesk.ui.widgets.controls import IconButton, label, on_ground, tab_button
from kvdesk.ui.widgets.kit import Kit, Page, Slice

if TYPE_CHECKING:
    from kvdesk.ui.shell.log_panel import LogPanel
    from kvdesk.ui.timeline.page import TimelinePage

PageT = TypeVar("PageT", bound=QWidget)

ALL_PX: Final = 350  # the narrowest it can be
CALM_PX: Final = 288


@runtime_checkable
class HasRoom(Protocol):
    """A page whose map takes a part of the height of the whole pane."""

    def set_room(self, height: int) -> None:
        """The height of the pane."""


def _make_graphs(kit: Kit) -> QWidget:
    from kvdesk.ui.graphs.graphs_page import GraphsPage

    return GraphsPage(kit.theme, kit.store.measured)


def _make_timeline(kit: Kit) -> QWidget:
    from kvdesk.ui.timeline.page import TimelinePage

    return TimelinePage(kit.theme, kit.store, kit.commands)


def _make_log(kit: Kit) -> QWidget:
    from kvdesk.ui.shell.log_panel import LogPanel

    return LogPanel(kit.theme)


PAGES: Final = (
    Page(marked("Cache"), Feature.CACHE_VIEW, CachePage),
    Page(marked("Graphs"), Feature.CACHE_VIEW, _make_graphs, late=True),  # importing pyqtgraph takes 0.4 s
    Page(marked("Timeline"), Feature.CACHE_VIEW, _make_timeline, late=True),
    Page(marked("Log"), None, _make_log, late=True, takes=LogLine),
)
"""In the order of the tabs; the first is shown at first. A page of a slice comes behind the one that it replaces, or
names.
"""


def pages_of(slices: Iterable[Slice]) -> tuple[Page, ...]:
    """All of them, in the order of the tabs."""
    others = [page for one in slices for page in one.pages]
    behind = [[other for other in others if page.label in (other.replaces, other.after)] for page in PAGES]
    return tuple(one for page, beside in zip(PAGES, behind, strict=True) for one in (page, *beside))


class Inspector(QWidget):
    """Shows the cache in pages, which read the store themselves."""

    tab_shown = Signal(str)

    def __init__(self, kit: Kit) -> None:
        super().__init__()
        on_ground(self, "panel")
        self._kit, self._theme, self._store = kit, kit.theme, kit.store
        self._pages = pages_of(kit.slices)
        self.labels = tuple(page.label for page in self._pages)
        """Of all pages, with a tab or without."""
        self._made = [None if page.late else page.make(kit) for page in self._pages]
        self.cache = self._page(CachePage)
        self.shows_all = False
        self._tabs = QButtonGroup(self)
        self._stack = _Stack()
        for made in self._made:
            self._stack.addWidget(made or _being_made())
        self._missing = label("", tone="secondary", wrap=True)  # in the place of a page that has nothing to show
        self._missing.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._missing.setContentsMargins(0, 0, 12, 0)
        self._stack.addWidget(self._missing)
        boxes.column(self._make_tabs(), (self._stack, 1), on=self, margins=(12, 8, 0, 12), spacing=8)
        self._show_all(False)
        self._theme.changed.connect(self._fit_again)
        self.destroyed.connect(kit.store.listen(self._on_changed, often=()))

    def _on_changed(self, changed: Changed, update: Update | None) -> None:
        if changed & Changed.FEATURES or isinstance(update, ModelLoaded):
            self.show_features()
        for i, page in enumerate(self._pages):
            if page.takes is not None and isinstance(update, page.takes):
                taker: Any = self._make(i)
                taker.take(update)

    def show_features(self) -> None:
        """What the back end has is known: say what is missing where it would be."""
        if not self._has(self._tabs.checkedId()):
            self.show_tab(self._first)
        self._show_tabs()
        self._fit_again()
        self._on_tab(self._tabs.checkedId())

    def show_all(self, shows_all: bool) -> None:
        """Tabs and everything on them; else the cell map and four numbers."""
        if shows_all != self.shows_all:
            self._show_all(shows_all)
            self.cache.show_numbers()

    def _show_all(self, shows_all: bool) -> None:
        self.shows_all = shows_all
        if not shows_all:
            self.show_tab(self._first)
        self._show_tabs()
        self._title.setHidden(shows_all)
        self._fit()
        self.cache.show_all(shows_all)
        self._share_room()

    def _show_tabs(self) -> None:
        for i in range(len(self._pages)):
            self._tabs.button(i).setVisible(self.shows_all and self._has(i))

    def _has(self, index: int) -> bool:
        """Whether the page with this number has a tab: one that replaces another where it can be shown, the other one
        if nothing replaces it.
        """
        page = self._pages[index]
        if page.replaces:
            return self._can_show(page)
        return not any(other.replaces == page.label and self._can_show(other) for other in self._pages)

    def _can_show(self, page: Page) -> bool:
        """Whether the back end has what the page needs."""
        return page.needs is None or not self._store.missing(page.needs)

    @property
    def _first(self) -> str:
        """The page that is shown at first."""
        return next(label for i, label in enumerate(self.labels) if self._has(i))

    @property
    def cell_map(self) -> CellMapView:
        return self.cache.map

    @property
    def timeline(self) -> TimelinePage:
        from kvdesk.ui.timeline.page import TimelinePage

        self._make(self.labels.index("Timeline"))
        return self._page(TimelinePage)

    @property
    def log(self) -> LogPanel:
        from kvdesk.ui.shell.log_panel import LogPanel

        self._make(self.labels.index("Log"))
        return self._page(LogPanel)

    @property
    def shows_cache(self) -> bool:
        """Whether what is shown follows the cache."""
        needs = self._pages[self._tabs.checkedId()].needs
        return needs in (Feature.CACHE_VIEW, Feature.ATTENTION) and not self.missing

    @property
    def missing(self) -> str:
        """The sentence in the place of the page that is chosen, empty if the page is there."""
        return self._missing.text()

    def show_tab(self, name: str) -> None:
        self._tabs.button(self.labels.index(name)).click()

    def _on_tab(self, index: int) -> None:
        needs = self._pages[index].needs
        missing = self._store.missing(needs) if needs is not None else ""
        self._missing.setText("\n".join(filter(None, (missing, self._store.limit))) if missing else "")
        if self.missing:
            self._stack.setCurrentWidget(self._missing)
        else:
            if self._made[index] is None:  # that takes a while: the tab changes at once
                self._stack.setCurrentIndex(index)
                self.repaint()
            self._make(index)
            self._stack.setCurrentIndex(index)
        self.tab_shown.emit(self.labels[index])

    def _make(self, index: int) -> QWidget:
        """The page with this number, made if that has not been done."""
        made = self._made[index]
        if made is None:
            self._made[index] = made = self._pages[index].make(self._kit)
            if (empty := self._stack.widget(index)) is not None:
                self._stack.removeWidget(empty)
                empty.deleteLater()
            self._stack.insertWidget(index, made)
            self._share_room()
            self._fit_again()
        return made

    def _page(self, kind: type[PageT]) -> PageT:
        """The page of this class, which has been made."""
        return next(page for page in self._made if isinstance(page, kind))

    def _make_tabs(self) -> QHBoxLayout:
        row = boxes.row(margins=(0, 0, 12, 0), spacing=4)
        for i, name in enumerate(self.labels):
            show = tr("Show the page {page}").format(page=tr(name))
            tab = tab_button(tr(name), name=show, checked=i == 0)
            tab.setFocusPolicy(Qt.FocusPolicy.TabFocus)  # a click looks at something; one types on in the composer
            self._tabs.addButton(tab, i)
            row.addWidget(tab)
        self._tabs.idClicked.connect(self._on_tab)
        self._title = label(tr("KV cache"), weight="strong")
        self._title.setMinimumHeight(32)
        row.addWidget(self._title)
        row.addStretch(1)
        hide, tip = self._kit.act("view.inspector"), tr("Hide the inspector (Ctrl+I)")
        close = IconButton(self._theme, "close", tr("Hide the inspector"), tip, clicked=hide)
        row.addWidget(close)
        return row

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._share_room()

    def _fit(self) -> None:
        """With all its pages it is as wide as they need, in any language, and no wider."""
        if (layout := self.layout()) is not None:
            layout.activate()  # a row that was changed counts what is hidden until then
        least = self._theme.px(ALL_PX if self.shows_all else CALM_PX)
        self.setMinimumWidth(max(least, self.minimumSizeHint().width()) if self.shows_all else least)

    def _fit_again(self) -> None:
        """Now, and when all of it has its fonts and its numbers."""

        def fit() -> None:
            for layout in self.findChildren(QLayout):
                layout.invalidate()  # Qt asks again for new sizes only what is seen
            self._fit()

        fit()
        QTimer.singleShot(0, self, fit)

    def _share_room(self) -> None:
        """Each page has a part of the height for its map."""
        for page in self._made:
            if isinstance(page, HasRoom):
                page.set_room(self.height())


class _Stack(QStackedWidget):
    """As wide as the widest of its pages, so that the pane keeps its width, and as high as the one that is shown."""

    def __init__(self) -> None:
        super().__init__()
        self.currentChanged.connect(lambda *_: self.updateGeometry())

    def minimumSizeHint(self) -> QSize:
        page = self.currentWidget()
        return QSize(super().minimumSizeHint().width(), page.minimumSizeHint().height() if page is not None else 0)


def _being_made() -> QWidget:
    """In the place of a page until it is there."""
    words = label(tr("The page is being made…"), tone="secondary")
    words.setAlignment(Qt.AlignmentFlag.AlignCenter)
    return words
