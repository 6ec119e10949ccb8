"""All settings, each with its default, its range and its description: one declared table.

The names are llama.cpp's. The defaults of `Sampling` are llama.cpp's own (common/common.h).
"""

from __future__ import annotations

import os
from enum import StrEnum

from pydantic import BaseModel, ConfigDict, Field

EXACT_UBATCH = 32
"""Largest graph whose sums do not depend on how a prompt was cut: from 64 tokens on (GGML_FA_TILE_Q, ggml-cpu/common.h)
llama.cpp's flash attention works in tiles and adds up in another order. Half of that leaves room for neither."""

MOST_THREADS = 512
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


class Theme(StrEnum):
    SYSTEM = "system"
    LIGHT = "light"
    DARK = "dark"


def default_threads() -> int:
    """Physical cores where they can be counted, else logical ones."""
    import psutil

    return min(psutil.cpu_count(logical=False) or os.cpu_count() or 1, MOST_THREADS)


class _Table(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", validate_default=True)


class ContextSettings(_Table):
    """How a llama.cpp context is created. Changing any of them means a new context."""

    n_ctx: int = Field(4096, ge=0, le=1 << 20, description="Cells of the KV cache; 0 takes the model's training length")
    n_seq_max: int = Field(8, ge=1, le=64, description="Conversations and branches that can be in the cache at once")
    n_batch: int = Field(512, ge=1, le=16384, description="Most tokens handed to one llama_decode call")
    n_ubatch: int = Field(512, ge=1, le=16384, description="Most tokens computed in one graph")
    exact: bool = Field(
        False,
        description="Answers are those of a fresh start bit by bit; off, they may differ from one by rounding. "
        "Prompts are then read a third slower, and one thread writes answers (0.7 of the speed on two cores)",
    )
    n_threads: int = Field(default_factory=default_threads, ge=1, le=MOST_THREADS, description="Threads for decode")
    n_threads_batch: int = Field(
        default_factory=default_threads, ge=1, le=MOST_THREADS, description="Threads for prefill"
    )
    type_k: CacheType = Field(CacheType.F16, description="Data type of K")
    type_v: CacheType = Field(CacheType.F16, description="Data type of V; quantized types need flash attention")
    flash_attn: bool = Field(True, description="Flash attention: skips masked cells, allows quantized V")
    kv_unified: bool = Field(
        True, description="One buffer for all sequences; off gives every sequence a stream of its own"
    )
    swa_full: bool = Field(True, description="Full-size window cache for sliding-window models")

    @property
    def graph_tokens(self) -> int:
        """`n_ubatch` as llama.cpp gets it: with `exact` at most `EXACT_UBATCH`."""
        return min(self.n_ubatch, EXACT_UBATCH) if self.exact else self.n_ubatch

    @property
    def decode_threads(self) -> int:
        """`n_threads` as llama.cpp gets it: with `exact` one."""
        return 1 if self.exact else self.n_threads


class Sampling(_Table):
    """The sampler chain, in llama.cpp's order: penalties, top-k, top-p, min-p, temperature, dist."""

    temperature: float = Field(
        0.8, ge=0.0, le=5.0, allow_inf_nan=False, description="0 always takes the likeliest token (greedy)"
    )
    top_k: int = Field(40, ge=0, le=1_000_000, description="Keep the k likeliest tokens; 0 keeps all")
    top_p: float = Field(0.95, ge=0.0, le=1.0, description="Keep the likeliest tokens up to this probability mass")
    min_p: float = Field(0.05, ge=0.0, le=1.0, description="Drop tokens below this share of the likeliest")
    repeat_penalty: float = Field(1.0, ge=0.1, le=4.0, description="Above 1 makes recent tokens less likely")
    repeat_last_n: int = Field(64, ge=0, le=65536, description="How many recent tokens the penalty looks at")
    seed: int = Field(0xFFFFFFFF, ge=0, le=0xFFFFFFFF, description="4294967295 draws a new seed for every answer")
    max_tokens: int = Field(1024, ge=1, le=1 << 20, description="Most tokens in one answer")


class Overflow(StrEnum):
    """What happens when a conversation's context is full (`kvdesk.policy.overflow`)."""

    STOP = "stop"
    SLIDE = "slide"
    RECOMPUTE = "recompute"
    SINKS = "sinks"


class CachePolicy(_Table):
    """What kvdesk does with the cache by itself."""

    follow_load: bool = Field(
        True,
        description="Fewer threads while other programs are busy. The number of threads changes the order of sums: in "
        "long conversations answers may then differ by rounding",
    )
    auto_compact: bool = Field(True, description="Compact the cache between answers where that pays back")
    prefill_ahead: bool = Field(False, description="Read the end of an answer into the cache while you read it")
    overflow: Overflow = Field(Overflow.STOP, description="When the context of a new conversation is full")
    n_keep: int = Field(0, ge=0, le=1 << 20, description="Leading tokens that stay when a full context slides")
    memory_mb: int = Field(512, ge=0, le=1 << 20, description="Memory for conversations outside the cache, in MB")
    disk_mb: int = Field(2048, ge=0, le=1 << 24, description="Disk space for conversations outside the cache, in MB")


class Settings(_Table):
    """Everything that outlives a run."""

    model: str = Field("", description="Path of the model to open at start; empty opens the embedded one")
    context: ContextSettings = Field(default_factory=ContextSettings)
    sampling: Sampling = Field(default_factory=Sampling)
    cache: CachePolicy = Field(default_factory=CachePolicy)
    system_prompt: str = Field("", description="System prompt of new conversations")
    theme: Theme = Field(Theme.SYSTEM, description="Light, dark, or as the system has it")
    sidebar_visible: bool = Field(True, description="Conversation list shown (Ctrl+B)")
    inspector_visible: bool = Field(True, description="Cache inspector shown (Ctrl+I)")
