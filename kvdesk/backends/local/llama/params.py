"""Turns settings into a `llama_context *`: types, parameters, and what llama.cpp logged while it made the context.

Owns the translation of `ContextSettings`. Must never know the mirror's state; sizes come from `kvdesk.cache.geometry`.
"""

import os
import re
from collections.abc import Iterable
from typing import Any

from kvdesk.backends.local.llama.binding import engine_log, free_context, lib
from kvdesk.backends.local.llama.model import Model
from kvdesk.backends.local.llama.traits import FLOAT_TYPES
from kvdesk.cache.geometry import ContextParams, Geometry, plan
from kvdesk.errors import ContextError
from kvdesk.settings import CacheType, ContextSettings
from kvdesk.translation import tr
from kvdesk.values import replace

_GGML_TYPE = {
    CacheType.F32: lib.GGML_TYPE_F32,
    CacheType.F16: lib.GGML_TYPE_F16,
    CacheType.BF16: 30,  # GGML_TYPE_BF16 (ggml.h); llama-cpp-python does not name it
    CacheType.Q8_0: lib.GGML_TYPE_Q8_0,
    CacheType.Q4_0: lib.GGML_TYPE_Q4_0,
    CacheType.Q4_1: lib.GGML_TYPE_Q4_1,
    CacheType.IQ4_NL: lib.GGML_TYPE_IQ4_NL,
    CacheType.Q5_0: lib.GGML_TYPE_Q5_0,
    CacheType.Q5_1: lib.GGML_TYPE_Q5_1,
}


_BUFFER = re.compile(r"\b(KV|RS|output|compute) buffer size = +([\d.]+) MiB")


def planned(model: Model, settings: ContextSettings) -> Geometry:
    """The caches that the engine will make. For a memory that is not mirrored, those of a plain one.

    Raises ContextError if llama.cpp would refuse or abort: quantized V without flash attention, more sequences than
    tokens in a batch once n_batch is cut to n_ctx (llama-context.cpp:247, :377), no size known.
    """
    if settings.type_v not in FLOAT_TYPES and not settings.flash_attn:
        raise ContextError(
            tr("V as {type_v} needs flash attention: llama.cpp refuses it without.").format(type_v=settings.type_v)
        )
    facts = replace(model.facts, kind="attention") if model.facts.kind == "unknown" else model.facts
    return plan(
        facts,
        ContextParams(
            n_ctx=settings.n_ctx,
            n_seq_max=settings.n_seq_max,
            n_batch=settings.n_batch,
            n_ubatch=settings.graph_tokens,
            kv_unified=settings.kv_unified,
            swa_full=settings.whole_window,
            flash_attn=settings.flash_attn,
            n_ctx_train=model.n_ctx_train,
            n_rs_seq=settings.n_rs_seq if model.traits.causal else 0,  # one state is written (models/lfm2.cpp:208)
        ),
    )


def buffer_bytes(said: Iterable[str]) -> dict[str, int]:
    """Bytes of the buffers a context was given, as llama.cpp logs them: "KV", "RS", "output", "compute".

    Rounded to 10 kB: it prints MiB with two digits (llama-kv-cache.cpp:226, llama-context.cpp:597).
    """
    found: dict[str, int] = {}
    for line in said:
        if match := _BUFFER.search(line):
            found[match[1]] = found.get(match[1], 0) + round(float(match[2]) * 2**20)
    return found


def create(model: Model, settings: ContextSettings, level: int, cb_eval: Any = None) -> tuple[Any, list[str]]:
    """(`llama_context *`, the log messages of its making). `level` is LLAMA_KV_CACHE_DEBUG. `cb_eval`: a callback that
    sees each node of its graphs (ggml_backend_sched_eval_callback), which must outlive the context; None: without.

    Raises ContextError with what llama.cpp said.
    """
    log = engine_log()
    log.forget()
    os.environ["LLAMA_KV_CACHE_DEBUG"] = str(level)  # read in the constructor of every cache
    log.capture_start(everything=True)
    params = _params(model, settings)
    if cb_eval is not None:
        params.cb_eval = cb_eval
    ctx = lib.llama_init_from_model(model.handle, params)
    said = [line.decode("utf-8", "replace") for line in log.capture_stop()]
    if not ctx:
        raise ContextError(
            tr("llama.cpp cannot make a context of {n:,} cells with K as {type_k} and V as {type_v}.").format(
                n=settings.n_ctx or model.n_ctx_train, type_k=settings.type_k, type_v=settings.type_v
            ),
            log.problems(),
        )
    if not lib.llama_get_memory(ctx):
        free_context(ctx)
        raise ContextError(
            tr("{file} keeps no cache ({architecture}): it cannot be decoded.").format(
                file=model.path.name, architecture=model.facts.architecture
            )
        )
    return ctx, said


def ggml_type(cache_type: CacheType) -> int:
    """The number of a type in state blobs and context parameters."""
    return int(_GGML_TYPE[cache_type])


def _params(model: Model, settings: ContextSettings) -> Any:
    params = lib.llama_context_default_params()
    params.n_ctx = settings.n_ctx or model.n_ctx_train
    params.n_seq_max = settings.n_seq_max
    params.n_batch = settings.n_batch
    params.n_ubatch = settings.graph_tokens
    params.n_threads = settings.decode_threads
    params.n_threads_batch = settings.n_threads_batch
    params.type_k = _GGML_TYPE[settings.type_k]
    params.type_v = _GGML_TYPE[settings.type_v]
    params.flash_attn_type = (
        lib.LLAMA_FLASH_ATTN_TYPE_ENABLED if settings.flash_attn else lib.LLAMA_FLASH_ATTN_TYPE_DISABLED
    )
    params.kv_unified = settings.kv_unified
    params.swa_full = settings.whole_window
    params.n_rs_seq = planned(model, settings).n_rs_seq
    params.offload_kqv = False
    params.op_offload = False
    params.no_perf = True
    return params
