"""Explains in one sentence why a turn prefilled what it did, from two lists of tokens and what happened.

Owns the causes, their order, and their words. Pure: a function passed in turns tokens into text. Must never know how
facts are found; the engine provides them.
"""

from collections.abc import Callable
from enum import StrEnum

from kvdesk.cache.reuse.prefix import common_prefix
from kvdesk.graphemes import cut
from kvdesk.translation import tr
from kvdesk.values import dataclass

Text = Callable[[int], str]

_LOOK_AHEAD = 16  # tokens on each side of the divergence that are compared as text
_QUOTE = 40  # characters of a token's text in the sentence


class Cause(StrEnum):
    """Why the cached tokens ended where they did; the first that applies."""

    CHECKPOINT = "checkpoint"  # the state can be restored only whole, from a checkpoint of the conversation
    TAKEN = "taken over"  # the beginning came from another sequence or from a saved state
    FIRST = "first turn"  # the sequence held nothing, and nothing had taken it away
    EVICTED = "evicted"  # its cells had been removed for another conversation, or by hand
    EXACT = "exact answers"  # what was written, and what follows the last whole block, is read again
    CONTINUED = "continued"  # everything held is a prefix of the prompt: only what is new was prefilled
    REGENERATED = "regenerated"  # the prompt is a prefix of what the cache held
    RECURRENT = "recurrent state"  # the state cannot be cut, so everything was computed again
    WINDOW = "window lost"  # the sliding window before the divergence was no longer in the cache
    BLANKS = "other blank lines"  # the template writes other blank lines around reasoning than the model did
    THINKING = "thinking removed"  # the template leaves out earlier reasoning
    EDITED = "edited"  # a message was changed
    TEMPLATE = "template"  # the template renders the same messages differently
    RETOKENIZED = "other tokens"  # the same text became other tokens
    UNKNOWN = "diverged"  # none of the known causes


@dataclass(frozen=True, slots=True)
class Facts:
    """What happened between two turns. Strings are reasons in words, "" if it did not happen.

    evicted          why cells of the sequence had been removed
    edited           which message was changed, such as "your second message"
    template         what changed in the template or what it renders, such as "today's date"
    thinking         earlier reasoning was left out of the prompt
    window_lost      a sliding window had lost the cells before the divergence
    recurrent        the model's memory cannot remove a part
    taken            where the reused tokens came from, if not from the sequence itself
    checkpoint       they came from a checkpoint of the conversation, made while an earlier turn was read
    block            tokens of the blocks that exact answers reuse only whole, if that costs tokens; else 0
    n_put            tokens of documents that are put into the cache in the place of being read
    """

    evicted: str = ""
    edited: str = ""
    template: str = ""
    thinking: bool = False
    window_lost: bool = False
    recurrent: bool = False
    taken: str = ""
    checkpoint: bool = False
    block: int = 0
    n_put: int = 0


@dataclass(frozen=True, slots=True)
class Explanation:
    """One turn. `position`: of the first token that differs, -1 if none does (one list begins with the other).

    reused  tokens of the prompt that were in the cache
    lost    tokens of the sequence that were of no use
    """

    reused: int
    lost: int
    position: int
    cause: Cause
    sentence: str


def explain(
    held: list[int], prompt: list[int], text: Text, facts: Facts | None = None, reused: int | None = None
) -> Explanation:
    """Explain a turn whose sequence held the tokens `held` when the prompt came.

    reused  tokens that stayed in the cache, if known; else what the facts allow: the common prefix, but at least one
            token is decoded because logits are needed, and nothing if a part cannot be kept
    """
    facts = facts or Facts()
    same = common_prefix(held, prompt)
    cause = _cause(held, prompt, same, text, facts)
    if reused is None:
        whole = cause in (Cause.RECURRENT, Cause.WINDOW)
        reused = 0 if whole else max(0, min(same, len(prompt) - 1))
    differs = same < len(held) and same < len(prompt) and cause is not Cause.TAKEN
    sentence = _because(cause, facts, reused, len(prompt) - reused - facts.n_put)
    if differs:
        difference = tr("The cache held {held} at position {position:,}, the prompt has {prompt}.")
        sentence += " " + difference.format(
            held=_quoted(text(held[same])), position=same, prompt=_quoted(text(prompt[same]))
        )
    return Explanation(
        reused=reused, lost=max(0, len(held) - reused), position=same if differs else -1, cause=cause, sentence=sentence
    )


def _cause(held: list[int], prompt: list[int], same: int, text: Text, facts: Facts) -> Cause:
    if facts.checkpoint:
        return Cause.CHECKPOINT
    if facts.taken:
        return Cause.TAKEN
    if same == len(held) and facts.evicted:
        return Cause.EVICTED
    if not held:
        return Cause.FIRST
    if facts.block and same == min(len(held), len(prompt)):
        return Cause.EXACT
    if same == len(held) < len(prompt):
        return Cause.CONTINUED
    cuts = (
        (facts.recurrent, Cause.RECURRENT),
        (facts.window_lost, Cause.WINDOW),
        (same == len(prompt), Cause.REGENERATED),
        (bool(facts.edited), Cause.EDITED),
        (_same_text(held[same:], prompt[same:], text), Cause.RETOKENIZED),  # reasoning that is kept, as other tokens
        (facts.thinking and _same_text(held[same:], prompt[same:], text, blanks=False), Cause.BLANKS),
        (facts.thinking, Cause.THINKING),
        (bool(facts.template), Cause.TEMPLATE),
        (bool(facts.evicted), Cause.EVICTED),
    )
    return next((cause for applies, cause in cuts if applies), Cause.UNKNOWN)


def _same_text(held: list[int], prompt: list[int], text: Text, *, blanks: bool = True) -> bool:
    """Whether the next tokens of both sides have the same text, as far as the shorter one goes. `blanks`: included."""
    ours = "".join(text(token) for token in held[:_LOOK_AHEAD])
    theirs = "".join(text(token) for token in prompt[:_LOOK_AHEAD])
    if not blanks:
        ours, theirs = "".join(ours.split()), "".join(theirs.split())
    n = min(len(ours), len(theirs))
    return n > 1 and ours[:n] == theirs[:n]


def counts_sentence(reused: int, prefilled: int, n_put: int = 0) -> str:
    """The sentence about the tokens of a prompt. `n_put`: as in `Facts`."""
    if n_put:
        return tr(
            "{reused:,} of {n:,} tokens were in the cache, {n_put:,} were put there, {prefilled:,} prefilled."
        ).format(reused=reused, n=reused + n_put + prefilled, n_put=n_put, prefilled=prefilled)
    return tr("{reused:,} of {n:,} tokens were in the cache, {prefilled:,} prefilled.").format(
        reused=reused, n=reused + prefilled, prefilled=prefilled
    )


def _because(cause: Cause, facts: Facts, reused: int, prefilled: int) -> str:
    counts = counts_sentence(reused, prefilled, facts.n_put)
    if cause is Cause.FIRST:
        if facts.n_put:
            said = tr(
                "Nothing of this conversation was in the cache: {n_put:,} tokens were put there, {n:,} prefilled."
            )
            return said.format(n_put=facts.n_put, n=prefilled)
        said = tr("Nothing of this conversation was in the cache: all {n:,} tokens were prefilled.")
        return said.format(n=prefilled)
    return {
        Cause.CHECKPOINT: tr(
            "This model's state can be restored only as a whole, so it went back to a checkpoint: {counts}"
        ),
        Cause.TAKEN: tr("The beginning came from {taken}: {counts}"),
        Cause.EVICTED: tr("Its cells had been removed ({evicted}): {counts}"),
        Cause.EXACT: tr(
            "Exact answers reuse only whole blocks of {block} tokens of a prompt, and read answers again: {counts}"
        ),
        Cause.CONTINUED: tr("Everything in the cache was reused: {counts}"),
        Cause.REGENERATED: tr("The answer is generated again, and its prompt was in the cache: {counts}"),
        Cause.RECURRENT: tr("This model's state cannot be cut, so it begins again: {counts}"),
        Cause.WINDOW: tr("The sliding window before the first new token was no longer in the cache: {counts}"),
        Cause.BLANKS: tr("The template writes other blank lines beside reasoning than the model did: {counts}"),
        Cause.THINKING: tr("The template leaves out earlier reasoning, so the prompt differs: {counts}"),
        Cause.EDITED: tr("A message was changed ({edited}): {counts}"),
        Cause.TEMPLATE: tr("The template renders something else ({template}): {counts}"),
        Cause.RETOKENIZED: tr("The same text became other tokens: {counts}"),
        Cause.UNKNOWN: tr("The prompt differs from what was in the cache: {counts}"),
    }[cause].format(
        block=facts.block,
        counts=counts,
        taken=facts.taken,
        evicted=facts.evicted,
        edited=facts.edited,
        template=facts.template,
    )


def _quoted(text: str) -> str:
    """A token's text on one line."""
    shown = "".join(c if c.isprintable() else {"\n": "↵", "\t": "⇥"}.get(c, "�") for c in text)
    return f"“{cut(shown, _QUOTE)}”"
