"""Samples answers that follow a grammar, as llama.cpp's programs do (common/sampling.cpp, `common_sampler_sample`).

The chain samples first. Only if the grammar rejects that token are all tokens checked, which takes as long as a small
model's decode, and the chain samples from the allowed ones.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np

from kvdesk.backends.local.llama.binding import engine_log, lib
from kvdesk.backends.local.llama.samplers.sampler import CANDIDATE, Sampler, SamplingPlan, Trigger, apply_to
from kvdesk.backends.local.llama.samplers.utf8 import Utf8Decoder
from kvdesk.backends.local.llama.vocab import Vocab
from kvdesk.errors import PromptError, UserError
from kvdesk.grammar.gbnf import ROOT, Grammar
from kvdesk.grammar.state import GrammarState, Position
from kvdesk.reasoning import SaidStart
from kvdesk.translation import tr
from kvdesk.values import replace

_TRIES: Final = 16
"""Attempts at tokens that llama.cpp first allows and then rejects (a token named after text in the same token)."""


class GrammarSampler(Sampler):
    """A chain and a grammar. Raises PromptError if llama.cpp cannot make a sampler from the grammar."""

    def __init__(self, plan: SamplingPlan, grammar: Grammar, vocab: Vocab) -> None:
        self._state = GrammarState(grammar, vocab.only_token)
        self._grammar: Any = lib.llama_sampler_init_grammar(vocab.handle, grammar.text.encode(), ROOT.encode())
        if not self._grammar:
            raise PromptError(tr("llama.cpp cannot use the grammar."), engine_log().problems())
        super().__init__(plan, vocab)
        self._vocab = vocab
        self._candidates = np.zeros(vocab.n_tokens, CANDIDATE)
        self._one = np.zeros(1, CANDIDATE)
        self._ids = np.arange(vocab.n_tokens, dtype=np.int32)

    def sample(self, ctx: Any, row: int) -> int:
        """As `Sampler.sample`; -1 if the grammar allows no token, or only the end of the answer."""
        pointer = lib.llama_get_logits_ith(ctx, row)
        logits = np.ctypeslib.as_array(pointer, shape=(len(self._ids),))
        try:
            token, position = self._chosen(logits)
        except UserError as error:
            self.dead_end = str(error)
            return -1
        if position is None:
            self.dead_end = (
                "" if self._state.position.complete else tr("The grammar allows no token of this model here.")
            )
            return -1
        self._state.position = position
        lib.llama_sampler_accept(self._grammar, token)
        lib.llama_sampler_accept(self._chain, token)
        return token

    def resume(self, tokens: Iterable[int]) -> None:
        for token in tokens:
            position = self._after(token)
            if position is None:
                raise PromptError(tr("The answer so far does not follow the grammar, so it cannot be continued."))
            self._state.position = position
            lib.llama_sampler_accept(self._grammar, token)

    def force(self, token: int) -> bool:  # noqa: ARG002 - the grammar has begun
        return False

    def forced(self) -> list[int]:
        try:
            text = self._state.forced()
        except UserError:  # too ambiguous
            return []
        return self._vocab.tokenize(text, add_special=False, parse_special=False) if text else []

    def close(self) -> None:
        super().close()
        if self._grammar is not None:
            lib.llama_sampler_free(self._grammar)
            self._grammar = None

    def _chosen(self, logits: np.ndarray[Any, np.dtype[np.float32]]) -> tuple[int, Position | None]:
        """A token, and the position in the grammar after it; None if there is none. Raises UserError: too ambiguous."""
        token = self._apply(logits, ())
        if (position := self._after(token)) is not None:
            return token, position
        self._state.look_ahead()
        refused: list[int] = []
        for _ in range(_TRIES):
            token = self._apply(logits, refused, with_grammar=True)
            if token < 0:
                break
            if (position := self._after(token)) is not None:
                return token, position
            refused.append(token)
        return -1, None

    def _apply(self, logits: np.ndarray[Any, np.dtype[np.float32]], refused: Any, *, with_grammar: bool = False) -> int:
        """The token that the chain chooses; -1 if the grammar allows none."""
        candidates = self._candidates
        candidates["id"], candidates["logit"], candidates["p"] = self._ids, logits, 0.0
        if with_grammar:
            candidates["logit"][refused] = -np.inf
            apply_to(self._grammar, candidates)
            if not (candidates["logit"] > -np.inf).any():
                return -1
        array = apply_to(self._chain, candidates)
        self.left = candidates[: array.size]
        return int(array.data[array.selected].id) if array.selected >= 0 else -1

    def _after(self, token: int) -> Position | None:
        """The position in the grammar after this token; None if llama.cpp would reject it."""
        if lib.llama_vocab_is_eog(self._vocab.handle, token):
            return self._state.position if self._state.position.complete else None
        position = self._state.after(token, self._vocab.written(token))
        if position is not None:
            self._one[0] = (token, 1.0, 0.0)
            apply_to(self._grammar, self._one)
        return None if position is None or self._one["logit"][0] == -np.inf else position


class LateGrammarSampler(GrammarSampler):
    """A chain, and from a certain text of the answer on also a grammar."""

    def __init__(self, plan: SamplingPlan, grammar: Grammar, trigger: Trigger, vocab: Vocab) -> None:
        super().__init__(plan, grammar, vocab)
        self._trigger: Trigger | None = trigger
        self._said = SaidStart(trigger.marks)
        self._utf8 = Utf8Decoder()
        self._text = ""
        self._tokens: list[tuple[int, int]] = []  # of the answer, and where the text of each begins

    def sample(self, ctx: Any, row: int) -> int:
        if self._trigger is None:
            return super().sample(ctx, row)
        token = Sampler.sample(self, ctx, row)
        self._look(token, self._trigger)
        return token

    def resume(self, tokens: Iterable[int]) -> None:
        for token in tokens:
            if self._trigger is None:
                super().resume([token])
            else:
                self._look(token, self._trigger)

    def force(self, token: int) -> bool:
        if self._trigger is None:
            return False
        self._look(token, self._trigger)
        return Sampler.force(self, token)

    def forced(self) -> list[int]:
        return super().forced() if self._trigger is None else []

    def _look(self, token: int, trigger: Trigger) -> None:
        """Whether the grammar applies from the next token on."""
        self._tokens.append((token, len(self._text)))
        new = self._utf8.decode(self._vocab.piece(token))
        self._text += new
        self._said.take(new)
        start = 0 if not trigger.is_part else self._said.at
        if start is None:
            return
        at = self._text.find(trigger.text, start)
        if at < 0 or (trigger.is_at_start and self._text[start:at].strip()):
            return
        self._trigger = None
        if trigger.is_part:
            try:
                super().resume([token for token, begins in self._tokens if begins >= at])
            except PromptError:  # the token in which it begins also has earlier text
                self._trigger = replace(trigger, text="\0")  # never


def sampler_of(plan: SamplingPlan, vocab: Vocab, prompt: Sequence[int] = (), continued: Sequence[int] = ()) -> Sampler:
    """A sampler that has seen as much of the prompt as it needs. `continued`: the end of the prompt that is the
    beginning of the answer.

    Raises UserError if llama.cpp, or this vocabulary, cannot use the plan's grammar, or `continued` breaks it.
    """
    if plan.grammar is None:
        sampler = Sampler(plan, vocab)
    elif plan.trigger is None:
        sampler = GrammarSampler(plan, plan.grammar, vocab)
    else:
        sampler = LateGrammarSampler(plan, plan.grammar, plan.trigger, vocab)
    try:
        if plan.looks_back:
            sampler.accept(prompt[-plan.looks_back :])
        sampler.resume(continued)
    except UserError:
        sampler.close()
        raise
    return sampler
