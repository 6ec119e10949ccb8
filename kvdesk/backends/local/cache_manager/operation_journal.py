"""What happens to the cache, told and written down: every operation in the journal, with its reason.

Owns the journal of one context and the events about operations. Runs on the engine's thread.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from kvdesk.backends.local.llama.context import Context
from kvdesk.backends.local.llama.decodes import MirroredDecode
from kvdesk.cache.journal import Journal, Operation
from kvdesk.chat import ConversationId
from kvdesk.protocol import calls
from kvdesk.protocol.cache import OperationDone
from kvdesk.protocol.messages import Event

Emit = Callable[[Event], None]
Owner = Callable[[int], ConversationId | None]


class OperationJournal:
    """The journal of `context` from now on. `owner` tells whose a sequence is."""

    def __init__(self, context: Context, emit: Emit) -> None:
        self._memory = context.memory
        self._emit = emit
        self._doing: tuple[str, str, str] = ("", "", "")
        self.owner: Owner = lambda _: None
        self.journal = Journal(self._memory.mirror)
        self._memory.on_operation = self._operation

    @contextmanager
    def doing(self, name: str, conversation: ConversationId | None = None, reason: str = "") -> Iterator[None]:
        """What happens to the cache meanwhile is for this: the journal says so. `name` "": as llama.cpp's call."""
        before, self._doing = self._doing, (name or self._doing[0], conversation or "", reason)
        try:
            yield
        finally:
            self._doing = before

    def report(
        self,
        name: str,
        call: str,
        start: float,
        conversation: ConversationId | None = None,
        reason: str = "",
        *,
        emptied: bool = False,
        note: str = "",
    ) -> None:
        """Tell of an operation that began at `start` (time.perf_counter)."""
        ms = (time.perf_counter() - start) * 1e3
        number = self._memory.mirror.operation
        done = OperationDone(number, time.monotonic(), name, call, ms, conversation, reason, emptied=emptied, note=note)
        self._emit(done)

    def decoded(self, decode: MirroredDecode) -> None:
        """Write down decodes that the mirror has followed; those of an answer need no reason."""
        record, batch, kind, ms, at_s, _ = decode
        conversation = self.owner(batch.seq_ids[0][0]) if batch.seq_ids and batch.seq_ids[0] else None
        call = f"{calls.decode(decode.n_tokens)} -> {record.rc}"
        reason = "" if kind == "decode" else self._doing[2]
        unix = time.time() - time.monotonic()
        self.journal.record(
            [
                Operation(record.operation + i, end + unix, kind, call, took, conversation or "", reason)
                for i, (end, took) in enumerate(zip(at_s, ms, strict=True))
            ],
            record,
        )

    def _operation(self, number: int, call: str, ms: float) -> None:
        """An operation that is no decode."""
        name, conversation, reason = self._doing
        name = name or call.partition("(")[0].removeprefix("llama_").removeprefix("memory_")
        self.journal.record([Operation(number, time.time(), name, call, ms, conversation, reason)])
