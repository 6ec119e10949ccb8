"""Follows the cache of a `llama_cpp.Llama`: its calls are also those of a mirror, by the rules of llama.cpp.

Owns the methods that are replaced on that one object, and puts them back. The positions of every sequence are compared
with the engine's after each call; from the first that differ on, nothing is followed any more. Must never change what
the object does.
"""

from __future__ import annotations

import ctypes
import re
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, Final

from kvdesk.cache.batch import Batch
from kvdesk.cache.geometry import ContextParams, Geometry, model_facts, plan
from kvdesk.cache.journal import Journal, Operation
from kvdesk.cache.journal.file import JournalHeader, save_journal
from kvdesk.cache.journal.recording import Recording
from kvdesk.cache.mirror import Mirror
from kvdesk.cache.snapshot import CacheSnapshot, Verification
from kvdesk.cache.state.blob import BlobError, parse_state
from kvdesk.cache.verify import Difference, compare_blob, compare_spans
from kvdesk.errors import UserError
from kvdesk.notebook.cell_map import page, text_of
from kvdesk.protocol import calls
from kvdesk.translation import tr

_RETURNED: Final = re.compile(r"returned (-?\d+)$")
_METHODS: Final = ("kv_cache_clear", "kv_cache_seq_rm", "kv_cache_seq_cp", "kv_cache_seq_keep", "kv_cache_seq_shift")


def watch(llama: Any) -> closing[WatchedCache]:
    """The cache of a `llama_cpp.Llama` while the block runs; what was seen can be read afterwards.

    Raises UserError for another object, for a cache that is in use already, and for a model whose cache kvdesk does not
    know.
    """
    return closing(WatchedCache(llama))


class WatchedCache:
    """What the calls of one `Llama` did to its cells. A notebook shows it as a map.

    mirror  the cells now, by the rules of llama.cpp; only to be read
    """

    def __init__(self, llama: Any) -> None:
        if not hasattr(llama, "_ctx"):
            sentence = tr("kvdesk.watch follows a llama_cpp.Llama, and this is a {type}.")
            raise UserError(sentence.format(type=type(llama).__name__))
        self._llama, self._ctx = llama, llama._ctx
        self._library = sys.modules[type(self._ctx).__module__].llama_cpp
        self._model = Path(str(llama.model_path)).name
        self.mirror = Mirror(_geometry(llama, self._library))
        if any(self._pos_max(seq_id) >= 0 for seq_id in range(self.mirror.geometry.n_seq_max)):
            sentence = tr("The cache of {model} is in use already: watch it before its first prompt.")
            raise UserError(sentence.format(model=self._model))
        self._ctx.kv_cache_clear()  # nothing is in it: the search for cells begins at 0
        self.mirror.clear()
        self._journal = Journal(self.mirror)
        self._difference: Difference | None = None
        self._proven = 0
        self._replaced: list[tuple[Any, str]] = []
        self._replace(self._ctx, "decode", self._decode)
        for name in _METHODS:
            self._replace(self._ctx, name, self._memory_call(name, getattr(self._ctx, name)))
        self._replace(llama, "reset", self._reset)
        self._replace(llama, "load_state", self._load_state)

    @property
    def events(self) -> tuple[Operation, ...]:
        """The calls so far: number, time, llama.cpp's function, its arguments, and milliseconds."""
        recording = self._journal.recording()
        return tuple(entry.operation for entry in recording.operations(recording.first, recording.last))

    @property
    def recording(self) -> Recording:
        """All calls with the cells that each changed."""
        return self._journal.recording()

    @property
    def snapshot(self) -> CacheSnapshot:
        """The cells now, frozen, and how far they are proved."""
        return self.mirror.snapshot(self._verification())

    def verify(self) -> Verification:
        """Compare every used cell with the engine's own state, which is copied. Read-only."""
        if self._difference is None:
            size = self._library.llama_state_get_size(self._ctx.ctx)
            blob = (ctypes.c_uint8 * int(size))()
            n = self._library.llama_state_get_data(self._ctx.ctx, blob, size)
            try:
                self._difference = compare_blob(self.mirror, parse_state(bytes(blob)[:n], self.mirror.geometry))
            except BlobError as error:
                self._difference = Difference("the engine's state", "a state of this context", str(error))
            self._proven = self.mirror.operation
        return self._verification()

    def save(self, path: str | Path) -> None:
        """A journal for `kvdesk replay`, with token ids and no texts. Raises UserError if it cannot be written."""
        save_journal(Path(path), self.recording, JournalHeader(self._model))

    def close(self) -> None:
        """Give the object its own methods back. What was seen stays."""
        for owner, name in self._replaced:
            vars(owner).pop(name, None)
        self._replaced.clear()

    def __repr__(self) -> str:
        return text_of(self.snapshot, self._model)

    def _repr_html_(self) -> str:
        return page(self.snapshot, self.events, self._model)

    # --- private -----------------------------------------------------------------------------------------------------

    def _replace(self, owner: Any, name: str, call: Callable[..., Any]) -> None:
        """For this object alone: its class stays as it is."""
        if name in vars(owner):
            raise UserError(tr("The cache of {model} is watched already.").format(model=self._model))
        setattr(owner, name, call)
        self._replaced.append((owner, name))

    def _decode(self, batch: Any) -> None:
        given, rc, start = _batch(batch.batch), 0, time.perf_counter()
        try:
            type(self._ctx).decode(self._ctx, batch)
        except RuntimeError as error:
            found = _RETURNED.search(str(error))
            rc = int(found[1]) if found else -1
            raise
        finally:
            seconds = time.perf_counter() - start
            self._follow(
                lambda: not self.mirror.decode(given, rc, self._pos_max).mismatch,
                calls.decode(len(given.tokens)),
                seconds,
            )

    def _memory_call(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def watched(*arguments: int) -> Any:
            start = time.perf_counter()
            answer = call(*arguments)
            seconds = time.perf_counter() - start
            match name, arguments:
                case "kv_cache_clear", _:
                    self._follow(self.mirror.clear, calls.clear(), seconds)
                case "kv_cache_seq_rm", (seq_id, p0, p1):
                    seq_id = max(0, seq_id)  # as llama-cpp-python does
                    self._follow(
                        lambda: self.mirror.seq_rm(seq_id, p0, p1) == bool(answer),
                        calls.seq_rm(seq_id, p0, p1),
                        seconds,
                    )
                case "kv_cache_seq_cp", (source, target, p0, p1):
                    text = calls.seq_cp(source, target, p0, p1)
                    self._follow(lambda: self.mirror.seq_cp(source, target, p0, p1), text, seconds)
                case "kv_cache_seq_keep", (seq_id,):
                    self._follow(lambda: self.mirror.seq_keep(seq_id), calls.seq_keep(seq_id), seconds)
                case "kv_cache_seq_shift", (seq_id, p0, p1, shift):
                    text = calls.seq_add(seq_id, p0, p1, shift)
                    self._follow(lambda: self.mirror.seq_add(seq_id, p0, p1, shift), text, seconds)
            return answer

        return watched

    def _reset(self) -> None:
        """Clears the memory of recurrent and hybrid models alone."""
        type(self._llama).reset(self._llama)
        if self.mirror.geometry.n_states:
            self._follow(self.mirror.clear, calls.clear())

    def _load_state(self, state: Any) -> None:
        start = time.perf_counter()
        type(self._llama).load_state(self._llama, state)
        blob = bytes(state.llama_state)
        call = calls.state_set(len(blob))
        self._follow(lambda: self.mirror.restore(blob).ok, call, time.perf_counter() - start)

    def _follow(self, call: Callable[[], object], text: str, seconds: float = 0.0) -> None:
        """`call` does to the mirror what was done to the cache; False if the engine did otherwise."""
        if self._difference is not None:
            return
        try:
            if call() is False:
                self._difference = Difference(text, "another outcome", "this one")
        except BlobError as error:
            self._difference = Difference(text, "a state of this context", str(error))
            return  # nothing was changed
        self._difference = self._difference or compare_spans(self.mirror, self._pos_min, self._pos_max)
        name = text.partition("(")[0].removeprefix("llama_").removeprefix("memory_")
        self._journal.record([Operation(self.mirror.operation, time.time(), name, text, seconds * 1e3)])

    def _verification(self) -> Verification:
        if self._difference is not None:
            return Verification("mismatch", self.mirror.operation, str(self._difference))
        return Verification("verified" if self._proven == self.mirror.operation else "mirrored", self._proven)

    def _pos_min(self, seq_id: int) -> int:
        return int(self._library.llama_memory_seq_pos_min(self._ctx.memory, seq_id))

    def _pos_max(self, seq_id: int) -> int:
        return int(self._library.llama_memory_seq_pos_max(self._ctx.memory, seq_id))


def _geometry(llama: Any, library: Any) -> Geometry:
    """Of the context that the object has made. Raises UserError for a memory that is not known."""
    handle, params = llama._model.model, llama.context_params
    architecture = str(llama.metadata.get("general.architecture", ""))
    hidden = str(llama.metadata.get(f"{architecture}.attention.sliding_window", "0"))
    facts = model_facts(
        architecture,
        n_swa=int(library.llama_model_n_swa(handle)) or (int(hidden) if architecture == "deepseek4" else 0),
        is_recurrent=bool(library.llama_model_is_recurrent(handle)),
        is_hybrid=bool(library.llama_model_is_hybrid(handle)),
        rope_type=int(library.llama_model_rope_type(handle)),
        mla=str(llama.metadata.get(f"{architecture}.attention.key_length_mla", "0")) not in ("", "0"),
        n_layer=int(library.llama_model_n_layer(handle)),
        indexer=str(llama.metadata.get(f"{architecture}.attention.indexer.top_k", "0")) not in ("", "0"),
    )
    if facts.kind == "unknown":
        raise UserError(tr("This cache cannot be watched: {why}.").format(why=facts.reason))
    return plan(
        facts,
        ContextParams(
            n_ctx=int(params.n_ctx),
            n_seq_max=int(params.n_seq_max),
            n_batch=int(params.n_batch),
            n_ubatch=int(params.n_ubatch),
            kv_unified=bool(params.kv_unified),
            swa_full=bool(params.swa_full),
            flash_attn=bool(params.flash_attn_type),
            n_ctx_train=int(library.llama_model_n_ctx_train(handle)),
            embeddings=bool(params.embeddings),
            n_rs_seq=int(params.n_rs_seq),
        ),
    )


def _batch(batch: Any) -> Batch:
    """A `llama_batch` as a value."""
    n = range(int(batch.n_tokens))
    owners = [tuple(int(batch.seq_id[i][k]) for k in range(int(batch.n_seq_id[i]))) for i in n]
    return Batch(
        [int(batch.token[i]) for i in n], [int(batch.pos[i]) for i in n], owners, [bool(batch.logits[i]) for i in n]
    )
