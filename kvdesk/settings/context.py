"""Settings of a llama.cpp context."""

import math
import os
import sys
from enum import StrEnum

from pydantic import Field

from kvdesk import control_groups
from kvdesk.settings.table import Table, llama
from kvdesk.translation import marked

EXACT_UBATCH = 32
"""Largest graph whose sums do not depend on how a prompt was cut: from 64 tokens on (GGML_FA_TILE_Q, ggml-cpu/common.h)
llama.cpp's flash attention works in tiles and adds up in another order. Half of that leaves room for neither."""

_MOST_THREADS = 512
"""llama.cpp takes no more (GGML_MAX_N_THREADS, ggml.h)."""


class CacheType(StrEnum):
    """Types llama.cpp accepts for K and V (common/arg.cpp, `kv_cache_types`)."""

    F32 = "f32"
    F16 = "f16"
    BF16 = "bf16"
    Q8_0 = "q8_0"
    Q4_0 = "q4_0"
    Q4_1 = "q4_1"
    IQ4_NL = "iq4_nl"
    Q5_0 = "q5_0"
    Q5_1 = "q5_1"


def default_threads() -> int:
    """Physical cores where they can be counted, else logical ones, and no more than this process may use (`taskset`, a
    container): threads that wait for each other's turn take many times as long.
    """
    import psutil

    cores = psutil.cpu_count(logical=False) or os.cpu_count() or 1
    if sys.platform == "linux":
        cores = min(cores, len(os.sched_getaffinity(0)))
    return max(1, math.floor(min(cores, control_groups.processors(), _MOST_THREADS)))


class ContextSettings(Table):
    """How a llama.cpp context is created. Changing any of them means a new context."""

    n_ctx: int = Field(
        4096,
        ge=0,
        le=1 << 20,
        title=marked("Context size"),
        json_schema_extra=llama("n_ctx"),
        description=marked(
            "Tokens the KV cache has room for (cells), for all conversations together; "
            "0 takes the length the model was trained for"
        ),
    )
    n_seq_max: int = Field(
        8,
        ge=1,
        le=64,
        title=marked("Sequences"),
        json_schema_extra=llama("n_seq_max"),
        description=marked("Most conversations and branches in the cache at the same time"),
    )
    n_batch: int = Field(
        512,
        ge=1,
        le=16384,
        title=marked("Batch size"),
        json_schema_extra=llama("n_batch"),
        description=marked("Most tokens in one llama_decode call"),
    )
    n_ubatch: int = Field(
        512,
        ge=1,
        le=16384,
        title=marked("Physical batch size"),
        json_schema_extra=llama("n_ubatch"),
        description=marked("Most tokens computed at once, in one graph"),
    )
    exact: bool = Field(
        False,
        title=marked("Exact answers"),
        description=marked(
            "The same answer, bit for bit, as if the prompt was computed without the cache. Off, answers may differ by "
            "rounding. Prompts are read a third slower, one thread writes answers (0.7 of the speed on two cores), and "
            "with most weights each turn reads the last answer again. Models with an indexer are exact only alone"
        ),
    )
    n_threads: int = Field(
        default_factory=default_threads,
        ge=1,
        le=_MOST_THREADS,
        title=marked("Threads"),
        json_schema_extra=llama("n_threads"),
        description=marked("CPU threads for writing answers"),
    )
    n_threads_batch: int = Field(
        default_factory=default_threads,
        ge=1,
        le=_MOST_THREADS,
        title=marked("Threads for prompts"),
        json_schema_extra=llama("n_threads_batch"),
        description=marked("CPU threads for reading prompts (prefill)"),
    )
    type_k: CacheType = Field(
        CacheType.F16,
        title=marked("K cache type"),
        json_schema_extra=llama("type_k"),
        description=marked("Data type of K; quantized types such as q8_0 take less memory"),
    )
    type_v: CacheType = Field(
        CacheType.F16,
        title=marked("V cache type"),
        json_schema_extra=llama("type_v"),
        description=marked("Data type of V; quantized types take less memory and need flash attention"),
    )
    flash_attn: bool = Field(
        True,
        title=marked("Flash attention"),
        json_schema_extra=llama("flash_attn"),
        description=marked("Skips masked cells, and allows a quantized V"),
    )
    kv_unified: bool = Field(
        True,
        title=marked("Unified KV cache"),
        json_schema_extra=llama("kv_unified"),
        description=marked("One buffer for all sequences, so that they can share cells; off, each has its own part"),
    )
    swa_full: bool = Field(
        True,
        title=marked("Full-size SWA cache"),
        json_schema_extra=llama("swa_full"),
        description=marked("For models with sliding-window attention: keeps the cells outside the window too"),
    )
    n_rs_seq: int = Field(
        0,
        ge=0,
        le=64,
        title=marked("Earlier states"),
        json_schema_extra=llama("n_rs_seq"),
        description=marked(
            "For hybrid models of LFM2, Qwen3.5, Qwen 4, Nemotron-H, Kimi K3, BailingMoE 3, GLM-5-Next and DeepSeek "
            "V4: states kept of each sequence, so that as many of the last tokens of a batch can be removed again. "
            "Speculative decoding needs them, such as 7. Each one takes the memory of all recurrent states once more"
        ),
    )

    @property
    def graph_tokens(self) -> int:
        """`n_ubatch` as llama.cpp gets it: with `exact` at most `EXACT_UBATCH`."""
        return min(self.n_ubatch, EXACT_UBATCH) if self.exact else self.n_ubatch

    @property
    def decode_threads(self) -> int:
        """`n_threads` as llama.cpp gets it: with `exact` one."""
        return 1 if self.exact else self.n_threads

    @property
    def whole_window(self) -> bool:
        """`swa_full` as llama.cpp gets it: with `exact` on, because a smaller window cache is a ring, in which the
        order of cells depends on what was there before.
        """
        return self.swa_full or self.exact
