"""The real engine for tests: raw ctypes calls, with its log kept as a list of messages."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import llama_cpp.llama_cpp as lc

from kvdesk.cache.batch import Batch
from kvdesk.cache.dump import SlotDump, parse_log
from kvdesk.cache.geometry import ContextParams, ModelFacts, model_facts

_TYPES = {"f32": 0, "f16": 1, "q8_0": 8}

_messages: list[str] = []


@lc.llama_log_callback
def _log(_level: int, text: bytes, _data: ctypes.c_void_p) -> None:
    _messages.append(text.decode("utf-8", errors="replace"))


class Abort:
    """Stops a decode after `left` calls of the abort callback; -1 never."""

    def __init__(self) -> None:
        self.left = -1

        def ask(_data: ctypes.c_void_p) -> bool:
            if self.left < 0:
                return False
            self.left -= 1
            return self.left < 0

        self.callback = lc.ggml_abort_callback(ask)


class Engine:
    """A model and one context, with the calls that the mirror follows."""

    def __init__(self, path: Path, params: ContextParams, debug: int = 3) -> None:
        lc.llama_log_set(_log, ctypes.c_void_p(0))
        lc.llama_backend_init()
        os.environ["GGML_NO_BACKTRACE"] = "1"
        os.environ["LLAMA_KV_CACHE_DEBUG"] = str(debug)
        _messages.clear()
        model_params = lc.llama_model_default_params()
        model_params.n_gpu_layers = 0
        self.model = lc.llama_model_load_from_file(str(path).encode(), model_params)
        assert self.model, path
        self.abort = Abort()
        p = lc.llama_context_default_params()
        p.n_ctx, p.n_seq_max, p.n_batch, p.n_ubatch = params.n_ctx, params.n_seq_max, params.n_batch, params.n_ubatch
        p.kv_unified, p.swa_full = params.kv_unified, params.swa_full
        p.flash_attn_type = 1 if params.flash_attn else 0
        p.type_k, p.type_v = _TYPES[params.type_k], _TYPES[params.type_v]
        p.n_threads = p.n_threads_batch = 1
        p.abort_callback = self.abort.callback
        self.params = params
        self.ctx = lc.llama_init_from_model(self.model, p)
        assert self.ctx, "".join(_messages[-20:])
        self.creation = list(_messages)
        self.mem = lc.llama_get_memory(self.ctx)
        self.n_vocab = lc.llama_vocab_n_tokens(lc.llama_model_get_vocab(self.model))
        self.batch = lc.llama_batch_init(params.n_batch, 0, max(1, params.n_seq_max))

    def close(self) -> None:
        lc.llama_batch_free(self.batch)
        lc.llama_free(self.ctx)
        lc.llama_model_free(self.model)

    def facts(self) -> ModelFacts:
        buffer = ctypes.create_string_buffer(128)
        lc.llama_model_meta_val_str(self.model, b"general.architecture", buffer, 128)
        return model_facts(
            buffer.value.decode(),
            lc.llama_model_n_swa(self.model),
            lc.llama_model_is_recurrent(self.model),
            lc.llama_model_is_hybrid(self.model),
            lc.llama_model_rope_type(self.model),
        )

    def take_dumps(self) -> list[SlotDump]:
        messages = list(_messages)
        _messages.clear()
        return parse_log(messages)

    def decode(self, batch: Batch, stop_after: int = -1) -> int:
        """llama_decode, stopped at call number `stop_after` of the abort callback (-1 never)."""
        self.abort.left = stop_after
        self.batch.n_tokens = batch.n_tokens
        for i in range(batch.n_tokens):
            self.batch.token[i] = batch.tokens[i]
            self.batch.pos[i] = batch.pos[i]
            self.batch.n_seq_id[i] = len(batch.seq_ids[i])
            for j, s in enumerate(batch.seq_ids[i]):
                self.batch.seq_id[i][j] = s
            self.batch.logits[i] = batch.output[i]
        return int(lc.llama_decode(self.ctx, self.batch))

    def clear(self, data: bool) -> None:
        lc.llama_memory_clear(self.mem, data)

    def seq_rm(self, seq_id: int, p0: int, p1: int) -> bool:
        return bool(lc.llama_memory_seq_rm(self.mem, seq_id, p0, p1))

    def seq_cp(self, src: int, dst: int, p0: int, p1: int) -> None:
        lc.llama_memory_seq_cp(self.mem, src, dst, p0, p1)

    def seq_keep(self, seq_id: int) -> None:
        lc.llama_memory_seq_keep(self.mem, seq_id)

    def seq_add(self, seq_id: int, p0: int, p1: int, shift: int) -> None:
        lc.llama_memory_seq_add(self.mem, seq_id, p0, p1, shift)

    def pos_min(self, seq_id: int) -> int:
        return int(lc.llama_memory_seq_pos_min(self.mem, seq_id))

    def pos_max(self, seq_id: int) -> int:
        return int(lc.llama_memory_seq_pos_max(self.mem, seq_id))

    def state(self) -> bytes:
        size = lc.llama_state_get_size(self.ctx)
        buffer = (ctypes.c_uint8 * size)()
        assert lc.llama_state_get_data(self.ctx, buffer, size) == size
        return bytes(buffer)

    def set_state(self, blob: bytes) -> int:
        buffer = (ctypes.c_uint8 * len(blob)).from_buffer_copy(blob)
        return int(lc.llama_state_set_data(self.ctx, buffer, len(blob)))

    def seq_state(self, seq_id: int) -> bytes:
        size = lc.llama_state_seq_get_size(self.ctx, seq_id)
        buffer = (ctypes.c_uint8 * size)()
        assert lc.llama_state_seq_get_data(self.ctx, buffer, size, seq_id) == size
        return bytes(buffer)

    def set_seq_state(self, seq_id: int, blob: bytes) -> int:
        buffer = (ctypes.c_uint8 * len(blob)).from_buffer_copy(blob)
        return int(lc.llama_state_seq_set_data(self.ctx, buffer, len(blob), seq_id))


@contextmanager
def engine(path: Path, params: ContextParams, debug: int = 3) -> Iterator[Engine]:
    """An engine that is closed at the end."""
    it = Engine(path, params, debug)
    try:
        yield it
    finally:
        it.close()
