"""Between the host's thread and the server's event loop: commands go down, each request gets its own events.

One wake of the loop for any number of events (`call_soon_threadsafe`), and none again until they were taken.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from itertools import count
from typing import Any, Final, cast

from kvdesk.host.host import Host
from kvdesk.host.subscription import Subscription
from kvdesk.message import MessageId
from kvdesk.protocol.cache import CacheView, SequenceTransferred, TransferSequence, Watch
from kvdesk.protocol.chat import EngineDied, Generate, Overflowed, PrefillProgress, TextDelta, TurnEnded, TurnStarted
from kvdesk.protocol.messages import CommandFailed, Event, SubscriptionDropped
from kvdesk.protocol.prompt import Detokenize, Tokenize, Tokenized
from kvdesk.server.errors import ApiError
from kvdesk.server.state import ServerState
from kvdesk.values import replace

WATCHER: Final = "server"
COUNTS_S: Final = 1.0
"""So long counts wait for a view of the cache."""
_ANSWER_S: Final = 60.0
"""So long an answer to a question is waited for: the engine may be reading a long prompt, or opening a model."""

AnswerEvent = TurnStarted | PrefillProgress | TextDelta | TurnEnded | Overflowed | CommandFailed | EngineDied


class _Asked:
    """A request that runs or waits: where its events go, and how much of its text has come."""

    __slots__ = ("n_chars", "n_tokens", "put")

    def __init__(self, put: Callable[[AnswerEvent], None]) -> None:
        self.put = put
        self.n_chars = self.n_tokens = 0

    def text(self, event: TextDelta, *, repeated: bool) -> TextDelta:
        """The new part of a text that comes again from its beginning, after too much was waiting to be taken."""
        if repeated:
            n, m = self.n_chars, self.n_tokens
            event = replace(event, text=event.text[n:], tokens=event.tokens[m:], logprobs=event.logprobs[m:])
        self.n_chars += len(event.text)
        self.n_tokens += len(event.tokens)
        return event


class HostBridge:
    """Made and used on the event loop; `close` it there."""

    def __init__(self, host: Host, state: ServerState) -> None:
        self.host, self.state = host, state
        self._loop = asyncio.get_running_loop()
        self._asked: dict[MessageId, _Asked] = {}
        self._questions: dict[int, asyncio.Future[Any]] = {}
        self._numbers = count(1)
        self._views: deque[asyncio.Future[CacheView]] = deque()
        self._n_watching = 0
        self._closed = False
        self.over = False  # no stream without an end goes on
        self.on_over: set[Callable[[], None]] = set()
        self._subscription: Subscription = host.subscribe(self._wake, known=True)
        self._take()

    # --- what is asked ------------------------------------------------------------------------------------------------

    def ask(self, command: Generate, put: Callable[[AnswerEvent], None]) -> None:
        """Send a request; `put` gets its events, the last of which is `TurnEnded`, `CommandFailed` or `EngineDied`."""
        self._asked[command.answer] = _Asked(put)
        self.host.submit(command)

    @property
    def n_asked(self) -> int:
        """Requests that run or wait."""
        return len(self._asked)

    def stop(self, answer: MessageId) -> None:
        """End the request; nothing if it has ended."""
        if self._asked.pop(answer, None) is not None:
            self.host.stop(answer)

    def end_early(self, answer: MessageId) -> None:
        """End the request with what it has; its last events still come."""
        if answer in self._asked:
            self.host.stop(answer)

    async def tokenized(self, command: Tokenize | Detokenize) -> Tokenized:
        """The answer to a question about tokens. Raises ApiError."""
        return cast("Tokenized", await self._answered(command))

    async def transferred(self, command: TransferSequence) -> SequenceTransferred:
        """What became of a sequence. Raises ApiError."""
        return cast("SequenceTransferred", await self._answered(command))

    async def _answered(self, command: Tokenize | Detokenize | TransferSequence) -> Tokenized | SequenceTransferred:
        command = replace(command, number=next(self._numbers))
        future: asyncio.Future[Tokenized | SequenceTransferred] = self._loop.create_future()
        self._questions[command.number] = future
        self.host.submit(command)
        try:
            async with asyncio.timeout(_ANSWER_S):
                answer = await future
        except TimeoutError:
            raise ApiError(503, "The engine is busy.", retry_s=5) from None
        finally:
            self._questions.pop(command.number, None)
        if answer.problem:
            raise ApiError(400, answer.problem)
        return answer

    def watch(self) -> None:
        """Views of the cache come until `unwatch`."""
        self._n_watching += 1
        if self._n_watching == 1:
            self.host.submit(Watch(True, WATCHER))

    def unwatch(self) -> None:
        self._n_watching -= 1
        if self._n_watching == 0:
            self.host.submit(Watch(False, WATCHER))

    async def view(self, seconds: float = 5.0) -> CacheView | None:
        """The cache as it is now; None if it does not come in that time, or no model is open."""
        if self.state.context is None:
            return None
        future: asyncio.Future[CacheView] = self._loop.create_future()
        self._views.append(future)
        self._n_watching += 1
        self.host.submit(Watch(True, WATCHER))  # answered by a view, however many watch already
        try:
            async with asyncio.timeout(seconds):
                return await future
        except TimeoutError:
            return None
        finally:
            if future in self._views:
                self._views.remove(future)
            self.unwatch()

    def end(self) -> None:
        """The server ends: stop what runs, and the streams without an end."""
        self.over = True
        for answer in self._asked:
            self.host.stop(answer)
        for tell in tuple(self.on_over):
            tell()

    def close(self) -> None:
        """Stop what runs and take no more events."""
        self._closed = True
        for answer in tuple(self._asked):
            self.stop(answer)
        if self._n_watching:
            self.host.submit(Watch(False, WATCHER))
        self._subscription.close()

    # --- events -------------------------------------------------------------------------------------------------------

    def _wake(self) -> None:
        """On the host's thread."""
        try:
            self._loop.call_soon_threadsafe(self._take)
        except RuntimeError:  # the loop is closed
            pass

    def _take(self) -> None:
        if self._closed:
            return
        repeated = False
        for event in self._subscription.take():
            repeated = repeated or isinstance(event, SubscriptionDropped)
            self._apply(event, repeated=repeated)

    def _apply(self, event: Event, *, repeated: bool) -> None:
        self.state.apply(event, repeated=repeated)
        match event:
            case TextDelta() | TurnStarted() | PrefillProgress() | Overflowed() | TurnEnded():
                self._tell(event, repeated=repeated)
            case CommandFailed(command=Generate() as command):
                if (asked := self._asked.pop(command.answer, None)) is not None:
                    asked.put(event)
            case CommandFailed(command=(Tokenize() | Detokenize()) as question):
                self._answer(Tokenized(question.number, problem=event.sentence))
            case CommandFailed(command=TransferSequence() as question):
                self._answer(SequenceTransferred(question.number, problem=event.sentence))
            case Tokenized() | SequenceTransferred():
                self._answer(event)
            case CacheView():
                self._show(event)
            case EngineDied():
                for asked in self._asked.values():
                    asked.put(event)
                self._asked.clear()

    def _tell(
        self, event: TextDelta | TurnStarted | PrefillProgress | Overflowed | TurnEnded, *, repeated: bool
    ) -> None:
        asked = self._asked.get(event.answer)
        if asked is None:
            return
        if isinstance(event, TurnEnded):
            del self._asked[event.answer]
        asked.put(asked.text(event, repeated=repeated) if isinstance(event, TextDelta) else event)

    def _show(self, view: CacheView) -> None:
        while self._views:
            if not (future := self._views.popleft()).done():
                future.set_result(view)

    def _answer(self, event: Tokenized | SequenceTransferred) -> None:
        future = self._questions.get(event.number)
        if future is not None and not future.done():
            future.set_result(event)
