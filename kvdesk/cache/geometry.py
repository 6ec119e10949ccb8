"""The shape of a context's memory before it holds anything: its caches, their cells, their padding.

Owns the facts about a model that decide its memory class, and how the engine rounds requested numbers.
Must never know the engine: numbers come in, numbers go out. All `file:line` references are llama.cpp 0c1e57098.
"""

from typing import Literal

from kvdesk.errors import ContextError
from kvdesk.translation import marked, tr
from kvdesk.values import dataclass

MemoryKind = Literal[
    "attention", "msa", "dsa", "iswa", "dsa_iswa", "dsv4", "recurrent", "hybrid", "hybrid_iswa", "hybrid_idx", "unknown"
]
SwaType = Literal["none", "standard", "chunked", "symmetric"]

MAX_SEQ = 256  # LLAMA_MAX_SEQ, llama-cparams.h
MAX_LAYERS = 512  # LLAMA_MAX_LAYERS, llama-hparams.h
CTX_PAD = 256  # llama-context.cpp:295
COMPRESSED = (4, 128, 4)  # positions a row of DeepSeek V4's compressed caches (llama-kv-cache-dsv4.cpp:16)
_MROPE_TYPES = (8, 40)  # LLAMA_ROPE_TYPE_MROPE, _IMROPE: four positions per token (llama-hparams.cpp:285)
_MROPE_SECTIONS = 4

_NO_CACHE = (  # llama-model.cpp:2358: encoders and diffusion models, create_memory returns nullptr
    *("bert", "jina-bert-v2", "jina-bert-v3", "nomic-bert", "nomic-bert-moe", "neo-bert", "eurobert", "modern-bert"),
    *("wavtokenizer-dec", "gemma-embedding", "dream", "llada", "llada-moe", "rnd1"),
)
_OWN_CLASS: dict[str, MemoryKind] = {  # llama-model.cpp:2375ff
    "minimax-m3": "msa",
    "glm-dsa": "dsa",
    "deepseek32": "dsa",
    "hy_v4": "dsa",
    "dots3note": "dsa_iswa",
    "deepseek4": "dsv4",
    "glm5-next": "hybrid_idx",
    "qwen4exp": "hybrid_idx",
}
_OTHER_CLASS = {  # draft models, which have no cells without the model they draft for
    "dflash": marked("a cache shared with another context"),
    "eagle3": marked("a cache shared with another context"),
    "gemma4-assistant": marked("a cache shared with another context"),
}
_RECURRENT = ("recurrent", "hybrid", "hybrid_iswa", "hybrid_idx")
ROLLBACK = frozenset(  # llama-arch.cpp:1123, llm_arch_supports_rs_rollback
    """
    kimi-k3 qwen35 qwen35moe qwen4exp deepseek4 glm5-next nemotron_h nemotron_h_moe lfm2 lfm2moe bailingmoe3
    """.split()  # noqa: SIM905  # a line of quoted names otherwise
)
"""Architectures that keep earlier states of a sequence, if asked to (`n_rs_seq`)."""
_SWA_TYPES: dict[str, SwaType] = {"llama4": "chunked"}  # models/llama4.cpp:13; every other decoder is standard


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """The facts of a model that decide its memory.

    kind            memory class (llama-model.cpp, create_memory); "msa", "dsa" and "dsa_iswa": attention to cells
                    chosen by an indexer, whose keys have a cache with as many cells; "hybrid_idx": the indexer's keys
                    lie in the cells of attention; "dsv4": a window, and states and compressed keys by position;
                    "unknown" is not mirrored, and `reason` explains why
    n_swa           window in positions, 0 for none
    n_pos_per_embd  1, or 4 with M-RoPE
    can_shift       whether the memory accepts a K-shift at all (llama-kv-cache.cpp:1187); for a sliding-window
                    model `Geometry.can_shift` has the whole answer
    cell_ext        whether every cell in a state blob carries 12 more bytes (has_cell_ext, llama-kv-cache.cpp:1843)
    mla             multi-head latent attention: the cache has K only (hparams.is_mla)
    rollback        whether earlier states of a sequence can be kept (`n_rs_seq`)
    """

    architecture: str
    kind: MemoryKind
    n_swa: int = 0
    swa_type: SwaType = "none"
    n_pos_per_embd: int = 1
    can_shift: bool = True
    cell_ext: bool = False
    mla: bool = False
    rollback: bool = False
    reason: str = ""

    @property
    def has_state(self) -> bool:
        """Whether sequences have a state from which only the last tokens can be removed (`n_rs_seq`)."""
        return self.kind in (*_RECURRENT, "dsv4")

    @property
    def has_other_keys(self) -> bool:
        """Whether there are keys besides those of attention: an indexer's, or compressed ones."""
        return self.kind in ("msa", "dsa", "dsa_iswa", "hybrid_idx", "dsv4")


@dataclass(frozen=True, slots=True)
class ContextParams:
    """The parameters given to the engine (llama_context_params). `n_ctx` 0 means `n_ctx_train`."""

    n_ctx: int = 4096
    n_seq_max: int = 1
    n_batch: int = 2048
    n_ubatch: int = 512
    kv_unified: bool = False
    swa_full: bool = True
    flash_attn: bool = True
    n_ctx_train: int = 0
    embeddings: bool = False
    n_rs_seq: int = 0


@dataclass(frozen=True, slots=True)
class Geometry:
    """The memory the engine makes. Counts of cells are per stream.

    kv_unified: whether sequences are in one buffer; "dsv4" gives each one its own, whatever was asked for.

    n_cells     cells of the (base) attention cache, 0 without one
    n_window    cells of the window cache, 0 without one
    n_states    cells of the recurrent part (one state each), 0 without one
    n_rs_seq    earlier states that are kept of each sequence
    can_shift   llama_memory_can_shift: a window cache must be as large as the base (llama-kv-cache-iswa.cpp:246)
    """

    facts: ModelFacts
    n_ctx: int
    n_ctx_seq: int
    n_seq_max: int
    n_batch: int
    n_ubatch: int
    n_stream: int
    n_cells: int
    n_window: int
    n_states: int
    kv_unified: bool
    can_shift: bool
    v_trans: bool
    embeddings: bool = False
    n_rs_seq: int = 0

    @property
    def cache_sizes(self) -> tuple[int, ...]:
        """Cells of each attention cache, in the engine's order, without those that follow another one."""
        return tuple(n for n in (self.n_cells, self.n_cells * self.has_indexer, self.n_window) if n)

    @property
    def made_sizes(self) -> tuple[int, ...]:
        """Cells of each cache that the engine makes, in its order.

        An indexer that is in the cells of attention has as many (llama-memory-hybrid-idx.cpp:60). Compressed keys have
        a row for 4 positions, for 128, and for 4 (llama-kv-cache-dsv4.cpp:1290-1311).
        """
        if self.facts.kind == "hybrid_idx":
            return (*self.cache_sizes, self.n_cells)
        if self.facts.kind == "dsv4":
            return (*self.cache_sizes, *(pad(-(-self.n_cells // ratio), CTX_PAD) for ratio in COMPRESSED))
        return self.cache_sizes

    @property
    def reorders(self) -> bool:
        """Whether the cells of a saved state can be reordered, because no other bytes of it belong to them."""
        return self.made_sizes == self.cache_sizes

    @property
    def has_indexer(self) -> bool:
        """Whether the keys of an indexer have separate cells."""
        return self.facts.kind in ("msa", "dsa", "dsa_iswa")

    @property
    def has_attention(self) -> bool:
        return self.n_cells > 0

    @property
    def has_window(self) -> bool:
        return self.n_window > 0

    @property
    def has_recurrent(self) -> bool:
        return self.n_states > 0

    @property
    def has_state(self) -> bool:
        return self.facts.has_state

    @property
    def most_removable(self) -> int:
        """Most tokens of a batch that can be removed right after it, from the end of a sequence; if sequences have a
        state, the first token of the batch must stay.
        """
        return self.n_rs_seq if self.has_state else self.n_cells


def n_kv_of(size: int, high_water: int) -> int:
    """Cells that attention walks over in a stream of that size (get_n_kv, llama-kv-cache.cpp:1260)."""
    return min(size, max(CTX_PAD, pad(high_water, CTX_PAD)))


def pad(value: int, multiple: int) -> int:
    """GGML_PAD: `value` rounded up to a multiple."""
    return -(-value // multiple) * multiple


def model_facts(
    architecture: str,
    n_swa: int,
    is_recurrent: bool,
    is_hybrid: bool,
    rope_type: int,
    mla: bool = False,
    n_layer: int = 0,
    indexer: bool = True,
) -> ModelFacts:
    """Memory class of a model, from what llama_model_n_swa, _is_recurrent, _is_hybrid and _rope_type say.

    n_swa: of deepseek4 the metadata's `attention.sliding_window`: llama_model_n_swa says 0 (llama-model.cpp:2981).
    mla: whether the model's metadata has `<architecture>.attention.key_length_mla`. n_layer: needed for exaone4, of
    which only the model with 64 layers has a window cache, whatever its metadata says (models/exaone4.cpp:4). indexer:
    whether the metadata has `<architecture>.attention.indexer.top_k`; without it hy_v4 has a plain cache.
    """
    mrope = rope_type in _MROPE_TYPES
    windowed = n_swa > 0 and not (architecture == "exaone4" and n_layer not in (0, 64))
    swa_type: SwaType = _SWA_TYPES.get(architecture, "standard") if windowed else "none"
    kind: MemoryKind
    reason = ""
    if architecture in _NO_CACHE:
        kind, reason = "unknown", tr("{architecture} models have no KV cache").format(architecture=architecture)
    elif architecture in _OTHER_CLASS:
        kind, reason = (
            "unknown",
            tr("{architecture} uses {other_class}, which kvdesk does not mirror").format(
                architecture=architecture, other_class=tr(_OTHER_CLASS[architecture])
            ),
        )
    elif architecture in _OWN_CLASS and (indexer or architecture != "hy_v4"):
        kind = _OWN_CLASS[architecture]
    elif is_recurrent:
        kind = "recurrent"
    elif is_hybrid:
        kind = "hybrid_iswa" if windowed else "hybrid"
    else:
        kind = "iswa" if windowed else "attention"
    return ModelFacts(
        architecture=architecture,
        kind=kind,
        n_swa=n_swa,
        swa_type=swa_type,
        n_pos_per_embd=_MROPE_SECTIONS if mrope else 1,
        can_shift=not mrope and architecture not in ("step35", "deepseek4"),  # llama-kv-cache-dsv4.cpp:1447
        cell_ext=mrope,
        mla=mla or kind == "dsv4",
        rollback=architecture in ROLLBACK,
        reason=reason,
    )


def context_sizes(n_ctx: int, n_seq_max: int, kv_unified: bool) -> tuple[int, int]:
    """(n_ctx, n_ctx_seq) as the engine rounds them (llama-context.cpp:293-311)."""
    n_ctx = pad(n_ctx, CTX_PAD)
    if kv_unified:
        return n_ctx, n_ctx
    n_ctx_seq = pad(n_ctx // n_seq_max, CTX_PAD)
    return n_ctx_seq * n_seq_max, n_ctx_seq


def window_cells(n_cells: int, n_swa: int, n_seq_max: int, n_ubatch: int, kv_unified: bool, swa_full: bool) -> int:
    """Cells of the window cache per stream (llama-kv-cache-iswa.cpp:64-75)."""
    if swa_full:
        return n_cells
    return pad(min(n_cells, n_swa * (n_seq_max if kv_unified else 1) + n_ubatch), CTX_PAD)


def plan(facts: ModelFacts, params: ContextParams) -> Geometry:
    """The memory that the engine will make for these parameters. Read-only.

    Raises ContextError if the engine would refuse or abort: no size known, no sequences, more sequences than tokens
    in a batch.
    """
    asked = params.n_ctx or params.n_ctx_train
    if asked <= 0:
        raise ContextError(tr("The context size is 0 and the model does not say how long it was trained."))
    if not 1 <= params.n_seq_max <= MAX_SEQ:
        raise ContextError(
            tr("The number of sequences must be between 1 and {max_seq}, not {n_seq_max}.").format(
                max_seq=MAX_SEQ, n_seq_max=params.n_seq_max
            )
        )
    n_batch = min(asked, params.n_batch)
    n_ubatch = min(n_batch, params.n_ubatch or params.n_batch)
    if n_batch < params.n_seq_max:
        raise ContextError(
            tr("A batch of {n_batch} tokens is too small for {n_seq_max} sequences.").format(
                n_batch=n_batch, n_seq_max=params.n_seq_max
            )
        )
    n_ctx, n_ctx_seq = context_sizes(asked, params.n_seq_max, params.kv_unified)
    unified = params.kv_unified if facts.kind != "dsv4" else params.n_seq_max == 1
    n_window = 0
    if facts.kind in ("iswa", "dsa_iswa", "dsv4", "hybrid_iswa"):
        n_window = window_cells(n_ctx_seq, facts.n_swa, params.n_seq_max, n_ubatch, unified, params.swa_full)
    return Geometry(
        facts=facts,
        n_ctx=n_ctx,
        n_ctx_seq=n_ctx_seq,
        n_seq_max=params.n_seq_max,
        n_batch=n_batch,
        n_ubatch=n_ubatch,
        n_stream=1 if unified else params.n_seq_max,
        n_cells=n_ctx_seq if facts.kind not in ("recurrent", "unknown") else 0,
        n_window=n_window,
        n_states=params.n_seq_max if facts.kind in _RECURRENT else 0,
        kv_unified=unified,
        can_shift=facts.can_shift and n_window in (0, n_ctx_seq),
        v_trans=not params.flash_attn,
        embeddings=params.embeddings,
        n_rs_seq=max(0, min(params.n_rs_seq, n_ubatch - 2)) if facts.rollback else 0,  # llama-batch.cpp:641 asserts it
    )
