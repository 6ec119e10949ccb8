"""Measures decodes, teaches `Costs` and reports samples.

Runs on the engine's thread, in groups after several decodes.
"""

from statistics import fmean

from kvdesk.backends.local.cache_manager.operation_journal import Emit
from kvdesk.backends.local.llama.memory.decodes import MirroredDecode
from kvdesk.library.gguf_header import GgufHeader
from kvdesk.library.hyper import read_hyper
from kvdesk.policies.costs import Costs, Reads
from kvdesk.protocol.cache import SpeedSample
from kvdesk.settings import ContextSettings

_Key = tuple[object, ...]

MeasuredCosts = dict[_Key, Costs]
"""Measurements with one model, by what the speed of a decode depends on; valid for later contexts too."""


class SpeedModel:
    """`costs` are those of one context's settings; `measured` holds them with those of other settings.

    reads  bytes that a decode reads, for the cost of a cell before it is measured
    """

    def __init__(self, emit: Emit, measured: MeasuredCosts, settings: ContextSettings, reads: Reads) -> None:
        self._emit = emit
        self._measured = measured
        self._n_kv, self.n_visible = 256, 256.0  # of the last decode
        self.costs = measured.setdefault(_key(settings), Costs(reads))

    def decoded(self, decode: MirroredDecode) -> None:
        """Learn from decodes that the mirror has followed, and report each."""
        record, batch, kind, ms, at_s = decode
        n = decode.n_tokens
        learns = record.rc == 0 and kind != "flush"
        told = "flush" if kind == "check" else "decode" if kind == "draft" else kind
        counts = record.n_ubatches, record.n_tested // record.n_decodes, record.rc, record.n_shifted
        for i, (n_kv, took, end) in enumerate(zip(record.n_kv, ms, at_s, strict=True)):
            if learns:
                self._n_kv = n_kv
                self.n_visible = 1.0 + (batch.pos[i] if n == 1 else fmean(batch.pos[i * n : (i + 1) * n]))
                self.costs.learn(n, n_kv, self.n_visible, took)
            verified_later = kind == "draft" and record.rc == 0  # and reported then
            if not verified_later and (kind != "check" or record.n_shifted):
                self._emit(SpeedSample(end, told, n, took, n_kv, *counts))

    def decode_tok_s(self, settings: ContextSettings) -> float | None:
        """Expected decode speed at the current n_kv; None if no token was decoded in a similar context yet, because
        batches of a prompt do not show the time of a single token.
        """
        costs = self._measured.get(_key(settings))
        ms = costs.step_ms(self._n_kv, self.n_visible) if costs is not None else None
        return 1e3 / ms if ms else None


def reads_of(header: GgufHeader, settings: ContextSettings, weights: int, cell: int) -> Reads:
    """What a decoded token reads with these settings; `weights` and `cell`: bytes of the model and of K and V of one
    cell.
    """
    hyper, n_threads = read_hyper(header), settings.decode_threads
    divides = settings.flash_attn and settings.type_k == settings.type_v and settings.type_k in ("f16", "f32")
    heads, numbers = hyper.n_heads / n_threads, hyper.n_head_numbers / n_threads
    return Reads(weights, cell, settings.flash_attn, heads, numbers, n_threads if divides else 1)


def _key(settings: ContextSettings) -> _Key:
    """What the speed of a decode depends on."""
    s = settings
    return s.type_k, s.type_v, s.flash_attn, s.kv_unified, s.decode_threads, s.n_threads_batch, s.graph_tokens
