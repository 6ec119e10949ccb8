"""What all endpoints work with: the engine, who asks, waiting for a place, what is kept of answers."""

import logging
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from starlette.requests import Request

from kvdesk import __version__
from kvdesk.graphemes import cut
from kvdesk.protocol.cache import LedgerRow
from kvdesk.protocol.chat import Client, Generate, TurnStarted
from kvdesk.protocol.model import LocalFile, ModelInfo
from kvdesk.protocol.prompt import Detokenize, Tokenize, Tokenized
from kvdesk.server.answering import Answering
from kvdesk.server.bridge import HostBridge
from kvdesk.server.config import NOBODY, Key, ServerConfig
from kvdesk.server.embedding_process import EmbeddingProcess
from kvdesk.server.errors import ApiError
from kvdesk.server.kept_responses import KeptResponses
from kvdesk.server.prefix_cache import header, reused
from kvdesk.server.request.conversation import MOST_BYTES, GivenAnswers
from kvdesk.server.request.schemas import B, read
from kvdesk.server.spans import PARENT, Spans
from kvdesk.server.state import NAME_MARK, ServerState
from kvdesk.server.streaming import read_body
from kvdesk.server.transport.places import Places
from kvdesk.settings import Sampling
from kvdesk.values import dataclass, field

_log = logging.getLogger(__name__)
FINGERPRINT = f"kvdesk-{__version__}"
PASSED_OVER = "x-kvdesk-passed-over"
"""The header that lists the fields of a request that are not known here."""
_MOST_LOGGED = 1000
_LOG_S = 60.0
_MOST_NAME = 60  # characters of a client's name


@dataclass(slots=True)
class Service:
    """What the endpoints work with. `sampling`: for what requests do not specify; `embedding`, `ranking`: processes of
    models, which may be the same.
    """

    bridge: HostBridge
    config: ServerConfig
    sampling: Sampling
    places: Places
    embedding: EmbeddingProcess
    ranking: EmbeddingProcess
    answers: GivenAnswers = field(default_factory=GivenAnswers)
    kept: KeptResponses = field(default_factory=KeptResponses)
    spans: Spans | None = None
    began_s: int = field(default_factory=lambda: int(time.time()))
    _logged: set[tuple[str, ...]] = field(default_factory=set)  # each is logged once
    _log_at: float = 0.0  # when `log_memory` may log again

    @property
    def state(self) -> ServerState:
        return self.bridge.state

    @property
    def memory(self) -> tuple[LedgerRow, ...]:
        """What the server keeps beside the engine."""
        return LedgerRow("remembered answers", 0, self.answers.n_bytes, MOST_BYTES), self.kept.ledger

    def log_memory(self) -> None:
        """Log what the server keeps, at most once in `_LOG_S`."""
        now = time.monotonic()
        if now < self._log_at:
            return
        self._log_at = now + _LOG_S
        rows = [row for row in (*self.state.ledger, *self.memory) if row.most is not None]
        kept = [f"{row.name} {(row.measured or 0) / 1e6:.1f} of {(row.most or 0) / 1e6:.1f} MB" for row in rows]
        _log.info("kept: %s", ", ".join(kept))

    @property
    def model_name(self) -> str:
        """What the model is called in answers."""
        return self.config.alias or (self.state.model.name if self.state.model is not None else "")

    @property
    def model_file(self) -> Path | None:
        """The file of the model that chats; None if it is none. Raises ApiError as `model` does."""
        source = self.model.source
        return source.path if isinstance(source, LocalFile) else None

    @property
    def model(self) -> ModelInfo:
        """The model that answers. Raises ApiError if none is open."""
        state = self.state
        if state.dead:
            raise ApiError(503, "The engine has stopped. Restart kvdesk.")
        if state.model is None:
            said = "A model is being loaded." if state.loading else "No model is open."
            raise ApiError(503, said, code="model_not_ready", retry_s=2)
        if not state.model.has_text:
            raise ApiError(400, "The model that is open has no text tokenizer: it cannot answer.")
        return state.model

    @property
    def n_ctx(self) -> int:
        """Of one sequence. Raises ApiError as `model` does."""
        _, context = self.model, self.state.context
        return context.n_ctx_seq if context is not None else self.sampling.max_tokens

    async def tokenized(self, command: Tokenize | Detokenize) -> Tokenized:
        """The answer to a question about tokens. Raises ApiError, also as `model` does."""
        _ = self.model
        return await self.bridge.tokenized(command)

    async def body(self, request: Request, kind: type[B]) -> B:
        """The request as a value. Raises ApiError."""
        limits = self.config.limits
        if (packed := request.headers.get("content-encoding", "identity").lower()) != "identity":
            raise ApiError(
                415, f"The body is compressed ({packed[:40]}). Send it uncompressed.", code="unsupported_value"
            )
        asked = read(kind, await read_body(request, limits.body_bytes, limits.body_s))
        if names := asked.passed_over():
            request.state.headers = [(PASSED_OVER.encode(), ", ".join(names).encode())]
            if names not in self._logged and len(self._logged) < _MOST_LOGGED:
                self._logged.add(names)
                _log.info("ignored fields of %s: %s", request.url.path[:100], ", ".join(names))
        return asked

    def client(self, request: Request, *, reuse: bool, slot: int = -1) -> Client:
        """Who asks, as the window shows it: the program by its User-Agent, the key by its name."""
        key = key_of(request)
        program = cut(" ".join(request.headers.get("user-agent", "").split()), _MOST_NAME, "").partition(" (")[0]
        name = (program or "unknown program").replace(NAME_MARK, " ") + (f"{NAME_MARK}{key.label}" if key.label else "")
        path = request.url.path.removeprefix("/v1")
        return Client(name, self.sharing(key), reuse, self.config.client_share, path, slot)

    def sharing(self, key: Key) -> str:
        """With whom requests of this key share the beginnings of their prompts, see `Client`."""
        return "" if self.config.share_prefixes else f"key {key.name or key.value}"

    @asynccontextmanager
    async def answering(
        self, commands: Sequence[Generate], http: Request, *, only_reads: bool, most_s: float = 0.0
    ) -> AsyncIterator[Answering]:
        """Wait until the answers may run, and stop what has not ended when it is left. What the cache had of the prompt
        becomes a header of the response that has not begun. `only_reads`, `most_s`: as in `Answering`. Raises ApiError.
        """

        def begun(event: TurnStarted) -> None:
            if (pair := header(event)) is not None:
                http.scope["state"].setdefault("headers", []).append(pair)

        inspect, began_ns = key_of(http).inspect, time.time_ns()
        async with (
            self.places.taken(len(commands)),
            Answering(
                self.bridge, commands, begun, may_inspect=inspect, only_reads=only_reads, most_s=most_s
            ) as answering,
        ):
            try:
                yield answering
            finally:
                self._add_spans(answering, http, began_ns)
        self.log_memory()

    def _add_spans(self, answering: Answering, http: Request, began_ns: int) -> None:
        if self.spans is None:
            return
        parent = {name: http.headers[name] for name in PARENT if name in http.headers}
        for choice in answering.choices:
            if choice.began:
                self.spans.add(http.url.path, self.model_name, parent, began_ns, reused(choice))


def key_of(request: Request) -> Key:
    """The key that the request came with."""
    key = request.scope.get("state", {}).get("key", NOBODY)
    assert isinstance(key, Key)
    return key


def may_inspect(request: Request) -> None:
    """Raises ApiError if the request may not see what others asked."""
    if not key_of(request).inspect:
        raise ApiError(
            403,
            "This shows what others asked: it needs a key with the right to inspect (kvdesk serve --inspect-key KEY).",
            code="inspect_needed",
        )
