"""Back to a conversation of 2,000 tokens that was swapped out: how much sooner its next answer begins."""

import os
import statistics
import sys
import tempfile
from pathlib import Path

from kvdesk.experiments.bench import STEADY, Bench
from kvdesk.experiments.benchmarks.cache.scenario import fresh, same, text_of_tokens
from kvdesk.experiments.outcome import Outcome
from kvdesk.headless import HeadlessChat, HeadlessEngine, session_of
from kvdesk.protocol.cache import OperationDone
from kvdesk.protocol.experiment import Figure
from kvdesk.protocol.operations import Operate, SwapOut
from kvdesk.settings import Sampling

BRIEF = Sampling(temperature=0.0, max_tokens=8)
N_TOKENS = 2000
FROM_DISK = STEADY.model_copy(update={"memory_mb": 0})


def memory(bench: Bench) -> Outcome:
    """Saved in memory."""
    with bench.engine() as headless:
        chat = _long_chat(headless)
        backs = [_out_and_back(headless, chat) for _ in range(bench.whole("rounds"))]
        ended, tokens = fresh(headless, chat, BRIEF)
    return _outcome("prefill_over_memory", 50, ended.stats.ttft_ms, backs, chat, tokens)


def disk(bench: Bench) -> Outcome:
    """Saved on disk, and read back past the system's own cache where it lets us."""
    with tempfile.TemporaryDirectory(prefix="kvdesk-bench-") as name, bench.engine(FROM_DISK, Path(name)) as headless:
        chat = _long_chat(headless)
        backs = [_out_and_back(headless, chat, Path(name)) for _ in range(bench.whole("rounds"))]
        ended, tokens = fresh(headless, chat, BRIEF)
    return _outcome("prefill_over_disk", 20, ended.stats.ttft_ms, backs, chat, tokens)


def restart(bench: Bench) -> Outcome:
    """The engine is closed while the conversation is in the cache; another one goes on with it."""
    backs = []
    with tempfile.TemporaryDirectory(prefix="kvdesk-bench-") as name:
        folder = Path(name)
        with bench.engine(STEADY, folder) as headless:
            chat = _long_chat(headless)
        for _ in range(bench.whole("rounds")):
            _forget_pages(folder)
            with bench.engine(STEADY, folder) as headless:
                chat.headless = headless
                backs.append(_back(headless, chat))
        with bench.engine() as headless:
            HeadlessChat(headless).answer("Hello.", BRIEF)  # warms up
            ended, tokens = fresh(headless, chat, BRIEF)
    return _outcome("prefill_over_restart", 20, ended.stats.ttft_ms, backs, chat, tokens)


def _long_chat(headless: HeadlessEngine) -> HeadlessChat:
    HeadlessChat(headless).answer("Hello.", BRIEF)  # warms up
    chat = HeadlessChat(headless)
    chat.answer(text_of_tokens(headless, N_TOKENS), BRIEF)
    return chat


def _out_and_back(headless: HeadlessEngine, chat: HeadlessChat, folder: Path | None = None) -> dict[str, float]:
    headless.do(Operate(SwapOut(chat.id), measured=False))
    if folder is not None:
        session_of(headless).runtime.cache_manager.swapper.saved_states.close()  # waits until it is written
        _forget_pages(folder)
    return _back(headless, chat)


def _back(headless: HeadlessEngine, chat: HeadlessChat) -> dict[str, float]:
    """One more turn of a conversation that is not in the cache."""
    stats = chat.answer("And then?", BRIEF).stats
    ms = sum(e.ms for e in headless.events if isinstance(e, OperationDone) and e.name == "swap in")
    return {
        "ttft_ms": stats.ttft_ms,
        "swap_in_ms": ms,
        "reused_tokens": stats.reused_tokens,
        "prefilled_tokens": stats.prefilled_tokens,
    }


def _outcome(
    name: str,
    bar: float,
    prefill_ms: float,
    backs: list[dict[str, float]],
    chat: HeadlessChat,
    fresh_tokens: tuple[int, ...],
) -> Outcome:
    back_ms = statistics.median(back["ttft_ms"] for back in backs)
    return Outcome(
        [
            Figure(name, prefill_ms / back_ms).at_least(bar),
            same("text_as_fresh", [(chat.messages[-1].tokens, fresh_tokens)]),
        ],
        {"prefill_ttft_ms": prefill_ms, "back": backs},
    )


def _forget_pages(folder: Path) -> None:
    """Ask the system to read the saved states from the disk again, if it can be asked."""
    if sys.platform != "linux":
        return
    for path in folder.iterdir():
        with path.open("rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
