"""Beginnings that conversations have in common: computed once, never copied, and the text is that of a fresh start."""

from kvdesk.experiments.bench import Bench
from kvdesk.experiments.benchmarks.cache.scenario import branch_of, fresh, same, text_of_tokens, tokens_of
from kvdesk.experiments.benchmarks.requests import turns
from kvdesk.experiments.outcome import Outcome
from kvdesk.experiments.statistics import figure
from kvdesk.headless import HeadlessChat, HeadlessEngine, session_of
from kvdesk.protocol.experiment import Figure
from kvdesk.settings import Sampling

ANSWER = Sampling(temperature=0.0, max_tokens=24)
N_SYSTEM = 1000  # tokens


def system_prompt(bench: Bench) -> Outcome:
    """A second conversation with the same system prompt of 1,000 tokens: the median round's wait is judged."""
    rounds: list[dict[str, float]] = []
    texts = []
    with bench.engine() as headless:
        system = text_of_tokens(headless, N_SYSTEM)
        HeadlessChat(headless).answer("Hello.", ANSWER)  # warms up
        for _ in range(bench.whole("rounds")):
            first = HeadlessChat(headless, system)
            one = first.answer("Who wrote this down?", ANSWER).stats
            before = _used(headless)
            second = HeadlessChat(headless, system)
            two = second.answer("What was found once?", ANSWER).stats
            n_added, n_own = _used(headless) - before, len(_held(headless, second)) - two.reused_tokens
            alone, tokens = fresh(headless, second, ANSWER)
            texts.append((second.messages[-1].tokens, tokens))
            rounds.append(
                {
                    "first_ttft_ms": one.ttft_ms,
                    "second_ttft_ms": two.ttft_ms,
                    "second_fresh_ttft_ms": alone.stats.ttft_ms,
                    "second_prefilled_tokens": two.prefilled_tokens,
                    "cells_added": n_added,
                    "own_tokens": n_own,
                }
            )
    waits = [r["second_ttft_ms"] / r["first_ttft_ms"] for r in rounds]
    added = [r["cells_added"] / r["own_tokens"] for r in rounds]
    return Outcome(
        [
            figure("ttft_of_second_over_first", waits).at_most(1 / 20),
            Figure("cells_added_over_own_tokens", max(added)).at_most(1.0),
            same("text_as_fresh", texts),
        ],
        {"rounds": rounds},
    )


def fork(bench: Bench) -> Outcome:
    """Turn 5 is asked otherwise: in the same conversation, where the first answer stays as a branch, and in another."""
    raw: dict[str, object] = {}
    prefilled = copied = 0
    texts = []
    with bench.engine() as headless:
        chat = HeadlessChat(headless, "You are brief.")
        turns(chat, range(1, 6), ANSWER)
        held = _held(headless, chat)
        other = branch_of(headless, chat, len(chat.messages) - 2)
        chat.messages = chat.messages[:-2]
        for name, branch in (("other_conversation", other), ("same_conversation", chat)):
            before = _used(headless)
            stats = branch.answer("Now name one thing that is quite red.", ANSWER).stats
            prompt = tokens_of(headless, _asked(branch))
            shared = next(i for i, (a, b) in enumerate(zip(held, prompt, strict=False)) if a != b)
            added = _used(headless) - before
            own = len(_held(headless, branch)) - stats.reused_tokens
            prefilled += max(0, shared - stats.reused_tokens)
            copied += max(0, added - own)
            texts.append(branch.messages[-1].tokens)
            raw[name] = {
                "shared_tokens": shared,
                "reused_tokens": stats.reused_tokens,
                "prefilled_tokens": stats.prefilled_tokens,
                "cells_added": added,
                "own_tokens": own,
                "ttft_ms": stats.ttft_ms,
            }
        _, tokens = fresh(headless, chat, ANSWER)
    return Outcome(
        [
            Figure("shared_tokens_prefilled", prefilled).at_most(0),
            Figure("cells_copied", copied).at_most(0),
            same("text_as_fresh", [(text, tokens) for text in texts]),
        ],
        raw,
    )


def _asked(chat: HeadlessChat) -> HeadlessChat:
    """The chat as it was when its last answer began."""
    return branch_of(chat.headless, chat, len(chat.messages) - 1)


def _used(headless: HeadlessEngine) -> int:
    return session_of(headless).runtime.context.memory.totals()[0]


def _held(headless: HeadlessEngine, chat: HeadlessChat) -> list[int]:
    sequence = session_of(headless).runtime.cache_manager.pool.get(chat.id)
    assert sequence is not None
    return list(sequence.tokens)
