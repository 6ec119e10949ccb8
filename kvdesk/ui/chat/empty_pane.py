"""A conversation without messages, or no model: what kvdesk is, and how to begin."""

from typing import Final

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QGridLayout, QLabel, QPushButton, QSizePolicy, QWidget

from kvdesk.errors import NO_TOKENIZER
from kvdesk.protocol.model import ModelInfo
from kvdesk.translation import tr
from kvdesk.ui.chat.offer_card import OfferCard
from kvdesk.ui.widgets import boxes
from kvdesk.ui.widgets.controls import label, push_button
from kvdesk.ui.widgets.kit import Kit
from kvdesk.ui.widgets.scroll_column import ScrollColumn
from kvdesk.ui.widgets.style.icons import application_icon, bubble_icon
from kvdesk.viewmodel.chat.starters import STARTERS, Starter

_ICON_PX: Final = 56
_WIDTH_PX: Final = 520
_ROOMY_PX: Final = 480  # high


class EmptyPane(ScrollColumn):
    """Icon, one sentence, three starters; and what one should know of a model that is a toy."""

    def __init__(self, kit: Kit) -> None:
        page = QWidget()
        super().__init__(page, tr("What do you want to ask?"))
        self._kit, theme = kit, kit.theme
        self._theme = theme
        self._is_toy = self._shows_cards = False
        self._model: ModelInfo | None = None
        self.icon = QLabel()
        self.icon.setAccessibleName("kvdesk")
        self._first = label("", scale="large")
        self._second = label("", tone="secondary")
        self.toy = label("")
        for text in (self.icon, self._first, self._second, self.toy):
            text.setAlignment(Qt.AlignmentFlag.AlignCenter)
            text.setWordWrap(True)
        self._open = push_button(tr("Open a model…"), primary=True, clicked=kit.act("model.open"))
        self.cards = tuple(StarterCard(starter) for starter in STARTERS)
        for card in self.cards:
            card.clicked.connect(lambda _checked=False, name=card.starter.name: self._begin(name))
        self.tour = push_button(tr("Take the tour"), quiet=True, scale="small", clicked=kit.act("help.tour"))
        self._has_tour = True
        self.offer = OfferCard(kit)
        inside = self._inside = QWidget()
        boxes.column(
            self.icon,
            self._first,
            self._second,
            self.toy,
            boxes.Gap(4),
            *self.cards,
            self.offer,
            (self.tour, 0, Qt.AlignmentFlag.AlignCenter),
            (self._open, 0, Qt.AlignmentFlag.AlignCenter),
            on=inside,
            margins=0,
            spacing=8,
        )
        around = QGridLayout(page)
        around.setContentsMargins(24, 8, 24, 8)
        around.addWidget(inside, 1, 1)
        for n, above, left in ((0, 2, 1), (2, 3, 1)):
            around.setRowStretch(n, above)
            around.setColumnStretch(n, left)
        around.setColumnStretch(1, 100)
        theme.follow(self._fit)
        self.show_model(None)

    def _begin(self, name: str) -> None:
        """Ask the questions of a card; one goes on typing."""
        self._kit.commands.ask_starter(name)
        self._kit.actions.run("chat.write")

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        """In a low window the icon is smaller, and few words are left: the offer below stays in sight."""
        self._inside.setMaximumWidth(min(self._theme.px(_WIDTH_PX), self._theme.column_in(self.width())))
        is_roomy = self.height() > self._theme.px(_ROOMY_PX)
        self._second.setVisible(is_roomy or self.toy.isHidden())
        side = self._theme.px(_ICON_PX if is_roomy else _ICON_PX // 2)
        for card in self.cards:
            card.show_about(is_roomy)
        icon = bubble_icon(self._theme.colours.hover) if self._theme.colours.dark else application_icon()
        self.icon.setPixmap(icon.pixmap(QSize(side, side), self.devicePixelRatioF()))

    def show_toy(self, is_toy: bool) -> None:
        """Whether the embedded model is open: it is a toy, which is said here."""
        self._is_toy = is_toy
        self._show_toy()

    def offer_tour(self, wanted: bool) -> None:
        """Whether the tour is offered: nobody has taken it yet."""
        self._has_tour = wanted
        self._show_cards(self._shows_cards)

    def show_model(self, model: ModelInfo | None) -> None:
        self._model = model
        self._open.setVisible(model is None)
        can_chat = model is not None and model.has_text
        self._show_cards(can_chat)
        if model is None:
            self._say(tr("No model is open"), tr("Drop a .gguf file anywhere on this window, or open one."))
        elif not can_chat:
            self._say(model.name, tr(NO_TOKENIZER))
        else:
            self._welcome()
        self._show_toy()

    def show_dead(self) -> None:
        self._model = None
        self._open.hide()
        self._show_cards(False)
        self._say(tr("The engine has stopped"), tr("Restart kvdesk to go on. Your chats are saved."))
        self._show_toy()

    def show_loading(self, name: str, share: float) -> None:  # noqa: ARG002 - the header shows how far it is
        """The starters wait in the queue as what is typed does."""
        self._model = None
        self._open.hide()
        self._show_cards(True)
        self._welcome()
        self._show_toy()

    def _welcome(self) -> None:
        self._say(
            tr("What do you want to ask?"), tr("Chat with models on this computer, and see what the KV cache is doing.")
        )

    def _show_cards(self, shown: bool) -> None:
        for card in self.cards:
            card.setVisible(shown)
        self._shows_cards = shown
        self.tour.setVisible(shown and self._has_tour)

    def _show_toy(self) -> None:
        shown = self._is_toy and self._model is not None and self._model.has_text
        if shown and self._model is not None:
            said = tr("The built-in model is a toy of {n} M parameters. It speaks only English, and it is often wrong.")
            self.toy.setText(said.format(n=f"{self._model.n_params / 1e6:,.0f}"))
        self.toy.setVisible(shown)
        self.offer.set_wanted(shown)
        self._fit()

    def _say(self, first: str, second: str) -> None:
        self._first.setText(first)
        self._second.setText(second)


class StarterCard(QPushButton):
    """A question to begin with: a heading and a line about it."""

    def __init__(self, starter: Starter) -> None:
        super().__init__()
        self.starter = starter
        self.setProperty("card", "starter")
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)  # its words are broken
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setAccessibleName(tr(starter.title))
        self.setAccessibleDescription(tr(starter.about))
        column = boxes.column(on=self, margins=(16, 8, 16, 8), spacing=0)
        self._about = label(tr(starter.about), tone="secondary", scale="small")
        for text in (label(tr(starter.title), weight="strong"), self._about):
            text.setWordWrap(True)
            text.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
            column.addWidget(text)

    def show_about(self, shown: bool) -> None:
        """The line below the heading; else it is the tool tip."""
        self._about.setVisible(shown)
        self.setToolTip("" if shown else self._about.text())

    def sizeHint(self) -> QSize:
        layout = self.layout()
        return layout.totalSizeHint() if layout is not None else super().sizeHint()

    def minimumSizeHint(self) -> QSize:
        layout = self.layout()
        return layout.totalMinimumSize() if layout is not None else super().minimumSizeHint()
