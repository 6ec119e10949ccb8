"""The price of not using the setting `exact`: conversations as they grew against a fresh start, token by token."""

import statistics

from kvdesk.cache.compare import Verdict
from kvdesk.experiments.bench import Bench
from kvdesk.experiments.benchmarks.cache.scenario import all_of, fresh, of, text_of_tokens
from kvdesk.experiments.outcome import Outcome
from kvdesk.headless import HeadlessChat, HeadlessEngine
from kvdesk.protocol.cache import Verified, VerifyConversation
from kvdesk.settings import Sampling

SUBJECTS = ("tides", "bread", "lighthouses", "bees", "clocks", "snow")
ASKED = ("What should everybody know about {}?", "Tell me a story about {}.", "Sum up what we said about {}.")
SHORT = Sampling(temperature=0.0, max_tokens=96)
LONG = Sampling(temperature=0.0, max_tokens=128)
N_SYSTEM = 120
"""Tokens of the system prompt: with the answers a conversation is longer than the 256 cells that one thread reads."""


def rounding(bench: Bench) -> Outcome:
    """Reuse against a fresh start with the settings as they are: the next token, and the first one that is another.

    `same_up_to_rounding`: the share of conversations whose next token the application calls so. With `exact` it has to
    be exactly the same.
    """
    wanted = (Verdict.EXACT,) if bench.settings.exact else (Verdict.EXACT, Verdict.ROUNDING)
    compared, first_other = [], []
    with bench.engine() as headless:
        for subject in SUBJECTS:
            chat = HeadlessChat(headless, text_of_tokens(headless, N_SYSTEM))
            for question in ASKED[:-1]:
                chat.answer(question.format(subject), SHORT)
            chat.answer(ASKED[-1].format(subject), LONG)
            compared.append(of(headless.do(VerifyConversation(chat.id)), Verified)[0].logits)
            first_other.append(_first_other(headless, chat))
    known = [n for n in first_other if n is not None]
    return Outcome(
        [all_of("same_up_to_rounding", [found.verdict in wanted for found in compared])],
        {
            "kl_nats": [found.kl_max for found in compared],
            "likeliest_token_equal": sum(found.first_row < 0 for found in compared) / len(compared),
            "first_other_token": first_other,
            "median_first_other_token": statistics.median(known) if known else None,
        },
    )


def _first_other(headless: HeadlessEngine, chat: HeadlessChat) -> int | None:
    """Number of the first token of the last greedy answer that a fresh start has otherwise; None: there is none."""
    _, tokens = fresh(headless, chat, LONG)
    pairs = enumerate(zip(chat.messages[-1].tokens, tokens, strict=False))
    return next((i for i, (ours, theirs) in pairs if ours != theirs), None)
