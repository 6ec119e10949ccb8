"""States moved by compaction, swap out and undo: through kept memory, and through new memory for every copy."""

from __future__ import annotations

import statistics
import time

from kvdesk.benchmarks.baselines import BareMoves
from kvdesk.benchmarks.cache.scenario import Bench, of, text_of_tokens
from kvdesk.cache.compaction import Layout
from kvdesk.errors import UserError
from kvdesk.experiments.threshold import Outcome, Threshold
from kvdesk.headless import HeadlessChat, HeadlessEngine, session_of
from kvdesk.protocol.cache import OperationDone
from kvdesk.protocol.operations import Compact, HandOperation, Operate, SwapOut, Undo
from kvdesk.settings import Sampling

BRIEF = Sampling(temperature=0.0, max_tokens=8)
N_TOKENS = 2000
LEAST = 4.0
PART = 0.7


def moved(bench: Bench) -> Outcome:
    """Whole commands, with their copy for undo, their audit and the mirror, against the bare copies through new memory.

    The copies are as many as there were before memory was kept; the memcpy of as many bytes is told beside them. Where
    new memory costs little on this machine, `PART` of what bare copies through kept memory gain is enough.
    """
    settings = bench.settings.model_copy(update={"n_ctx": 4096})
    with bench.engine(settings=settings) as headless:
        session = session_of(headless)
        if not session.runtime.context.can("compaction"):
            raise UserError(session.runtime.context.capabilities["compaction"].why)
        chats = [HeadlessChat(headless), HeadlessChat(headless)]
        chats[0].answer("Hello.", BRIEF)
        chats[1].answer(text_of_tokens(headless, N_TOKENS), BRIEF)
        long = session.runtime.cache_manager.pool.get(chats[1].id)
        assert long is not None
        bare = BareMoves(session.loaded.model, settings, session.runtime.context.states.seq_get(long.seq_id))
        ours, fresh, kept = (dict[str, list[float]](compaction=[], swap_out=[], undo=[]) for _ in range(3))
        memcpy = []
        try:
            for number in range(bench.rounds + 2):
                measured = _ours(headless, chats), _bare(bare, fresh=True), _bare(bare, fresh=False)
                copied = bare.memcpy_ms()
                if number > 1:  # the first touch what is kept then
                    for to, times in zip((ours, fresh, kept), measured, strict=True):
                        for name, ms in times.items():
                            to[name].append(ms)
                    memcpy.append(copied)
            n_bytes = session.runtime.context.states.size(), bare.n_bytes
        finally:
            bare.close()
    bars = {}
    for name, before in fresh.items():
        gained, possible = (
            statistics.median(a / b for a, b in zip(before, to[name], strict=True)) for to in (ours, kept)
        )
        bars[f"{name}_over_fresh"] = Threshold(gained, min(LEAST, PART * possible), at_least=True)
    return Outcome(
        bars, {"ours_ms": ours, "fresh_ms": fresh, "kept_ms": kept, "memcpy_ms": memcpy, "state_bytes": n_bytes}
    )


def _ours(headless: HeadlessEngine, chats: list[HeadlessChat]) -> dict[str, float]:
    """The long conversation to the front, the same one out; each taken back, so that every round begins alike."""
    session = session_of(headless)
    hot = [s.seq_id for s in session.runtime.cache_manager.pool if s.conversation == chats[1].id]
    compaction = _timed(headless, Compact(Layout.HOT_FIRST, tuple(hot)))
    _timed(headless, Undo(compaction[1]))
    out = _timed(headless, SwapOut(chats[1].id))
    back = _timed(headless, Undo(out[1]))
    saved_states = session.runtime.cache_manager.swapper.saved_states
    saved_states.drop([saved.key for saved in saved_states.values()])
    return {"compaction": compaction[0], "swap_out": out[0], "undo": back[0]}


def _timed(headless: HeadlessEngine, operation: HandOperation) -> tuple[float, int]:
    """ms of the whole command, and the number to take it back by."""
    start = time.perf_counter()
    headless.do(Operate(operation, measured=False))
    ms = (time.perf_counter() - start) * 1e3
    return ms, of(headless.events, OperationDone)[-1].operation


def _bare(moves: BareMoves, *, fresh: bool) -> dict[str, float]:
    return {
        "compaction": moves.compaction_ms(fresh=fresh),
        "swap_out": moves.swap_out_ms(fresh=fresh),
        "undo": moves.undo_ms(fresh=fresh),
    }
