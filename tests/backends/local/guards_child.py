"""The table of process-killing calls, attempted through the public engine in this process, which must live.

`python -m tests.backends.local.guards_child FOLDER` prints JSON: the error of each row, "" for none.
`python -m tests.backends.local.guards_child FOLDER CALL` makes one without a guard, which must kill the process.
"""

import json
import os
import struct
import sys
from collections.abc import Callable
from pathlib import Path

from kvdesk.backends.local.llama.binding import lib
from kvdesk.backends.local.llama.context import Context
from kvdesk.backends.local.llama.model import Model
from kvdesk.backends.local.llama.samplers.sampler import Sampler, SamplingPlan
from kvdesk.cache.batch import Batch
from kvdesk.settings import CacheType, ContextSettings, Sampling
from tests.backends.local.tiny_models import N_POSITIONS, write

SMALL = ContextSettings(n_ctx=512, n_seq_max=4, n_batch=32, n_ubatch=8, n_threads=1, n_threads_batch=1)
Q8 = SMALL.model_copy(update={"type_k": CacheType.Q8_0})
Rows = dict[str, str]


def tokens(n: int, seq_id: int = 0, first: int = 0, output: bool = True) -> Batch:
    return Batch((1,) * n, tuple(range(first, first + n)), ((seq_id,),) * n, (False,) * (n - 1) + (output,))


class Table:
    """Rows of the table. Every context gets a decode after the attempts on it: it still works."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.rows: Rows = {}

    def open(self, architecture: str = "llama", settings: ContextSettings = SMALL) -> Context:
        path = self.folder / f"{architecture}.gguf"
        if not path.exists():
            write(path, architecture)
        return Context(Model(path), settings)

    def attempt(self, row: str, call: Callable[[], object]) -> None:
        try:
            call()
            self.rows[row] = ""
        except Exception as error:  # noqa: BLE001 - whatever it is, its name is the result
            self.rows[row] = f"{type(error).__name__}: {error}"

    def run(self) -> Rows:
        self._sequences()
        self._batches()
        self._logits()
        self._states()
        self._copies()
        self._shifts()
        self._creation()
        return self.rows

    # --- rows ---------------------------------------------------------------------------------------------------------

    def _sequences(self) -> None:
        c = self.open()
        c.decode(tokens(4))
        for bad in (-2, 4, 255, 256, 100_000):
            self.attempt(f"seq_rm of sequence {bad}", lambda bad=bad: c.memory.seq_rm(bad, -1, -1))  # type: ignore[misc]
        for bad in (-1, 4, 256):
            self.attempt(f"seq_cp from sequence {bad}", lambda bad=bad: c.memory.seq_cp(bad, 0))  # type: ignore[misc]
            self.attempt(f"seq_cp to sequence {bad}", lambda bad=bad: c.memory.seq_cp(0, bad))  # type: ignore[misc]
            self.attempt(f"seq_keep of sequence {bad}", lambda bad=bad: c.memory.seq_keep(bad))  # type: ignore[misc]
            self.attempt(f"seq_add to sequence {bad}", lambda bad=bad: c.memory.seq_add(bad, 0, -1, 1))  # type: ignore[misc]
            self.attempt(f"seq_pos_min of sequence {bad}", lambda bad=bad: c.memory.seq_pos_min(bad))  # type: ignore[misc]
            self.attempt(f"seq_pos_max of sequence {bad}", lambda bad=bad: c.memory.seq_pos_max(bad))  # type: ignore[misc]
            self.attempt(f"state_seq_get of sequence {bad}", lambda bad=bad: c.states.seq_get(bad))  # type: ignore[misc]
        self.attempt("seq_div", lambda: c.memory.seq_div(0, 0, -1, 0))  # type: ignore[attr-defined]
        c.decode(tokens(1, 0, 4))

    def _batches(self) -> None:
        c = self.open()
        one = tokens(1)
        self.attempt("decode of more than n_batch", lambda: c.decode(tokens(33)))
        self.attempt("decode of nothing", lambda: c.decode(Batch((), (), (), ())))
        self.attempt("decode without sequence", lambda: c.decode(Batch((1,), (0,), ((),), (True,))))
        self.attempt("decode of sequence 4", lambda: c.decode(Batch((1,), (0,), ((4,),), (True,))))
        self.attempt("decode of sequence 300", lambda: c.decode(Batch((1,), (0,), ((0, 300),), (True,))))
        self.attempt("decode at position -1", lambda: c.decode(Batch((1,), (-1,), ((0,),), (True,))))
        self.attempt("decode of an unknown token", lambda: c.decode(Batch((10**6,), (0,), ((0,),), (True,))))
        self.attempt("decode without positions", lambda: c.decode(Batch((1,), (), ((0,),), (True,))))
        self.attempt("decode behind a gap", lambda: (c.decode(one), c.decode(tokens(1, 0, 5))))
        write(self.folder / "ahead.gguf", "llama", more=lambda out: out.add_causal_attention(False))
        ahead = self.open("ahead")
        self.attempt("decode of more than n_ubatch, looking ahead", lambda: ahead.decode(tokens(9)))
        ahead.decode(tokens(8))
        learned = self.open("gpt2")
        self.attempt("decode at a position not learned", lambda: learned.decode(tokens(1, 0, N_POSITIONS)))
        learned.decode(tokens(1, 0, N_POSITIONS - 1))

    def _logits(self) -> None:
        c = self.open()
        sampler = Sampler(SamplingPlan(Sampling(temperature=0)), c.model.vocab)
        self.attempt("sample before any decode", lambda: c.sample(sampler))
        c.decode(tokens(4))
        self.attempt("sample an entry without logits", lambda: c.sample(sampler, 1))
        self.attempt("sample an entry that does not exist", lambda: c.sample(sampler, 31))
        self.attempt("logits of entry -5", lambda: c.logits(-5))
        c.sample(sampler)
        c.decode(tokens(2, 1, 0, output=False))
        self.attempt("sample after a decode without output", lambda: c.sample(sampler))
        c.decode(tokens(1, 0, 4))
        c.states.set(c.states.get())
        self.attempt("sample after a restored state", lambda: c.sample(sampler))
        c.decode(tokens(1, 0, 5))
        blob = c.states.seq_get(0)
        c.states.seq_set(2, blob)
        self.attempt("sample after a restored sequence", lambda: c.sample(sampler))

    def _states(self) -> None:
        c = self.open()
        c.decode(tokens(8))
        blob, seq_blob = bytes(c.states.get()), bytes(c.states.seq_get(0))
        for bad in (-1, 4, 256):
            self.attempt(f"state_seq_set into sequence {bad}", lambda bad=bad: c.states.seq_set(bad, seq_blob))  # type: ignore[misc]
        self.attempt("state_seq_set with another magic", lambda: c.states.seq_set(1, b"\0\0\0\0" + seq_blob[4:]))
        self.attempt("state_seq_set cut off", lambda: c.states.seq_set(1, seq_blob[:-7]))
        self.attempt("state_seq_set of nothing", lambda: c.states.seq_set(1, b""))
        self.attempt("state_set cut off", lambda: c.states.set(blob[:100]))
        self.attempt("state_set of another architecture", lambda: c.states.set(blob.replace(b"llama", b"lmama")))
        many = blob.replace(struct.pack("<iIi", 7, 1, 0), struct.pack("<iIi", 7, 1, 9))
        self.attempt("state_set with an unknown sequence", lambda: c.states.set(many))
        other = self.open(settings=Q8)
        self.attempt("state_set of another K type", lambda: other.states.set(blob))
        assert c.memory.totals()[0] == 8
        c.decode(tokens(1, 0, 8))

    def _copies(self) -> None:
        streams = self.open(settings=SMALL.model_copy(update={"kv_unified": False, "n_ctx": 1024}))
        streams.decode(tokens(8))
        self.attempt("partial seq_cp between streams", lambda: streams.memory.seq_cp(0, 1, 0, 4))
        self.attempt("partial seq_cp between streams, the end", lambda: streams.memory.seq_cp(0, 1, 3, -1))
        streams.memory.seq_cp(0, 1, 0, 8)
        streams.decode(tokens(1, 1, 8))
        for architecture in ("mamba2", "granitehybrid"):
            state = self.open(architecture)
            state.decode(tokens(8))
            self.attempt(f"partial seq_cp of {architecture}", lambda state=state: state.memory.seq_cp(0, 1, 0, 4))  # type: ignore[misc]
            state.decode(tokens(1, 0, 8))

    def _shifts(self) -> None:
        os.environ["LLAMA_ATTN_ROT_DISABLE"] = "1"
        unrotated = self.open(settings=Q8)
        del os.environ["LLAMA_ATTN_ROT_DISABLE"]
        write(self.folder / "no_rope.gguf", "granitehybrid", more=_without_rope)
        for row, c in (
            ("M-RoPE", self.open("qwen2vl")),
            ("K as bf16", self.open(settings=SMALL.model_copy(update={"type_k": CacheType.BF16}))),
            ("quantized K without rotation matrix", unrotated),
            ("quantized K, partly rotated", self.open("gptneox", Q8)),
            ("layers without RoPE", self.open("smollm3")),
            ("no layer with RoPE", self.open("no_rope")),
        ):
            c.decode(tokens(4))
            self.attempt(f"seq_add, {row}", lambda c=c: c.memory.seq_add(0, 0, -1, 2))  # type: ignore[misc]
            c.decode(tokens(1, 0, 4))
        state = self.open("mamba2")
        state.decode(tokens(4))
        state.memory.seq_add(0, 0, 2, -10)  # the state is at position 3: nothing moves
        self.attempt("seq_add below position 0, recurrent state", lambda: state.memory.seq_add(0, 0, -1, -10))
        state.decode(tokens(1, 0, 4))
        c = self.open()
        c.decode(tokens(4))
        self.attempt("seq_add beyond the largest position", lambda: c.memory.seq_add(0, 0, -1, 2**31 - 3))
        c.decode(tokens(1, 0, 4))

    def _creation(self) -> None:
        def settings(**changed: object) -> ContextSettings:
            return SMALL.model_copy(update=changed)

        self.attempt("more sequences than n_batch", lambda: self.open(settings=settings(n_batch=2)))
        self.attempt("more sequences than n_ctx", lambda: self.open(settings=settings(n_ctx=3)))
        quantized = settings(type_v=CacheType.Q8_0, flash_attn=False)
        self.attempt("quantized V without flash attention", lambda: self.open(settings=quantized))
        self.attempt("a type outside the list", lambda: ContextSettings.model_validate({"type_k": "i8"}))
        self.attempt("no sequences", lambda: self.open(settings=settings(n_seq_max=0)))


def _without_rope(out: object) -> None:
    out.add_rope_scaling_finetuned(False)  # type: ignore[attr-defined]


def kill(folder: Path, call: str) -> None:
    """Make one call of the table without a guard."""
    c = Table(folder).open(settings=SMALL.model_copy(update={"kv_unified": False, "n_ctx": 1024}))
    c.decode(tokens(4))
    memory = lib.llama_get_memory(c._ctx)
    if call == "seq_rm":
        lib.llama_memory_seq_rm(memory, 300, -1, -1)
    elif call == "seq_cp":
        lib.llama_memory_seq_cp(memory, 0, 1, 0, 2)
    elif call == "sample":
        Sampler(SamplingPlan(Sampling(temperature=1)), c.model.vocab).sample(c._ctx, 1)
    elif call == "shift":
        write(folder / "no_rope.gguf", "granitehybrid", more=_without_rope)
        c = Table(folder).open("no_rope")
        c.decode(tokens(4))
        lib.llama_memory_seq_add(lib.llama_get_memory(c._ctx), 0, 0, -1, 2)
        c.decode(tokens(1, 0, 6))
    elif call == "seq_div":
        lib.llama_memory_seq_div(memory, 0, 0, -1, 0)


if __name__ == "__main__":
    if len(sys.argv) > 2:
        kill(Path(sys.argv[1]), sys.argv[2])
    else:
        sys.stdout.write(json.dumps(Table(Path(sys.argv[1])).run()))
