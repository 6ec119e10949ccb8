"""A server as a back end: opening a model asks the server what it is, and answers stream from it.

The network has a separate thread (`Network`), whose tasks put events into a queue; `step` passes them on.
"""

from __future__ import annotations

import queue
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from kvdesk.backends.base import CLOSED, Emit
from kvdesk.backends.openai.network import Network, Running, in_thread
from kvdesk.loose_json import obj
from kvdesk.message import NO_STATS, FinishReason, MessageId, MessageState
from kvdesk.protocol import chat
from kvdesk.protocol.cache import TakeRecording
from kvdesk.protocol.features import Feature
from kvdesk.protocol.messages import Command, CommandFailed, Event
from kvdesk.protocol.model import Endpoint, ModelInfo
from kvdesk.protocol.servers import ServerFound, ServerKind
from kvdesk.translation import tr
from kvdesk.values import dataclass, replace

if TYPE_CHECKING:
    import httpx2

    from kvdesk.backends.openai.block_watch import BlockWatch
    from kvdesk.backends.openai.far_cache import FarCache
    from kvdesk.backends.openai.kinds import Asked


@dataclass(slots=True)
class _Turn:
    """A running answer. `note`: shown if kvdesk ends it."""

    command: chat.Generate
    task: Running | None = None
    state: MessageState = "stopped"
    note: str = ""


@dataclass(frozen=True, slots=True)
class _Open:
    load: chat.LoadModel
    endpoint: Endpoint
    found: ServerFound
    n_ctx: int
    client: httpx2.AsyncClient


@dataclass(frozen=True, slots=True)
class _Seen:
    """An event of a server's cache, or whether it shows its cells from now on."""

    of: _Open
    event: Event | bool


class OpenAIBackend:
    """`key_of`: returns the key for a server's address, "" if it needs none; called on the network's thread."""

    idle_work_due = False

    def __init__(self, emit: Emit, key_of: Callable[[str], str] = lambda _url: "") -> None:
        self.wake: Callable[[], None] = lambda: None
        self._emit, self._key_of = emit, key_of
        self._network = Network()
        self._arrived: queue.SimpleQueue[Event | _Open | _Seen] = queue.SimpleQueue()
        self._turns: dict[MessageId, _Turn] = {}
        self._loading: chat.LoadModel | None = None
        self._loads: Running | None = None
        self._open: _Open | None = None
        self._features = frozenset({Feature.CHAT})  # of the open server, as it currently allows
        self._far: FarCache | None = None  # what another kvdesk shows
        self._blocks: BlockWatch | None = None  # what vLLM or SGLang reports
        self._follows: Running | None = None

    @property
    def features(self) -> frozenset[Feature]:
        return self._features

    @property
    def busy(self) -> bool:
        return bool(self._turns) or self._loading is not None or not self._arrived.empty()

    @property
    def waits(self) -> bool:
        return self._arrived.empty()

    def handle(self, command: Command, at_s: float | None = None) -> None:
        match command:
            case chat.LoadModel():
                self._load(command)
            case chat.Generate():
                self._generate(command, time.perf_counter() if at_s is None else at_s)
            case chat.CloseConversation():
                for turn in list(self._turns.values()):
                    if turn.command.conversation == command.conversation:
                        self._end(turn, "stopped", "")
            case TakeRecording():
                if self._far is not None and (recording := self._far.recording()) is not None:
                    self._emit(recording)
            case _:
                pass

    def step(self) -> None:
        """Pass on what has arrived."""
        while not self._arrived.empty():
            event = self._arrived.get()
            if isinstance(event, _Open):
                self._opened(event)
                continue
            if isinstance(event, _Seen):
                self._seen(event)
                continue
            if isinstance(event, chat.TurnEnded):
                self._turns.pop(event.answer, None)
            elif isinstance(event, CommandFailed) and event.command == self._loading:
                self._loading = None
            self._emit(event)

    def idle(self) -> None:
        pass

    def request_stop(self, answer: MessageId) -> None:
        turn = self._turns.get(answer)
        if turn is not None and turn.task is not None:
            turn.task.cancel()  # closes the connection, so the server notices at once

    def request_cancel(self) -> None:
        pass

    def request_close(self) -> None:
        pass

    def close(self, note: str = "") -> None:
        self._end_all(note or tr(CLOSED))
        self._network.close(*([] if self._open is None else [self._open.client.aclose()]))
        self._open = None
        self.step()
        self._features = frozenset({Feature.CHAT})

    def give_up(self, note: str) -> tuple[Command, ...]:
        load = self._loading or (None if self._open is None else self._open.load)
        self.close(note)
        return () if load is None else (load,)

    # --- a server -----------------------------------------------------------------------------------------------------

    def _load(self, command: chat.LoadModel) -> None:
        if not isinstance(command.source, Endpoint):
            sentence = tr("{name} is a file; a server opens models by their names.").format(name=command.source.name)
            self._emit(CommandFailed(command, sentence))
            return
        if self._loading is not None and self._loads is not None:
            self._loads.cancel()
            self._emit(CommandFailed(self._loading, tr("Another model was opened.")))
        self._loading = command
        self._emit(chat.ModelLoading(command.source, 0.0))
        self._loads = self._network.start(self._connect(command, command.source))

    async def _connect(self, command: chat.LoadModel, endpoint: Endpoint) -> None:
        """Ask what the server is. The previous connection stays until this one is known to work."""
        from kvdesk.backends.openai import kinds, problems
        from kvdesk.backends.openai.client import client_of

        client = None
        try:
            client = client_of(endpoint.url, await in_thread(lambda: self._key_of(endpoint.url)))
            asked = await kinds.ask(client)
            model = endpoint.model or asked.found.models[0]
            if model not in asked.found.models:
                raise problems.ServerError(
                    tr("The server has no model {model}; it has {names}.").format(
                        model=model, names=", ".join(asked.found.models[:10])
                    )
                )
            opened = _Open(command, replace(endpoint, model=model), asked.found, asked.n_ctx, client)
            self._put(opened)
            self._put(chat.ModelLoaded(info_of(asked, opened.endpoint), limit=asked.found.limit))
            client = None
        except Exception as error:  # noqa: BLE001 - whatever it is, it fails this load
            problem = problems.problem_of(error, 15.0)
            sentence = tr("{name}: {sentence}").format(name=endpoint.label, sentence=problem)
            self._put(CommandFailed(command, sentence, problem.detail))
        finally:
            if client is not None:
                await client.aclose()

    def _opened(self, opened: _Open) -> None:
        if opened.load is not self._loading:
            self._network.start(opened.client.aclose())
            return
        self._end_all(tr("Another model was opened."))
        if self._open is not None:
            self._network.start(self._open.client.aclose())
        if self._follows is not None:
            self._follows.cancel()
        self._open, self._loading, self._loads = opened, None, None
        self._far = self._blocks = self._follows = None
        found = opened.found
        self._features = found.features
        if found.limit:
            self._emit(chat.LogLine("info", f"{opened.endpoint.label}: {found.limit}"))

        def put(event: Event | bool) -> None:
            self._put(_Seen(opened, event))

        shown = Feature.CACHE_VIEW in found.features
        if shown or (found.kind == "kvdesk" and "Authorization" in opened.client.headers):
            from kvdesk.backends.openai.far_cache import FarCache

            self._far = FarCache(put, opened.endpoint.label, put)
            self._follows = self._network.start(self._far.follow(opened.client, shown=shown))
        elif Feature.BLOCK_MAP in found.features:
            from kvdesk.backends.openai.block_watch import BlockWatch

            self._blocks = BlockWatch(opened.client, opened.found.kind, put)
            self._follows = self._network.start(self._blocks.run())

    def _seen(self, seen: _Seen) -> None:
        """Pass on events of the open server, not late ones of the previous server."""
        if seen.of is not self._open:
            return
        if isinstance(seen.event, bool):
            cells = frozenset({Feature.CACHE_VIEW})
            self._features = self._features | cells if seen.event else self._features - cells
        else:
            self._emit(seen.event)

    # --- answers ------------------------------------------------------------------------------------------------------

    def _generate(self, command: chat.Generate, at_s: float) -> None:
        if self._open is None:
            note = tr("No server is connected.")
            self._emit(chat.TurnEnded(command.conversation, command.answer, "failed", NO_STATS, note))
            return
        turn = self._turns[command.answer] = _Turn(command)
        self._emit(chat.TurnStarted(command.conversation, command.answer))
        turn.task = self._network.start(self._answer(self._open, turn, at_s))

    async def _answer(self, server: _Open, turn: _Turn, at_s: float) -> None:
        """Stream an answer. However it ends, `TurnEnded` says how."""
        import asyncio

        from kvdesk.backends.openai import problems
        from kvdesk.backends.openai.answer import Answer
        from kvdesk.backends.openai.client import SILENT_S
        from kvdesk.backends.openai.requests import body_of

        command = turn.command
        answer = Answer(at_s, continued=command.continued.text if command.continued is not None else "")
        finish: FinishReason = ""
        try:
            await self._stream(server, command, answer)
            state, note, finish = answer.ended
        except asyncio.CancelledError:
            state, note = turn.state, turn.note
        except Exception as error:  # noqa: BLE001 - whatever it is, it fails this answer
            problem = problems.problem_of(error, SILENT_S)
            state, note = "interrupted" if answer.n_chars else "failed", str(problem)
        stats = answer.stats
        seed = command.sampling.seed
        stats = replace(stats, seed=seed if seed < 0xFFFFFFFF else -1)
        self._put(chat.TurnEnded(command.conversation, command.answer, state, stats, note, finish))
        if self._blocks is not None and stats.prompt_tokens:
            body = body_of(command, server.endpoint.model, server.found.kind)
            self._network.start(self._blocks.used(server.endpoint.model, body["messages"]))
        if server.n_ctx and stats.prompt_tokens:
            n_tokens = stats.prompt_tokens + stats.generated_tokens
            self._put(chat.ContextUse(command.conversation, n_tokens, n_tokens, server.n_ctx, last=command.answer))

    async def _stream(self, server: _Open, command: chat.Generate, answer: Any) -> None:
        import httpx2

        from kvdesk.backends.openai.client import as_json, read_ok, read_some
        from kvdesk.backends.openai.requests import body_of

        body = body_of(command, server.endpoint.model, server.found.kind)
        async with server.client.stream("POST", "/v1/chat/completions", json=body) as response:
            if response.status_code != 200:
                await read_ok(response)
            if response.headers.get("content-type", "").startswith("application/json"):
                whole = await read_some(response)  # a server without streaming
                as_json(whole)
                self._said(command, answer, whole.decode("utf-8", "replace"))
            else:
                async for event in httpx2.EventSource(response, max_event_size=MOST_EVENT):
                    if event.data.strip() == "[DONE]":
                        break
                    if event.data:
                        self._said(command, answer, event.data)
        if rest := answer.end():
            self._put(chat.TextDelta(command.conversation, command.answer, rest, ()))

    def _said(self, command: chat.Generate, answer: Any, data: str) -> None:
        is_first = not answer.id
        text = answer.take(data)
        if is_first and self._far is not None:
            self._far.know(answer.id, command.conversation)
        if text:
            self._put(chat.TextDelta(command.conversation, command.answer, text, ()))
        elif (read := answer.read) is not None and not answer.n_chars:
            self._put(chat.PrefillProgress(command.conversation, command.answer, *read))

    # --- inside -------------------------------------------------------------------------------------------------------

    def _put(self, event: Event | _Open | _Seen) -> None:
        """Called on the network's thread."""
        self._arrived.put(event)
        self.wake()

    def _end(self, turn: _Turn, state: MessageState, note: str) -> None:
        turn.state, turn.note = state, note
        if turn.task is not None:
            turn.task.cancel()

    def _end_all(self, note: str) -> None:
        for turn in list(self._turns.values()):
            self._end(turn, "interrupted", note)


MOST_EVENT = 4 << 20
"""Bytes of one event of a stream."""


def info_of(asked: Asked, endpoint: Endpoint) -> ModelInfo:
    """The model as the window shows it, with its server's name, which is stored with every answer."""
    known = obj(asked.entries[endpoint.model].get("meta"))

    def number(name: str) -> int:
        value = known.get(name)
        return value if type(value) is int and value > 0 else 0

    return ModelInfo(
        endpoint,
        tr("{model} on {server}").format(model=short_name(endpoint.model), server=endpoint.label),
        description=_KIND_NAMES.get(asked.found.kind, asked.found.kind),
        size_bytes=number("size"),
        n_params=number("n_params"),
        n_ctx_train=number("n_ctx_train"),
        n_vocab=number("n_vocab"),
    )


def short_name(model: str) -> str:
    """A model's name without folders and file extension, because servers also name it by path."""
    return model.rstrip("/").rsplit("/", 1)[-1].removesuffix(".gguf") or model


_KIND_NAMES: dict[ServerKind, str] = {"other": "OpenAI-compatible server"}
