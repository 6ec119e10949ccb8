"""Decides which operations a context allows: facts of its model, its settings, and what the engine made of both.

Owns facts that no llama.cpp function returns and that come from metadata or the engine's log. Plain values; must never
call the engine. All `file:line` references are llama.cpp 0c1e57098.
"""

import re
from collections.abc import Callable, Iterable

from kvdesk.cache.creation import Creation, parse_creation
from kvdesk.cache.geometry import Geometry
from kvdesk.settings import CacheType, ContextSettings
from kvdesk.values import dataclass

FLOAT_TYPES = frozenset({CacheType.F32, CacheType.F16, CacheType.BF16})

_LEARNED_POSITIONS = ("gpt2", "starcoder", "mpt")  # tensor position_embd of n_ctx_train rows (models/gpt2.cpp:19)
_SOME_LAYERS_ROPE = (  # layers without RoPE, which the K-shift would rotate anyway (llama-kv-cache.cpp:2032)
    *("afmoe", "cohere2", "cohere2moe", "exaone-moe", "exaone4", "granite_swa", "llama4", "maple", "muse-glimmer"),
    *("smallthinker", "smollm3"),
)
_OPTIONAL_ROPE = ("granite", "granitehybrid", "graniteswitch", "granitemoe")  # rope.scaling.finetuned, granite.cpp:37
_ONE_SET_PER_UBATCH = ("plamo2",)  # whose states are written `kv_head * n_seqs` cells too far (models/plamo2.cpp:397)
_ONE_OWNER_PER_TOKEN = (
    "minimax-01",  # decays written by n_seqs_unq into room for n_seqs (models/minimax-01.cpp:117)
    "qwen4exp",  # an assertion where tokens have embeddings by what came before (models/qwen4exp.cpp:1098)
    "deepseek4",  # an exception where its sequences have not as many tokens each (llama-kv-cache-dsv4.cpp:105)
)
_NO_GAPS = ("qwen4exp",)  # blocks of positions in as many cells: an assertion (llama-memory-hybrid-idx.cpp:518)
_ROPE_NONE = -1
_ROTATION = re.compile(r"llama_kv_cache: attn_rot_([kv]) = (\d), n_embd_head_k_all = (-?\d+)")
_SMALLEST_ROTATION = 64

Meta = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class ModelTraits:
    """Facts from the model's metadata.

    causal        False: attention also looks ahead, so a batch must be one ubatch
    n_positions   number of learned positions, 0 if positions are not learned
    has_rope      whether K is rotated by position
    mixed_rope    some layers are rotated and some are not
    n_rot         numbers per head that are rotated, 0: all of them
    together      whether tokens of different sequences can be in one batch
    shared        whether a token of a batch can belong to several sequences
    gaps          whether a sequence's positions can begin after 0, and with M-RoPE have gaps
    """

    causal: bool = True
    n_positions: int = 0
    has_rope: bool = True
    mixed_rope: bool = False
    n_rot: tuple[int, ...] = ()
    together: bool = True
    shared: bool = True
    gaps: bool = True


@dataclass(frozen=True, slots=True)
class Traits:
    """Everything that a guard or a capability depends on.

    creation   the caches the engine made; head_k: size of a K head in each cache, -1 if layers differ
    rotated_k  for each cache, how many numbers of K are rotated together before they are stored, 0: none are
               (attn_rot_k; `kvdesk.library.ggml_rows.rotate`); rotated_v: the same for V
    """

    model: ModelTraits
    geometry: Geometry
    settings: ContextSettings
    n_vocab: int
    creation: Creation
    head_k: tuple[int, ...] = ()
    rotated_k: tuple[int, ...] = ()
    rotated_v: tuple[int, ...] = ()

    @property
    def rotation(self) -> bool:
        """Whether every cache rotates K before storing it."""
        return bool(self.rotated_k) and all(self.rotated_k)

    @property
    def quantized_k(self) -> bool:
        return self.settings.type_k not in FLOAT_TYPES

    @property
    def whole_head_rotates(self) -> bool:
        """Whether RoPE turns all numbers of a K head in every layer."""
        return all(n_rot == head for n_rot in self.model.n_rot for head in self.head_k)


def model_traits(architecture: str, rope_type: int, n_ctx_train: int, meta: Meta) -> ModelTraits:
    """`meta` gives a metadata value by key as text, "" if missing."""
    rotated = (meta(f"{architecture}.rope.dimension_count{suffix}") for suffix in ("", "_swa"))
    finetuned = meta(f"{architecture}.rope.scaling.finetuned")
    learned = architecture in _LEARNED_POSITIONS
    return ModelTraits(
        causal=meta(f"{architecture}.attention.causal") != "false",
        n_positions=n_ctx_train if learned else 0,
        has_rope=rope_type != _ROPE_NONE and not (architecture in _OPTIONAL_ROPE and finetuned == "false"),
        mixed_rope=architecture in _SOME_LAYERS_ROPE,
        n_rot=tuple(int(n) for n in rotated if n.isdigit()),
        together=architecture not in _ONE_SET_PER_UBATCH,
        shared=architecture not in _ONE_OWNER_PER_TOKEN,
        gaps=architecture not in _NO_GAPS,
    )


def context_traits(
    model: ModelTraits, geometry: Geometry, settings: ContextSettings, n_vocab: int, said: Iterable[str]
) -> Traits:
    """`said`: the engine's log messages while it made the context. Graphs of hybrid memories with windows leave the
    rotation out that it announces (llama-graph.cpp:3655, `build_inp_mem_hybrid_iswa`).
    """
    lines, rotates = list(said), geometry.facts.kind != "hybrid_iswa"
    found = [match.groups() for line in lines if (match := _ROTATION.match(line))]
    of_k = [(rotates and on == "1", int(head)) for part, on, head in found if part == "k"]
    return Traits(
        model=model,
        geometry=geometry,
        settings=settings,
        n_vocab=n_vocab,
        creation=parse_creation(lines),
        head_k=tuple(head for _, head in of_k),
        rotated_k=tuple(_largest_rotation(head) if on else 0 for on, head in of_k),
        rotated_v=tuple(_SMALLEST_ROTATION * (rotates and on == "1") for part, on, _ in found if part == "v"),
    )


def _largest_rotation(head: int) -> int:
    """For K; V always has the smallest (llama-kv-cache.cpp, `build_input_k_rot`, `build_input_v_rot`)."""
    size = _SMALLEST_ROTATION
    while head > 0 and head % (2 * size) == 0:
        size *= 2
    return size
