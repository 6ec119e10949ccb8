"""Holes in the cache, flash attention off: after the automatic compaction it must be as fast as a fresh one."""

from kvdesk.errors import UserError
from kvdesk.experiments.bench import STEADY, Bench
from kvdesk.experiments.benchmarks.cache.scenario import branch_of, of, text_of_tokens
from kvdesk.experiments.outcome import Outcome
from kvdesk.experiments.statistics import figure, ratios
from kvdesk.headless import HeadlessChat, HeadlessEngine, session_of
from kvdesk.protocol.cache import OperationDone
from kvdesk.protocol.chat import CloseConversation
from kvdesk.protocol.experiment import Figure
from kvdesk.settings import Sampling

CHATS, TURNS, N_TOKENS = 6, 3, 90
ANSWER = Sampling(temperature=0.0, max_tokens=12)
MEASURED = Sampling(temperature=0.0, max_tokens=64)
IDLE_STEPS = 8
LEAST_PAIRS = 7
"""Answers of both contexts that are compared: of three pairs the median still has the machine's luck in it."""
MOST_ANSWERS = 3
"""Before the engine has seen what a wide span costs on this machine."""


def fragmented(bench: Bench) -> Outcome:
    """Six conversations take turns, five are closed: the cells of the last lie far apart.

    Texts are not judged: without flash attention sums over cells go by where these lie, so K and V that were computed
    in scattered cells differ by rounding from those of a fresh context, compacted or not.
    """
    settings = bench.settings.model_copy(update={"flash_attn": False})
    with bench.engine(STEADY, settings=settings) as headless, bench.engine(STEADY, settings=settings) as other:
        chat = _last_of_many(headless)
        span = [_span(headless)]
        before: list[float] = []
        compactions: list[OperationDone] = []
        while not compactions and len(before) < MOST_ANSWERS:
            before.append(chat.answer(f"Tell me a long story about {len(before)} ships.", MEASURED).stats.decode_tok_s)
            compactions = _idle(headless)
        span.append(_span(headless))
        alone = branch_of(other, chat, len(chat.messages))
        speeds: dict[str, list[float]] = {"compacted": [], "fresh": []}
        texts = []
        for number in range(max(LEAST_PAIRS, bench.whole("rounds")) + 1):
            for name, one in (("compacted", chat), ("fresh", alone))[:: 1 if number % 2 else -1]:
                stats = one.answer(f"Tell me more, part {number}.", MEASURED).stats
                if number:  # the first reads the prompt
                    speeds[name].append(stats.decode_tok_s)
            texts.append((chat.messages[-1].tokens, alone.messages[-1].tokens))
    return Outcome(
        [
            Figure("compactions", len(compactions)).at_least(1),
            figure("compacted_over_fresh", ratios(speeds["compacted"], speeds["fresh"])).at_least(0.95),
        ],
        {
            "decode_tok_s": speeds,
            "fragmented_tok_s": before,
            "texts_equal": [a == b for a, b in texts],
            "n_kv_before_and_after": span,
            "compaction_ms": [done.ms for done in compactions],
            "reasons": [done.reason for done in compactions],
        },
    )


def _last_of_many(headless: HeadlessEngine) -> HeadlessChat:
    chats = [HeadlessChat(headless) for _ in range(CHATS)]
    text = text_of_tokens(headless, N_TOKENS)
    for turn in range(TURNS):
        for number, chat in enumerate(chats):
            chat.answer(f"{number}.{turn} {text}", ANSWER)
    for chat in chats[:-1]:
        headless.do(CloseConversation(chat.id))
    return chats[-1]


def _idle(headless: HeadlessEngine) -> list[OperationDone]:
    headless.events = []
    for _ in range(IDLE_STEPS):
        headless.engine.idle()
    return [done for done in of(headless.events, OperationDone) if done.name == "compact"]


def _span(headless: HeadlessEngine) -> int:
    """n_kv: cells that the next token is compared with."""
    _, _, n_kv = session_of(headless).runtime.context.memory.totals()
    if not n_kv:
        raise UserError("This model has no cells that could be compacted.")
    return n_kv
