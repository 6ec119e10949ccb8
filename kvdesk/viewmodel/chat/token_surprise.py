"""How surprising the tokens of an answer were, as levels with a colour and in words. No Qt."""

from collections.abc import Sequence
from math import exp, log
from typing import Final

from kvdesk.protocol.chat import TokenLogprobs, TokenProb
from kvdesk.translation import marked, tr

LEVELS: Final = (0.5, 0.1, 0.01)
"""A token of at least the first probability has no colour; each that it stays below gives it a stronger one."""
LEVEL_NAMES: Final = (marked("≥ 50 %"), marked("10–50 %"), marked("1–10 %"), marked("< 1 %"))
_SHOWN_CHARS: Final = 16
_LIGHT: Final = ("", "#fbeecb", "#f8d98a", "#f3b968")
_DARK: Final = ("", "#39321f", "#594718", "#7d4c12")


def colours_of(*, dark: bool) -> tuple[str, ...]:
    """The colour behind the text of each level; "" for none. Texts of both themes can be read on them."""
    return _DARK if dark else _LIGHT


def level_of(one: TokenLogprobs) -> int:
    """Of a token of an answer; 0 too where its probability was not kept."""
    return sum(exp(one.chosen.logprob) < limit for limit in LEVELS) if one.rank else 0


def percent(prob: TokenProb) -> str:
    """Its probability, with as many digits as tell it from 0 and from 1."""
    p = exp(prob.logprob)
    if 1.0 - p < 0.00005:
        return "100 %"
    return f"{100 * p:.2g} %" if p < 0.01 else f"{100 * p:.4g} %" if p > 0.99 else f"{100 * p:.3g} %"


def shown(prob: TokenProb) -> str:
    """The text of a token on one line, of a long one its ends alone; blanks at them can be seen, and ends of lines."""
    text = prob.piece.decode("utf-8", "replace").replace("\n", "↵").replace("\t", "⇥")
    inner = text.strip(" ")
    before = len(text) - len(text.lstrip(" "))
    after = len(text) - before - len(inner)
    text = "␣" * before + inner + "␣" * max(after, 0)
    return text if len(text) <= _SHOWN_CHARS else f"{text[: _SHOWN_CHARS // 2]}…{text[-_SHOWN_CHARS // 4 :]}"


def words(one: TokenLogprobs) -> str:
    """A token of an answer in a sentence: its probability, its rank and its surprise."""
    if not one.rank:
        return tr("Its probability is not known: it was written while probabilities were not stored.")
    bits = -one.chosen.logprob / log(2)
    sentence = tr("“{token}”: {percent}, the likeliest token here; surprise {bits} bits")
    if one.rank > 1:
        sentence = tr("“{token}”: {percent}, number {rank} of the likeliest; surprise {bits} bits")
    return sentence.format(
        token=shown(one.chosen), percent=percent(one.chosen), rank=f"{one.rank:,}", bits=f"{bits:.1f}"
    )


def tip(one: TokenLogprobs, n: int = 3) -> str:
    """The same, with the likeliest others."""
    others = [f"{shown(other)}  {percent(other)}" for other in one.top if other.token != one.chosen.token]
    return "\n".join((words(one), *others[:n]))


def candidates(one: TokenLogprobs) -> Sequence[TokenProb]:
    """What could be there, the likeliest first, including the chosen token."""
    if any(other.token == one.chosen.token for other in one.top) or not one.rank:
        return one.top
    return (*one.top, one.chosen)
