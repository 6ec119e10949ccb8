"""llama.cpp's sampler chain, built from `Sampling` as its programs do (common/sampling.cpp, `common_sampler_init`).

Sampling runs on the C side and, without a grammar, needs no copy of the logits. For greedy sampling numpy is four times
as fast, because the C side first builds a table of all tokens.
"""

import ctypes
import secrets
from collections.abc import Iterable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from kvdesk.backends.local.llama.binding import lib
from kvdesk.backends.local.llama.vocab import Vocab
from kvdesk.errors import PromptError
from kvdesk.grammar.gbnf import Grammar
from kvdesk.grammar.json_schema import gbnf_of
from kvdesk.grammar.state import checked
from kvdesk.protocol.chat import TokenLogprobs
from kvdesk.reasoning import ReasoningMarks
from kvdesk.settings import RANDOM_SEED, Mirostat, SamplerName, Sampling
from kvdesk.translation import tr
from kvdesk.values import dataclass

CANDIDATE: Final = np.dtype([("id", np.int32), ("logit", np.float32), ("p", np.float32)])  # llama_token_data
_MIROSTAT_M: Final = 100
"""Tokens for the estimate of Mirostat 1, as in common/sampling.cpp."""
_KEEP_THE_LIKELIEST: Final = {SamplerName.TOP_N_SIGMA, SamplerName.TOP_K, SamplerName.TOP_P, SamplerName.MIN_P}
"""They never remove the likeliest token, so greedy sampling can skip them."""


@dataclass(frozen=True, slots=True)
class Trigger:
    """The text of an answer from which on its grammar applies.

    is_part     the text belongs to what the grammar describes, and follows the answer's reasoning
    is_at_start only blanks may precede it
    marks       around the answer's reasoning
    """

    text: str
    is_part: bool = True
    is_at_start: bool = False
    marks: ReasoningMarks | None = None


@dataclass(frozen=True, slots=True)
class SamplingPlan:
    """Checked sampling for a vocabulary: token ids and the grammar are valid, and a random seed is drawn.

    trigger  from where the grammar applies; None: from the first token
    """

    sampling: Sampling
    biases: tuple[tuple[int, float], ...] = ()
    grammar: Grammar | None = None
    trigger: Trigger | None = None

    @property
    def looks_back(self) -> int:
        """How many tokens of the prompt the samplers look at."""
        s = self.sampling
        if s.mirostat is not Mirostat.OFF:
            return 0
        penalties = s.repeat_last_n if _penalizes(s) and SamplerName.PENALTIES in s.samplers else 0
        dry = s.dry_penalty_last_n if s.dry_multiplier and SamplerName.DRY in s.samplers else 0
        return max(penalties, dry)


def plan_sampling(sampling: Sampling, vocab: Vocab) -> SamplingPlan:
    """Raises UserError with a sentence if llama.cpp would refuse the settings or crash."""
    if sampling.seed == RANDOM_SEED:
        sampling = sampling.model_copy(update={"seed": secrets.randbelow(RANDOM_SEED)})
    biases: dict[int, float] = {}
    for name, bias in sampling.logit_bias:
        tokens = [name] if isinstance(name, int) else vocab.tokenize(name, add_special=False, parse_special=False)
        for token in set(tokens):
            if not 0 <= token < vocab.n_tokens:
                raise PromptError(
                    tr("The logit bias names token {token}, and this model has {n:,} tokens.").format(
                        token=token, n=vocab.n_tokens
                    )
                )
            biases[token] = biases.get(token, 0.0) + bias
    grammar, schema = sampling.grammar.strip(), sampling.json_schema.strip()
    if grammar and schema:
        raise PromptError(tr("Choose a grammar or a JSON schema: there can be only one."))
    text = gbnf_of(sampling.json_schema) if schema else sampling.grammar
    return SamplingPlan(sampling, tuple(biases.items()), checked(text) if text.strip() else None)


class Sampler:
    """One chain for one answer. Close it, or the C side leaks.

    seed       of this answer; -1 if sampling is not random
    dead_end   after `sample` has returned -1: a sentence why; "" if the answer is complete
    left       if `watched`, or with a grammar: the candidates that the last token was chosen from, of type CANDIDATE
    """

    dead_end: str | None = None
    left: NDArray[Any]
    watched = False

    def __init__(self, plan: SamplingPlan, vocab: Vocab) -> None:
        is_random = not plan.sampling.greedy or plan.sampling.xtc_probability > 0.0
        self.seed = plan.sampling.seed if is_random else -1
        params = lib.llama_sampler_chain_default_params()
        params.no_perf = True
        self._chain: Any = lib.llama_sampler_chain_init(params)
        parts = _parts(plan, vocab)
        self.is_greedy = plan.sampling.greedy
        self._n_vocab = vocab.n_tokens
        for part in parts:
            lib.llama_sampler_chain_add(self._chain, part)
        self._n_argmax = vocab.n_tokens if plan.sampling.greedy and len(parts) == 1 else 0
        self._logits: NDArray[np.float32] | None = None
        self._logits_at = 0  # their address

    def sample(self, ctx: Any, row: int) -> int:
        """Sample from the logits of batch entry `row` (-1: the last) and remember the token for the penalties.

        Aborts the process if `row` has no logits (llama-sampler.cpp:940). Only `Context.sample`, which knows what was
        decoded, calls this.
        """
        if self.watched:
            return self._sample_watched(lib.llama_get_logits_ith(ctx, row))
        if self._n_argmax:  # the first among equals, like llama.cpp; there is nothing to remember
            pointer = lib.llama_get_logits_ith(ctx, row)
            at = ctypes.addressof(pointer.contents)
            if self._logits is None or at != self._logits_at:  # an array costs more than its greatest number
                self._logits, self._logits_at = np.ctypeslib.as_array(pointer, shape=(self._n_argmax,)), at
            return int(self._logits.argmax())
        return int(lib.llama_sampler_sample(self._chain, ctx, row))

    def accept(self, tokens: Iterable[int]) -> None:
        """Feed tokens that the chain did not sample: the end of the prompt, for the penalties."""
        for token in tokens:
            lib.llama_sampler_accept(self._chain, token)

    def resume(self, tokens: Iterable[int]) -> None:
        """The answer begins with these tokens, which `accept` has already got. Raises UserError if a grammar forbids
        them.
        """

    def force(self, token: int) -> bool:
        """Continue the answer with this token, whatever the chain would choose. False: the grammar decides."""
        lib.llama_sampler_accept(self._chain, token)
        return True

    def forced(self) -> list[int]:
        """Next tokens without a choice: their text is certain, and probably the split into tokens too."""
        return []

    def take_logprobs(self, n: int) -> tuple[TokenLogprobs, ...]:  # noqa: ARG002 - see LogprobSampler
        """How likely the next `n` sampled tokens were, if that was requested; else ()."""
        return ()

    def close(self) -> None:
        if self._chain is not None:
            lib.llama_sampler_free(self._chain)
            self._chain = None

    def _sample_watched(self, logits: Any) -> int:
        """As `sample`, from a table that Python can read (llama-sampler.cpp, `llama_sampler_sample`)."""
        table = np.zeros(self._n_vocab, CANDIDATE)
        table["id"] = np.arange(self._n_vocab)
        table["logit"] = np.ctypeslib.as_array(logits, shape=(self._n_vocab,))
        array = apply_to(self._chain, table)
        assert array.selected >= 0, "llama.cpp would abort"
        self.left = table[: array.size]
        token = int(array.data[array.selected].id)
        lib.llama_sampler_accept(self._chain, token)
        return token


def apply_to(sampler: Any, table: NDArray[Any]) -> Any:
    """Let llama.cpp's sampler change the candidates in place. Returns the `llama_token_data_array`."""
    data = table.ctypes.data_as(ctypes.POINTER(lib.llama_token_data))
    array = lib.llama_token_data_array(data, len(table), -1, False)
    lib.llama_sampler_apply(sampler, ctypes.byref(array))
    return array


def _penalizes(s: Sampling) -> bool:
    changed = (s.repeat_penalty, s.presence_penalty, s.frequency_penalty) != (1.0, 0.0, 0.0)
    return changed and s.repeat_last_n > 0


def _parts(plan: SamplingPlan, vocab: Vocab) -> list[Any]:
    """Samplers in their order; the last one chooses the token."""
    s = plan.sampling
    parts: list[Any] = []
    if plan.biases:
        biases = (lib.llama_logit_bias * len(plan.biases))(*(lib.llama_logit_bias(t, b) for t, b in plan.biases))
        parts.append(lib.llama_sampler_init_logit_bias(vocab.n_tokens, len(biases), biases))
    if s.mirostat is not Mirostat.OFF:
        if s.greedy:
            return [*parts, lib.llama_sampler_init_greedy()]
        parts.append(lib.llama_sampler_init_temp(s.temperature))
        if s.mirostat is Mirostat.V1:
            n_vocab, m = vocab.n_tokens, _MIROSTAT_M
            return [*parts, lib.llama_sampler_init_mirostat(n_vocab, s.seed, s.mirostat_tau, s.mirostat_eta, m)]
        return [*parts, lib.llama_sampler_init_mirostat_v2(s.seed, s.mirostat_tau, s.mirostat_eta)]
    for name in s.samplers:
        if s.greedy and name is SamplerName.TEMPERATURE:
            break  # one token is left, so later samplers change nothing
        if (not s.greedy or name not in _KEEP_THE_LIKELIEST) and (part := _part(name, s, vocab)) is not None:
            parts.append(part)
    if s.greedy:
        return [*parts, lib.llama_sampler_init_greedy()]
    if s.adaptive_target >= 0.0:
        return [*parts, lib.llama_sampler_init_adaptive_p(s.adaptive_target, s.adaptive_decay, s.seed)]
    return [*parts, lib.llama_sampler_init_dist(s.seed)]


def _part(name: SamplerName, s: Sampling, vocab: Vocab) -> Any | None:
    """The sampler of this name; None if it would change nothing."""
    match name:
        case SamplerName.PENALTIES if _penalizes(s):
            return lib.llama_sampler_init_penalties(
                vocab.n_tokens, s.repeat_last_n, s.repeat_penalty, s.frequency_penalty, s.presence_penalty
            )
        case SamplerName.DRY if s.dry_multiplier and s.dry_penalty_last_n:
            return _dry(s, vocab)
        case SamplerName.TOP_N_SIGMA if s.top_n_sigma > 0.0:
            return lib.llama_sampler_init_top_n_sigma(s.top_n_sigma)
        case SamplerName.TOP_K if s.top_k > 0:
            return lib.llama_sampler_init_top_k(s.top_k)
        case SamplerName.TYPICAL_P if s.typical_p < 1.0:
            return lib.llama_sampler_init_typical(s.typical_p, 1)
        case SamplerName.TOP_P if s.top_p < 1.0:
            return lib.llama_sampler_init_top_p(s.top_p, 1)
        case SamplerName.MIN_P if s.min_p > 0.0:
            return lib.llama_sampler_init_min_p(s.min_p, 1)
        case SamplerName.XTC if s.xtc_probability > 0.0 and s.xtc_threshold <= 0.5:
            return lib.llama_sampler_init_xtc(s.xtc_probability, s.xtc_threshold, 1, s.seed)
        case SamplerName.TEMPERATURE if s.dynatemp_range > 0.0:
            return lib.llama_sampler_init_temp_ext(s.temperature, s.dynatemp_range, s.dynatemp_exponent)
        case SamplerName.TEMPERATURE:
            return lib.llama_sampler_init_temp(s.temperature)
    return None


def _dry(s: Sampling, vocab: Vocab) -> Any:
    """A copy of the vocabulary's sampler with these values. llama.cpp builds one by searching all tokens for each
    sequence breaker.
    """
    values = (s.dry_multiplier, s.dry_base, s.dry_allowed_length, s.dry_penalty_last_n)
    key = (values, s.dry_sequence_breakers)
    if vocab.dry is None or vocab.dry[0] != key:
        vocab.forget_dry()
        breakers = [text.encode() for text in s.dry_sequence_breakers]
        array = (ctypes.c_char_p * len(breakers))(*breakers)
        vocab.dry = (key, lib.llama_sampler_init_dry(vocab.handle, *values, array, len(breakers)))
    return lib.llama_sampler_clone(vocab.dry[1])
