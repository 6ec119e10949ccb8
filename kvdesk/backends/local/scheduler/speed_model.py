"""What is measured while the engine decodes: how long batches take and what each cell of n_kv costs. Told as samples.

Runs on the engine's thread, in groups after several decodes.
"""

from __future__ import annotations

from statistics import fmean

from kvdesk.backends.local.cache_manager.operation_journal import Emit
from kvdesk.backends.local.llama.decodes import MirroredDecode
from kvdesk.policies.batch_times import BatchTimes
from kvdesk.policies.compaction_gain import Reads, SpanCost
from kvdesk.policies.first_token import ReadingSpeeds
from kvdesk.protocol.cache import SpeedSample
from kvdesk.settings import ContextSettings

_GUESS_MS = 4.0  # for a token of a prompt, until one was measured

_Key = tuple[object, ...]


MeasuredSpeeds = dict[_Key, tuple[BatchTimes, SpanCost, ReadingSpeeds]]
"""What was measured with one model, by what the speed of a decode depends on: it holds for later contexts too."""


class SpeedModel:
    """The speeds of one context. `times`, `cost` and `readings` are of its settings, and kept in `speeds` with those of
    others.

    reads  bytes that a decode reads, for the cost of a cell before it was measured
    """

    def __init__(self, emit: Emit, speeds: MeasuredSpeeds, settings: ContextSettings, reads: Reads) -> None:
        self._emit = emit
        self._by_settings = speeds
        self._n_kv, self._n_visible = 256, 256.0  # of the last decode
        new = BatchTimes(skips=reads.skips), SpanCost(reads), ReadingSpeeds()
        self.times, self.cost, self.readings = speeds.setdefault(_key(settings), new)

    def decoded(self, decode: MirroredDecode) -> None:
        """Learn from decodes that the mirror has followed, and tell of each."""
        record, batch, kind, ms, at_s, n_threads = decode
        n = decode.n_tokens
        learns = record.rc == 0 and kind != "flush"
        told = "flush" if kind == "check" else kind
        counts = record.n_ubatches, record.n_tested // record.n_decodes, record.rc, record.n_shifted
        for i, (n_kv, took, end) in enumerate(zip(record.n_kv, ms, at_s, strict=True)):
            if learns:
                self._n_kv, self._n_visible = n_kv, fmean(batch.pos[i * n : (i + 1) * n]) + 1
                self.times.learn(n, n_kv, self._n_visible, took)
                if n == 1:
                    self.cost.learn(n_kv, batch.pos[i] + 1, took, n_threads)
            if kind != "check" or record.n_shifted:
                self._emit(SpeedSample(end, told, n, took, n_kv, *counts))

    def gain(self, n_kv: int, n_kv_after: int) -> float | None:
        """Decode speed at `n_kv_after` divided by the speed at `n_kv`; None while not enough was measured."""
        now = self.times.ms(1, n_kv, self._n_visible)
        if not self.cost.known or not now:
            return None
        return now / max(now - self.cost.saved_ms(n_kv, n_kv_after), 0.05 * now)

    def costs(self, n_tokens: int, n_bytes: int) -> tuple[float, float]:
        """Expected ms to compute so many tokens, and to bring back so many bytes of state; a guess while unknown."""
        prefill = self.times.prefill_ms(n_tokens, 0, 512)
        restore = self.cost.blob_ms(n_bytes)
        return (_GUESS_MS * n_tokens if prefill is None else prefill), (n_bytes / 1e6 if restore is None else restore)

    def prefill_ms(self, n_tokens: int, n_batch: int) -> float | None:
        """Expected time of a prompt of `n_tokens` in an empty context; None while nothing was measured."""
        return self.times.prefill_ms(n_tokens, 0, n_batch)

    def decode_tok_s(self, settings: ContextSettings) -> float | None:
        """Expected decode speed at the present n_kv; None where no token was decoded in a context like this yet: the
        times of a prompt's batches do not tell what a single token takes.
        """
        known = self._by_settings.get(_key(settings))
        ms = known[0].ms(1, self._n_kv, self._n_visible) if known and known[0].measured(1) else None
        return 1e3 / ms if ms else None


def _key(settings: ContextSettings) -> _Key:
    """What the speed of a decode depends on."""
    s = settings
    return s.type_k, s.type_v, s.flash_attn, s.kv_unified, s.decode_threads, s.n_threads_batch, s.graph_tokens
