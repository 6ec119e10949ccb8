"""What is known of a model file before it is opened: facts of its header, whether it fits, and how fast it should be.

Reads headers only. Must never know the engine and Qt.
"""

import re
from collections import Counter
from collections.abc import Iterable

from kvdesk.errors import ContextError, KvdeskError
from kvdesk.library.estimate import estimate, largest_n_ctx
from kvdesk.library.find import FoundModel
from kvdesk.library.gguf_header import GgufHeader, Tensor, read_any_header, read_header
from kvdesk.library.hyper import read_hyper
from kvdesk.paths import model_name
from kvdesk.settings import CacheType, ContextSettings
from kvdesk.values import dataclass

ENOUGH = 4096
"""Tokens of context that is wanted at least; less is offered if there is no memory for more."""
KV_TYPES = (CacheType.F16, CacheType.Q8_0, CacheType.Q4_0)
"""Types of K and V that are tried, the best first. q8_0 changes answers about as much as rounding alone does
(docs/questions/kv-types.md)."""
_EXPERTS = re.compile(r"\.ffn_(gate_up|gate|up|down)_exps\.")


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """A found model. Texts are "" and numbers 0 if the file does not say.

    quantization    the type that most bytes of its weights have, such as "Q4_K"
    n_layer         layers; bytes_a_token: of weights that one token reads, of several experts those that are used
    problem         "" or, in a sentence, why it cannot be opened
    """

    found: FoundModel
    title: str
    architecture: str = ""
    quantization: str = ""
    n_params: int = 0
    n_ctx_train: int = 0
    n_layer: int = 0
    bytes_a_token: int = 0
    licence: str = ""
    problem: str = ""
    name_in_file: str = ""


@dataclass(frozen=True, slots=True)
class Fit:
    """The largest context for which there is memory.

    n_ctx          0: the weights alone do not fit
    cache_type     of K and V
    needed_bytes   weights, cache and buffers with it; with n_ctx 0 those of the least context
    """

    n_ctx: int
    cache_type: CacheType
    needed_bytes: int

    @property
    def fits(self) -> bool:
        return self.n_ctx > 0


def facts_of(found: FoundModel) -> ModelFacts:
    """Read the header. What is wrong with the file is reported in `problem`."""
    try:
        header = read_header(found.path)
        tensors = _tensors(header)
    except KvdeskError as error:
        return ModelFacts(found, model_name(found.path), problem=str(error))
    hyper = read_hyper(header)
    return ModelFacts(
        found=found,
        title=model_name(found.path, _title(header)),
        name_in_file=_title(header),
        architecture=header.architecture,
        quantization=_quantization(tensors),
        n_params=sum(_size(tensor) for tensor in tensors),
        n_ctx_train=hyper.n_ctx_train,
        n_layer=len(hyper.layers),
        bytes_a_token=_bytes_a_token(header, tensors),
        licence=header.text("general.license") or header.text("general.license.name"),
    )


def fit_of(found: FoundModel, settings: ContextSettings, available: int) -> Fit:
    """The best context in `available` bytes: the first type of `KV_TYPES` with room for `ENOUGH` tokens (or all that
    the model was trained for), else the one with the largest. n_ctx at most what the model was trained for.

    Raises ModelFileError.
    """
    header = read_header(found.path)
    trained = read_hyper(header).n_ctx_train or ENOUGH
    best = Fit(0, KV_TYPES[0], 0)
    for cache_type in KV_TYPES:
        wanted = settings.model_copy(update={"type_k": cache_type, "type_v": cache_type})
        if cache_type is not CacheType.F16:
            wanted = wanted.model_copy(update={"flash_attn": True})
        try:
            n_ctx = min(largest_n_ctx(header, wanted, available), trained)
            shown = wanted.model_copy(update={"n_ctx": n_ctx or min(256, trained)})
            needed = estimate(header, shown).total
        except ContextError:
            continue  # a type that this model does not take
        if n_ctx > best.n_ctx or not best.needed_bytes:
            best = Fit(n_ctx, cache_type, needed)
        if n_ctx >= min(ENOUGH, trained):
            break
    return best


def expected_tok_s(facts: ModelFacts, bytes_s: float, layer_s: float) -> float:
    """Tokens a second written at the beginning of a context, 0 if nothing is known.

    A token reads all weights that it needs once, at `bytes_s` bytes a second, and each layer costs `layer_s` seconds
    whatever its size: threads wait for each other at every operation.
    """
    if not (facts.bytes_a_token and bytes_s):
        return 0.0
    return 1 / (facts.bytes_a_token / bytes_s + facts.n_layer * layer_s)


def layer_seconds(facts: ModelFacts, bytes_s: float, measured_tok_s: float) -> float:
    """What a layer costs beside the reading of its weights, in a model whose speed was measured. Never below 0."""
    if not (facts.n_layer and bytes_s and measured_tok_s):
        return 0.0
    return max(0.0, (1 / measured_tok_s - facts.bytes_a_token / bytes_s) / facts.n_layer)


def _tensors(header: GgufHeader) -> tuple[Tensor, ...]:
    """Of all files of a split model. Raises ModelFileError."""
    others = [read_any_header(path) for path in header.split_paths if path != header.path]
    return tuple(tensor for part in (header, *others) for tensor in part.tensors)


def _title(header: GgufHeader) -> str:
    name = " ".join(header.text("general.name").split())
    return "" if name.lower() in ("n/a", "model", "unknown") else name


def _quantization(tensors: Iterable[Tensor]) -> str:
    sizes: Counter[str] = Counter()
    for tensor in tensors:
        sizes[tensor.kind.name.upper()] += tensor.n_bytes
    return sizes.most_common(1)[0][0] if sizes else ""


def _bytes_a_token(header: GgufHeader, tensors: tuple[Tensor, ...]) -> int:
    """Of the embedding one row is read, but the whole where it is the output matrix too (llama-model.cpp, `output`)."""
    names = {tensor.name for tensor in tensors}
    used, n = header.hyper("expert_used_count"), header.hyper("expert_count")
    share = used / n if 0 < used < n else 1.0
    total = 0.0
    for tensor in tensors:
        if tensor.name == "token_embd.weight" and "output.weight" in names:
            continue
        total += tensor.n_bytes * (share if _EXPERTS.search(tensor.name) else 1.0)
    return round(total)


def _size(tensor: Tensor) -> int:
    n = 1
    for length in tensor.shape:
        n *= length
    return n
