"""What an overflow policy is, what it is asked, and what it answers: values, without a decision. Pure."""

from collections.abc import Callable, Sequence
from typing import Literal

from kvdesk.policies.tuned import N_SINKS, RESERVE
from kvdesk.protocol.operations import OperationName
from kvdesk.settings import Overflow
from kvdesk.translation import marked, tr
from kvdesk.values import dataclass

Tokens = tuple[int, int]
"""[start, end)."""
Measure = Literal["attention", "norms of K"]


@dataclass(frozen=True, slots=True)
class Span:
    """A message's tokens `[start, end)` in the prompt, the template's marks included: its own text begins at `first`.
    An answer `follows` its question: it stays or is evicted with it, since many templates refuse an answer to nothing.
    """

    start: int
    end: int
    is_system: bool = False
    follows: bool = False
    first: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Worth:
    """What the first tokens of a full context are worth: those worth least leave first. why: a sentence if that could
    not be measured, "" if it was; then there are `values`. ms: that it took.
    """

    values: Sequence[float] = ()
    ms: float = 0.0
    why: str = ""


@dataclass(frozen=True, slots=True)
class Abilities:
    """What the memory allows, and if it does not, why (sentences of the capability matrix)."""

    can_remove_part: bool = True
    can_shift: bool = True
    why_not_remove: str = marked("No part of this model's state can be removed.")
    why_not_shift: str = marked("This model's positions cannot be moved.")


@dataclass(frozen=True, slots=True)
class Situation:
    """A full context. Messages are in order and touch each other; the last one is being asked or answered.

    n_held     tokens of the sequence in the cache, n_room tokens that must fit behind them
    n_keep     leading tokens that stay whatever they are (rounded up to whole messages, except for "sinks")
    answering  the last message is an answer in the making; the one before it, its question, stays (not for "sinks")
    shared     the context has room, but other answers have the rest of the cache: `n_ctx_seq` is what is left for this
    worth      of its tokens, for a policy that measures it; None: not yet, since nothing is to be carried out
    """

    messages: tuple[Span, ...]
    n_held: int
    n_room: int
    n_ctx_seq: int
    n_keep: int = 0
    answering: bool = False
    shared: bool = False
    worth: Worth | None = None

    @property
    def full(self) -> str:
        """What is full, in words."""
        if self.shared:
            return tr("The cache, shared with other running answers,")
        return tr("The context of {n:,} tokens").format(n=self.n_ctx_seq)

    @property
    def missing(self) -> int:
        """Tokens that must be evicted so that `n_room` more fit; 0 or less if they fit."""
        return self.n_held + self.n_room - self.n_ctx_seq

    @property
    def wanted(self) -> int:
        """Tokens that are evicted, if that many can be."""
        return max(self.missing, self.n_ctx_seq // RESERVE)

    @property
    def n_sinks(self) -> int:
        """Leading tokens that "sinks" keeps."""
        return max(N_SINKS, self.n_keep)


@dataclass(frozen=True, slots=True)
class OverflowPlan:
    """What is evicted: the tokens `removed` of the prompt, ascending and apart from each other; () for none.

    policy       that is carried out; STOP if nothing can be evicted
    sentence     reports it to the user
    evicted      indices of the messages: neighbours, in order; () where tokens leave and their messages stay
    cuts_answer  the beginning of the answer in the making is evicted too
    why          sentences that say why nothing can be evicted, or why another policy than the chosen one is carried
                 out; "" if neither
    """

    policy: Overflow
    sentence: str
    evicted: tuple[int, ...] = ()
    removed: tuple[Tokens, ...] = ()
    cuts_answer: bool = False
    why: str = ""

    @property
    def stops(self) -> bool:
        return self.policy is Overflow.STOP


@dataclass(frozen=True, slots=True)
class OverflowPolicy:
    """One of the policies, as it is declared: once, in the module of its name.

    label, description  shown by `tr`; on the button in the header the last word of the label is alone
    requires            operations on the cache without which it stops (rows of the capability matrix)
    plan                what is evicted in a situation in which tokens are missing
    evicts              False: the answer ends instead
    exact               what stays is computed again, so that K and V are those of a prefill; else it moves as it is
    keeps_first_tokens  the first tokens stay, whichever message they are of; else the system prompt does
    measures            single tokens are evicted, those worth least by this `Worth`; None: whole messages
    """

    name: Overflow
    label: str
    description: str
    plan: Callable[[Situation, Abilities], OverflowPlan]
    requires: tuple[OperationName, ...] = ()
    evicts: bool = True
    exact: bool = False
    keeps_first_tokens: bool = False
    measures: Measure | None = None
