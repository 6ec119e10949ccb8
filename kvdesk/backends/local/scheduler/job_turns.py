"""Jobs take turns with requests: after each chunk of a job the requests that run have as long as that chunk took.

Owns the jobs that wait and the one that runs. Runs on the engine's thread; only `cancel` and `close` may be called from
others.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Generator

from kvdesk.backends.local.cache_manager.cache import Cache
from kvdesk.backends.local.cache_manager.operation_journal import Emit
from kvdesk.errors import UserError
from kvdesk.policies.tuned import LEAST_CHUNK, LONGEST_GAP_MS, TILE
from kvdesk.protocol.cache import VerifyConversation
from kvdesk.protocol.chat import Working
from kvdesk.protocol.messages import Command
from kvdesk.translation import tr

Job = Generator[Working, None, None]


class JobTurns:
    """One job after another, a chunk at a time. `fail` reports a command whose job did not do its work.

    While requests run a chunk that took longer than the gap between two of their tokens may last is halved, and doubled
    when it took less than half of that.
    """

    def __init__(self, emit: Emit, fail: Callable[[Command, Exception], None]) -> None:
        self._emit = emit
        self._fail = fail
        self._waiting: deque[tuple[Command, Job]] = deque()
        self._running: tuple[Command, Job] | None = None
        self._n_tokens = TILE  # of the next chunk, while requests run
        self._is_measured = False  # whether the chunk that is computed now has so many
        self._next_at = 0.0  # time.perf_counter() of the next chunk, while requests run
        self._cancelled = self._closed = False

    def cancel(self) -> None:
        """End the job that runs. May be called from other threads."""
        self._cancelled = True

    def close(self) -> None:
        """No job does anything from now on. May be called from other threads."""
        self._closed = True

    def __bool__(self) -> bool:
        return self._running is not None or bool(self._waiting)

    @property
    def running(self) -> bool:
        """Whether a job has begun."""
        return self._running is not None

    @property
    def due(self) -> bool:
        """Whether there is a job, and the requests that run have had their turn."""
        return bool(self) and time.perf_counter() >= self._next_at

    def n_beside(self, n_batch: int) -> int:
        """Tokens of the chunk that is to be computed now, while requests run: `n_batch` at most."""
        self._is_measured = True
        self._n_tokens = min(self._n_tokens, n_batch)
        return self._n_tokens

    def add(self, command: Command, job: Job) -> None:
        """The job of this command begins once those before it have ended."""
        self._waiting.append((command, job))

    def work(self, cache_manager: Cache) -> None:
        """One chunk of the job, or the end of it."""
        start, self._is_measured = time.perf_counter(), False
        if self._running is None:
            self._running, self._cancelled = self._waiting.popleft(), False
        command, job = self._running
        conversation = command.conversation if isinstance(command, VerifyConversation) else None
        reason = tr("to verify the conversation") if conversation else tr("read again after a rebuild")
        try:
            with cache_manager.purpose(conversation, reason):
                progress = None if self._cancelled or self._closed else next(job, None)
        except Exception as error:  # noqa: BLE001 - it costs this job, never the engine
            self._fail(command, error)
            progress = None
        if progress is None:
            self.end()
        else:
            self._emit(progress)
        now = time.perf_counter()
        self._next_at = now + (now - start)
        ms = (now - start) * 1e3
        if self._is_measured and ms > LONGEST_GAP_MS:
            self._n_tokens = max(LEAST_CHUNK, self._n_tokens // 2)
        elif self._is_measured and ms < LONGEST_GAP_MS / 2:
            self._n_tokens *= 2

    def give_way(self) -> bool:
        """A request needs room that a verification takes: end that. Whether there was one."""
        if self._running is None or not isinstance(self._running[0], VerifyConversation):
            return False
        command = self._running[0]
        self.end()
        self._fail(command, UserError(tr("Its cells were needed for an answer: verify it when that has ended.")))
        return True

    def end(self) -> None:
        """End the job that runs; those that wait stay."""
        if self._running is not None:
            self._running[1].close()
            self._running = None
            self._emit(Working("", 0, 0))

    def end_all(self) -> None:
        """End every job: the context goes."""
        self.end()
        self._waiting.clear()
