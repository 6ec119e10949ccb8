"""What the schemas of tools cost: asked of the engine, and shown before a server is switched on and in the chat."""

import itertools
from collections.abc import Callable
from typing import Final

from PySide6.QtCore import QObject

from kvdesk.chat import Conversation
from kvdesk.conversations.requests import GREETING
from kvdesk.conversations.service import ConversationService
from kvdesk.message import ConversationId, Message, new_message_id
from kvdesk.protocol.chat import ModelLoaded, PreviewTurn, TurnEnded
from kvdesk.protocol.features import Feature
from kvdesk.protocol.messages import Event
from kvdesk.protocol.prompt import PriceTools, ToolsPriced
from kvdesk.session import Store
from kvdesk.session.changed import Changed
from kvdesk.translation import tr
from kvdesk.ui.tools.words import read_again_text
from kvdesk.ui.widgets.timers import once
from kvdesk.values import replace

PRICE_MS: Final = 300
_SAMPLE: Final = ConversationId("tools")
"""Of a chat that does not exist: what a server costs in any."""


class ToolPrices(QObject):
    """`service` is set once the conversations exist.

    submit   to the engine
    schemas  the text of the schemas of these servers, by their names
    """

    service: ConversationService

    def __init__(
        self,
        parent: QObject,
        session: Store,
        submit: Callable[[PriceTools], None],
        schemas: Callable[[tuple[str, ...]], str],
    ) -> None:
        super().__init__(parent)
        self._session, self._submit, self._schemas = session, submit, schemas
        self._numbers = itertools.count(1)
        self._changes: dict[int, str] = {}  # sentences about changed tools that wait for their price
        self._pause = once(self, PRICE_MS, self._ask)
        self.destroyed.connect(session.listen(self._on_selected, Changed.SELECTED))

    def renew(self) -> None:
        """Ask again what is not known, and what the shown chat pays."""
        self._pause.start()

    def report(self, known: Conversation, before: str, now: str, sentence: str) -> None:
        """Say that the schemas of a chat changed, once it is known what is read again for it."""
        turn = self.service.turns.priced(known)
        if turn is None or self._session.model is None or self._session.missing(Feature.TOOLS):
            self._session.notify(sentence)
            return
        number = next(self._numbers)
        self._changes[number] = sentence
        self._submit(PriceTools(replace(turn, tools=before), (("", now),), number))

    def apply(self, event: Event) -> None:
        """Events of the engine."""
        match event:
            case ToolsPriced():
                self._show(event)
            case ModelLoaded():
                self._session.show_tools(prices={}, chat_prices={})
                self.renew()
            case TurnEnded() if self._session.tool_lists:
                self.renew()

    def _on_selected(self, *_heard: object) -> None:
        if self._session.chat_prices:
            self._session.show_tools(chat_prices={})
        self.renew()

    def _ask(self) -> None:
        """What each server costs alone, until that is known, and what each costs in the chat that is shown."""
        session = self._session
        if session.model is None or session.missing(Feature.TOOLS) or not session.tool_lists:
            return
        sample = (Message(new_message_id(), _SAMPLE, None, "user", tr(GREETING)),)
        for name in session.tool_lists:
            if (price := session.tool_prices.get(name)) is None or price.ms is None:
                alone = PreviewTurn(_SAMPLE, sample, tools=self._schemas((name,)))
                self._submit(PriceTools(alone, ((name, ""),)))
        known = session.shown
        if known is None or not known.tools:
            session.show_tools(chat_prices={})
            return
        turn = self.service.turns.priced(known)
        without = tuple(
            (name, self._schemas(tuple(one for one in known.tools if one != name)))
            for name in known.tools
            if name in session.tool_lists
        )
        if turn is not None and without:
            self._submit(PriceTools(turn, without))

    def _show(self, priced: ToolsPriced) -> None:
        prices = {price.server: price for price in priced.prices}
        if (sentence := self._changes.pop(priced.number, None)) is not None:
            self._session.notify(" ".join((sentence, *map(read_again_text, priced.prices))))
        elif priced.conversation == _SAMPLE:
            self._session.show_tools(prices={**self._session.tool_prices, **prices})
        elif priced.conversation == self._session.selected:
            self._session.show_tools(chat_prices=prices)
