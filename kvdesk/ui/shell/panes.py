"""Conversations, chat and what is beside it (the cache, or the parameters of the chat): how narrow each can be, and
which of them are folded away.
"""

from typing import Final, cast

from PySide6.QtCore import QSize, Qt, QTimer, Signal
from PySide6.QtGui import QResizeEvent, QShowEvent
from PySide6.QtWidgets import QSplitter, QWidget

from kvdesk.settings import WindowPlace
from kvdesk.ui.chat.chat_pane import ChatPane
from kvdesk.ui.chat_list.conversation_list import ConversationList
from kvdesk.ui.shell.inspector import Inspector
from kvdesk.ui.widgets import boxes
from kvdesk.ui.widgets.kit import Kit
from kvdesk.ui.widgets.style.sizes import FRAME

SIDEBAR_PX: Final = 160  # the narrowest it can be; the inspector says so itself
CHAT_PX: Final = 408  # a model's name, how full the context is and what happens then, in one line


class Panes(QSplitter):
    """Three panes. The third is the inspector, or the parameters in its place while they are open. Where the window has
    no room for three, it is shown instead of the conversations; without room for two, the chat alone, or the pane
    beside it that someone asks for.
    """

    parameters_shown = Signal(bool)
    folded = Signal()
    """Panes may have come or gone."""

    def __init__(self, kit: Kit, sidebar: ConversationList, chat: ChatPane, inspector: Inspector) -> None:
        super().__init__(Qt.Orientation.Horizontal)
        self._sidebar, self._chat, self._inspector = sidebar, chat, inspector
        theme = self._theme = kit.theme
        self._settings = kit.store.settings
        self._fitted = 3, True
        self._parameters: QWidget | None = None
        self.shows_parameters = False
        """Whether they are open; they may have no room now."""
        self.asked_for: QWidget | None = None
        """Without room for two: this pane is shown, since someone asked for it, and not the chat."""
        self._side = QWidget()
        self._beside = boxes.row(inspector, on=self._side, margins=0)
        self.setHandleWidth(1)
        self.setChildrenCollapsible(False)
        for place, (pane, stretch) in enumerate(((sidebar, 0), (chat, 1), (self._side, 0))):
            self.addWidget(pane)
            self.setStretchFactor(place, stretch)
        self._scale = theme.scale
        self._unscaled: list[float] = []  # widths without zoom; none since a person has moved a handle
        sidebar.chosen.connect(self.show_chat)
        self.splitterMoved.connect(lambda *_: self._unscaled.clear())
        theme.follow(self._on_look_changed)

    @property
    def is_narrow(self) -> bool:
        """There is no room for three: in the window, or on its screen while the window is hidden."""
        return self._n_fitting() < 3

    def show_parameters(self, panel: QWidget) -> None:
        """In the inspector's place."""
        if self._parameters is None:
            self._parameters = panel
            self._beside.addWidget(panel)
        if not self.shows_parameters:
            self.shows_parameters = True
            self.fold()
            self.parameters_shown.emit(True)

    def hide_parameters(self) -> None:
        """What was beside the chat before is shown again."""
        if self.shows_parameters:
            self.shows_parameters = False
            self.fold()
            self.parameters_shown.emit(False)

    def show_chat(self) -> None:
        """And nothing in its place."""
        if self._chat.isHidden():
            self.hide_parameters()
            self.asked_for = None
            self.fold()
            self._chat.composer.focus_edit()

    def leave(self) -> bool:
        """Leave what is in the chat's place, or the parameters with the keyboard in them. False: neither is so."""
        focus = cast("QWidget | None", self.window().focusWidget())
        if self._chat.isHidden():
            self.show_chat()
        elif self.shows_parameters and focus is not None and self._side.isAncestorOf(focus):
            self.hide_parameters()
        else:
            return False
        return True

    @property
    def _third(self) -> QWidget:
        """What is beside the chat."""
        is_theirs = self.shows_parameters and self._parameters is not None
        return self._parameters if is_theirs and self._parameters is not None else self._inspector

    @property
    def _room(self) -> int:
        """The width for all panes; as wide as the screen while the window is hidden."""
        return self.width() if self.isVisible() else self.screen().availableGeometry().marginsRemoved(FRAME).width()

    def _n_fitting(self) -> int:
        """How many panes there is room for: the chat, what is beside it, the conversations."""
        two = self._chat.minimumWidth() + self._third.minimumWidth() + 2 * self.handleWidth()
        return 3 if self._room >= two + self._sidebar.minimumWidth() else 2 if self._room >= two else 1

    def _fits_list(self) -> bool:
        """Whether there is room for the chat and the conversations, without a third."""
        return self._room >= self._chat.minimumWidth() + self._sidebar.minimumWidth() + self.handleWidth()

    def minimumSizeHint(self) -> QSize:
        """A window that is made narrower loses the conversations, then the inspector."""
        size = super().minimumSizeHint()
        least = {self._sidebar: self._sidebar.minimumWidth(), self._side: self._third.minimumWidth()}
        shown = [pane for pane in least if not pane.isHidden()]
        lost = sum(least[pane] + self.handleWidth() for pane in shown[:1])
        if len(shown) == 1 and not self._chat.isHidden() and self._theme.scale > 1:
            return size - QSize(lost, 0)
        return size - QSize(lost, 0) if len(shown) == 2 else size

    def fold(self) -> None:
        """Show what the settings want to be shown, as far as there is room."""
        settings = self._settings.current
        self._inspector.show_all(settings.all_instruments)
        self._fitted = n, fits_list = self._n_fitting(), self._fits_list()
        parameters = self.shows_parameters and self._parameters is not None
        alone = n == 1 and (parameters or (settings.inspector_visible and self.asked_for is self._inspector))
        third = (parameters or settings.inspector_visible) and (n > 1 or alone)
        listed = settings.sidebar_visible and not (third and n < 3) and (fits_list or self.asked_for is self._sidebar)
        self._sidebar.setVisible(listed)
        self._chat.setVisible(not alone and (fits_list or not listed))
        if self._parameters is not None:
            self._parameters.setVisible(third and parameters)
        self._inspector.setVisible(third and not parameters)
        self._side.setVisible(third)
        self.folded.emit()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._refold()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._refold()
        QTimer.singleShot(0, self, self._zoom)  # the size was changed in the settings

    def _refold(self) -> None:
        if (self._n_fitting(), self._fits_list()) != self._fitted:
            self.asked_for = None
            self.fold()

    def _on_look_changed(self) -> None:
        """Larger text needs wider panes."""
        if self._scale != self._theme.scale and not self._unscaled:
            place = WindowPlace()
            usual = place.sidebar_width, 0, place.inspector_width  # of a pane that is folded away
            known = zip(self.sizes(), usual, strict=True)
            self._unscaled = [width / self._scale or other for width, other in known]
        self._sidebar.setMinimumWidth(self._theme.px(SIDEBAR_PX))
        self._chat.setMinimumWidth(self._theme.px(CHAT_PX))
        if self.isVisible():
            self._refold()
            QTimer.singleShot(0, self, self._zoom)  # when the inspector knows how narrow it can be

    def _zoom(self) -> None:
        """The panes beside the chat are as wide for their text as they were, also after a zoom that had no room."""
        self._refold()
        if self._unscaled and self._scale != self._theme.scale:
            self._scale = self._theme.scale
            left, _, right = (self._theme.px(round(width)) for width in self._unscaled)
            self.setSizes([left, max(0, self.width() - left - right), right])
