"""A short proof of the mirror's rules for each new context, on a twin with few cells that prints its maps.

Owns the script of operations. The twin has the model, build and settings of the real context, so results apply to it
too. It is closed before the real context is used.
"""

import time
from collections.abc import Callable, Iterator

from kvdesk.backends.local.llama.binding import engine_log
from kvdesk.backends.local.llama.context import MAPS, Context
from kvdesk.backends.local.llama.model import Model
from kvdesk.cache.batch import Batch
from kvdesk.cache.geometry import CTX_PAD
from kvdesk.errors import ContextError
from kvdesk.settings import ContextSettings
from kvdesk.translation import tr
from kvdesk.values import dataclass

BUDGET_S = 0.25
"""No step begins after this time. A large model proves fewer steps, and the result says so."""
_SEQUENCES = 3
_UBATCH = 2


@dataclass(frozen=True, slots=True)
class SelfCheck:
    """`n_steps` of `n_planned` operations agreed with the engine in every cell; `mismatch`: "" or what did not."""

    n_steps: int
    n_planned: int
    ms: float
    mismatch: str = ""

    @property
    def complete(self) -> bool:
        return self.n_steps == self.n_planned and not self.mismatch

    def __str__(self) -> str:
        if self.mismatch:
            return tr("The cell rules failed their proof on this model: {mismatch}").format(mismatch=self.mismatch)
        return tr("{n_steps} of {n_planned} operations proved on a twin of this context in {ms:.0f} ms").format(
            n_steps=self.n_steps, n_planned=self.n_planned, ms=self.ms
        )


def twin_settings(settings: ContextSettings) -> ContextSettings:
    """The same types and layout with the fewest possible cells."""
    n_seq_max = min(settings.n_seq_max, _SEQUENCES)
    return settings.model_copy(
        update={
            "n_ctx": CTX_PAD if settings.kv_unified else CTX_PAD * n_seq_max,
            "n_seq_max": n_seq_max,
            "n_batch": 4 * _UBATCH,
            "n_ubatch": _UBATCH,
            "n_threads": 1,  # such small batches gain nothing from two, and a busy core makes them ten times slower
            "n_threads_batch": 1,
        }
    )


def checked_context(model: Model, settings: ContextSettings, *, inspect: int = 1) -> Context:
    """A `Context` with checked rules; the check takes about BUDGET_S. Raises ContextError as `Context` does."""
    context = Context(model, settings, inspect=inspect)
    try:
        self_check(context)
    except BaseException:
        context.close()
        raise
    return context


def self_check(context: Context) -> SelfCheck | None:
    """Prove the rules on a twin of this new context, and report the result to its verifier.

    None if nothing could be proved: the map is known to be wrong already, or the twin cannot be made.
    """
    verifier, log = context.verifier, engine_log()
    if verifier.mismatch or not context.inspect:
        return None
    listener, log.listener = log.listener, None
    found = None
    try:
        found = prove(context.model, context.settings)
        if found.mismatch:
            verifier.reject(str(found))
            return found
        if not found.complete:
            verifier.remark = tr("The proof ran out of time: {found}").format(found=found)
    except ContextError as error:
        doubt = tr("The cell rules could not be proved on a twin of this context: {error}").format(error=error)
        verifier.doubt = f"{verifier.doubt} {doubt}".strip()
    finally:
        log.listener = listener
    verifier.conclude(0, None)
    return found


def prove(model: Model, settings: ContextSettings) -> SelfCheck:
    """Run the script on a twin (a context that prints its maps) and audit after every step.

    Takes about BUDGET_S at most, plus one step. Raises ContextError if the twin cannot be made.
    """
    start = time.perf_counter()
    twin = Context(model, twin_settings(settings), inspect=MAPS)
    try:
        steps = list(_script(twin))
        done = 0
        for step in steps:
            if done and time.perf_counter() - start > BUDGET_S:
                break
            step()
            twin.auditor.audit()
            if twin.verifier.mismatch:
                detail = twin.verifier.verification.detail
                return SelfCheck(done, len(steps), (time.perf_counter() - start) * 1e3, detail)
            done += 1
        return SelfCheck(done, len(steps), (time.perf_counter() - start) * 1e3)
    finally:
        twin.close()


def _script(twin: Context) -> Iterator[Callable[[], object]]:
    """Placement in two ubatches, sharing, removal from the middle, reuse of the hole, round trips of the state."""
    last = twin.n_seq_max - 1
    cut = -1 if twin.memory.mirror.states else 1
    yield lambda: twin.decode(_tokens(twin, _UBATCH + 1, 0))
    yield lambda: twin.memory.seq_cp(0, last, -1, -1)
    yield lambda: twin.memory.seq_rm(0, cut, -1 if cut < 0 else cut + 1)
    yield lambda: twin.decode(_tokens(twin, 1, last))
    yield lambda: twin.states.set(twin.states.get())
    yield lambda: twin.decode(_tokens(twin, 2, 0))
    yield lambda: twin.states.seq_set(0, twin.states.seq_get(last))
    if twin.can("seq_add"):
        yield lambda: twin.memory.seq_add(0, 1, -1, 3)
    yield lambda: twin.decode(_tokens(twin, 1, 0))
    yield lambda: twin.memory.seq_keep(0)
    yield lambda: twin.decode(_tokens(twin, 1, last))


def _tokens(twin: Context, n: int, seq_id: int) -> Batch:
    return Batch.of(seq_id, twin.memory.seq_pos_max(seq_id) + 1, (0,) * n, "last")
