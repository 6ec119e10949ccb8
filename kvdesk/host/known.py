"""What is known of a back end now, for a subscriber who begins in the middle: its latest state and its answers."""

from collections import deque

from kvdesk.host.joining import join_text
from kvdesk.message import ConversationId, MessageId
from kvdesk.protocol import chat
from kvdesk.protocol.blocks import BlockMapView
from kvdesk.protocol.cache import CacheView, ContextReady, MemoryLedger, MessageSpans, TokenTexts
from kvdesk.protocol.features import Feature
from kvdesk.protocol.messages import Event
from kvdesk.values import dataclass, field

MOST_CONVERSATIONS = 64
"""Conversations of which the last report is remembered."""
MOST_ENDED = 64
"""That many answers that have ended are remembered, for a subscriber who was dropped meanwhile."""
_STATE: tuple[type, ...] = (
    chat.BackendReady,
    chat.ModelLoaded,
    ContextReady,
    MemoryLedger,
    TokenTexts,
    CacheView,
    BlockMapView,
    chat.Working,
    chat.EngineDied,
)
"""In the order in which they are reported."""
_OF_CONTEXT: tuple[type, ...] = (ContextReady, MemoryLedger, CacheView)


@dataclass(slots=True)
class _Answer:
    """One answer: what was reported of it so far. `n_ended`: the number of the event `ended`."""

    started: chat.TurnStarted | None = None
    parts: list[chat.TextDelta] = field(default_factory=list)
    ended: chat.TurnEnded | None = None
    n_ended: int = 0

    def text(self) -> list[chat.TextDelta]:
        """All pieces as one; none if there are none."""
        return [join_text(self.parts)] if self.parts else []

    def events(self) -> list[Event]:
        return [event for event in (self.started, *self.text(), self.ended) if event is not None]


class Known:
    """Keeps up with every event. Not safe for several threads: the host locks it."""

    def __init__(self) -> None:
        self.n = 0
        """Events reported so far."""
        self._state: dict[type, Event] = {}
        self._texts: dict[int, str] = {}
        self._conversations: dict[ConversationId, dict[type, Event]] = {}
        self._running: dict[MessageId, _Answer] = {}
        self._ended: deque[_Answer] = deque(maxlen=MOST_ENDED)

    def add(self, event: Event) -> None:
        """Remember what a later subscriber must know of it."""
        self.n += 1
        match event:
            case chat.TextDelta():
                self._answer(event.answer).parts.append(event)
            case chat.TurnStarted():
                self._answer(event.answer).started = event
            case chat.TurnEnded():
                answer = self._running.pop(event.answer, None) or _Answer()
                answer.ended, answer.n_ended = event, self.n
                answer.parts = answer.text()  # joined once: thousands of pieces would be kept for each answer
                self._ended.append(answer)
            case TokenTexts():
                self._texts.update(event.texts)
            case chat.EngineRestarted():
                self._forget_model()
            case MessageSpans() | chat.MessageRetention() | chat.MessagesEvicted():
                told = self._conversations.pop(event.conversation, {})
                told[type(event)] = event
                self._conversations[event.conversation] = told
                if len(self._conversations) > MOST_CONVERSATIONS:
                    del self._conversations[next(iter(self._conversations))]
            case _:
                if type(event) in _STATE:
                    self._set(event)

    def events(self, since: int | None = None) -> list[Event]:
        """What a subscriber has to know who begins now; the answers under way come last, each with its text so far.

        since   of the host's events the first that many were read: answers that ended after them are reported as well
        """
        if self._texts:
            self._state[TokenTexts] = TokenTexts(dict(self._texts))
        known = [self._state[kind] for kind in _STATE if kind in self._state]
        for told in self._conversations.values():
            known += told.values()
        ended = [answer for answer in self._ended if since is not None and answer.n_ended > since]
        for answer in (*ended, *self._running.values()):
            known += answer.events()
        return known

    def _answer(self, answer: MessageId) -> _Answer:
        if answer not in self._running:
            self._running[answer] = _Answer()
        return self._running[answer]

    def _set(self, event: Event) -> None:
        """What was reported of a model or context is untrue with another one, and after a loss of the view of cells."""
        if isinstance(event, chat.ModelLoaded | chat.EngineDied):
            self._forget_model()
        elif isinstance(event, ContextReady) or (
            isinstance(event, chat.BackendReady) and Feature.CACHE_VIEW not in event.features
        ):
            self._forget_context()
        self._state[type(event)] = event
        if isinstance(event, chat.Working) and not event.total:
            del self._state[chat.Working]

    def _forget_model(self) -> None:
        self._forget_context()
        self._state.pop(chat.ModelLoaded, None)
        self._state.pop(TokenTexts, None)
        self._texts.clear()

    def _forget_context(self) -> None:
        """What has left a conversation (`MessagesEvicted`) outlives its context."""
        for kind in _OF_CONTEXT:
            self._state.pop(kind, None)
        for told in self._conversations.values():
            told.pop(MessageSpans, None)
            told.pop(chat.MessageRetention, None)
