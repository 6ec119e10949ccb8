"""How much memory a model and a context will take, before anything is allocated.

Owns the arithmetic of llama.cpp's allocations: exact for K, V and recurrent state (src/llama-kv-cache.cpp,
src/llama-kv-cache-iswa.cpp, src/llama-memory-recurrent.cpp), a model of the largest moment for compute buffers.
Allocates nothing, and never asks the engine.
"""

import psutil

from kvdesk import control_groups
from kvdesk.cache.geometry import CTX_PAD, ROLLBACK, context_sizes, window_cells
from kvdesk.errors import ContextError
from kvdesk.library.ggml_types import BY_NAME
from kvdesk.library.gguf_header import GgufHeader, read_any_header
from kvdesk.library.hyper import Hyper, Layer, read_hyper
from kvdesk.quantities import size_text
from kvdesk.settings import CacheType, ContextSettings
from kvdesk.translation import tr
from kvdesk.values import dataclass

F32 = 4  # bytes


@dataclass(frozen=True, slots=True)
class Geometry:
    """The sizes llama.cpp makes of the settings (llama-context.cpp, constructor)."""

    n_ctx_seq: int  # cells of one stream
    n_stream: int
    n_window_cells: int  # cells of one stream of the window cache
    n_ubatch: int
    n_seq_max: int
    n_states: int  # recurrent ones, earlier ones of a sequence included
    n_earlier: int  # earlier ones of each sequence


@dataclass(frozen=True, slots=True)
class Estimate:
    """Bytes. Weights are mapped from the file: they are memory that must be there for speed."""

    n_ctx: int  # cells, all streams together
    n_earlier: int  # earlier states of each sequence, a part of `r` and `s`
    weights: int
    k: int
    v: int
    r: int
    s: int
    compute: int
    output: int

    @property
    def earlier(self) -> int:
        """Of all earlier states."""
        return (self.r + self.s) * self.n_earlier // (1 + self.n_earlier)

    @property
    def context(self) -> int:
        """All that a context adds to the loaded model."""
        return self.k + self.v + self.r + self.s + self.compute + self.output

    @property
    def total(self) -> int:
        return self.weights + self.context


def estimate(header: GgufHeader, settings: ContextSettings) -> Estimate:
    """What the model of `header` needs with `settings`. Raises ModelFileError when one of its files is damaged."""
    return _estimate(read_hyper(header), weights_bytes(header), settings)


def weights_bytes(header: GgufHeader) -> int:
    """Bytes of all tensors, those in the other files of a split model included. Raises ModelFileError."""
    others = [read_any_header(path) for path in header.split_paths if path != header.path]
    return sum(tensor.n_bytes for part in (header, *others) for tensor in part.tensors)


def available_bytes() -> int:
    """Memory a program can have now without swapping; in a container or a service, what is left of its limit."""
    available = int(psutil.virtual_memory().available)
    return max(0, min([available, *(left for _, left in control_groups.memory_limits())]))


def total_bytes() -> int:
    """Memory of the machine; in a container or a service, its limit."""
    return min([int(psutil.virtual_memory().total), *(limit for limit, _ in control_groups.memory_limits())])


def check_fits(
    header: GgufHeader, settings: ContextSettings, available: int | None = None, loaded: bool = False
) -> Estimate:
    """The estimate, when it fits in `available` bytes (None asks the machine); `loaded` leaves the weights out.

    Raises ContextError, which names needed and available memory and the largest context that fits, or the settings
    that llama.cpp would not accept for this model.
    """
    hyper, weights = read_hyper(header), 0 if loaded else weights_bytes(header)
    _check_types(hyper, settings)
    have = available_bytes() if available is None else available
    needed = _estimate(hyper, weights, settings)
    if needed.total <= have:
        return needed
    raise ContextError(
        tr("A context of {n_ctx:,} cells needs {gb} with this model, and {gb2} are free. ").format(
            n_ctx=needed.n_ctx, gb=size_text(needed.total), gb2=size_text(have)
        )
        + _advice(hyper, weights, settings, have),
        repr(needed),
    )


def largest_n_ctx(header: GgufHeader, settings: ContextSettings, available: int) -> int:
    """The largest n_ctx, a multiple of 256, that fits in `available` bytes; 0 when none does."""
    return _largest(read_hyper(header), weights_bytes(header), settings, available)


# --- the arithmetic -------------------------------------------------------------------------------------------------


def geometry(hyper: Hyper, settings: ContextSettings) -> Geometry:
    """What llama.cpp makes of the settings."""
    unified, n_seq_max = settings.kv_unified, settings.n_seq_max
    asked = settings.n_ctx or hyper.n_ctx_train or CTX_PAD
    _, n_ctx_seq = context_sizes(asked, n_seq_max, unified)
    n_ubatch = min(settings.graph_tokens, settings.n_batch, asked)
    earlier = max(0, min(settings.n_rs_seq, n_ubatch - 2)) if hyper.architecture in ROLLBACK else 0
    unified = unified and hyper.architecture != "deepseek4"  # llama-kv-cache-dsv4.cpp:1244
    return Geometry(
        n_ctx_seq=n_ctx_seq,
        n_stream=1 if unified else n_seq_max,
        n_window_cells=window_cells(n_ctx_seq, hyper.n_window, n_seq_max, n_ubatch, unified, settings.whole_window),
        n_ubatch=n_ubatch,
        n_seq_max=settings.n_seq_max,
        n_states=settings.n_seq_max * (1 + earlier),
        n_earlier=earlier,
    )


def _estimate(hyper: Hyper, weights: int, settings: ContextSettings) -> Estimate:
    shape = geometry(hyper, settings)
    type_k, type_v = BY_NAME[settings.type_k.value], BY_NAME[settings.type_v.value]
    widest_v = max((layer.v_width for layer in hyper.layers), default=0)  # V is transposed without flash attention
    k = v = 0
    for layer in hyper.layers:
        cells = (shape.n_window_cells if layer.has_window else shape.n_ctx_seq) * shape.n_stream
        v_width = layer.v_width if settings.flash_attn or not layer.v_width else widest_v
        k += type_k.row_bytes(layer.k_width) * cells
        v += type_v.row_bytes(v_width) * cells
    return Estimate(
        n_ctx=shape.n_ctx_seq * shape.n_stream,
        n_earlier=shape.n_earlier,
        weights=weights,
        k=k,
        v=v,
        r=sum(layer.r_width for layer in hyper.layers) * shape.n_states * F32,
        s=sum(layer.s_width for layer in hyper.layers) * shape.n_states * F32,
        compute=_compute(hyper, shape, settings.flash_attn, rotates=type_k.block > 1 or type_v.block > 1),
        output=hyper.n_vocab * shape.n_seq_max * F32,
    )


def _compute(hyper: Hyper, shape: Geometry, flash_attn: bool, rotates: bool) -> int:
    """Bytes alive at the largest moment of a graph of n_ubatch tokens, read off the graphs of src/models.

    The moments are attention and feed-forward of every layer, and the logits, which llama.cpp reserves for all tokens
    of the ubatch. A mask lives until the last layer that uses it. Quantized K is rotated (Hadamard) before it is
    stored, which takes a copy.
    """
    n, stream = shape.n_ubatch * F32, hyper.n_embd
    moments = [(hyper.n_vocab + 2 * stream) * n]
    mask_size = 2 if flash_attn else F32
    masks = {True: shape.n_window_cells, False: shape.n_ctx_seq}
    used_later: set[bool] = set()
    for layer in reversed(hyper.layers):
        masks_after = sum(masks[window] for window in used_later) * shape.n_ubatch * mask_size
        if layer.k_width:
            used_later.add(layer.has_window)
        masks_now = sum(masks[window] for window in used_later) * shape.n_ubatch * mask_size
        moments.append(masks_after + _feed_forward(hyper, layer) * n)
        if layer.k_width:
            q = layer.n_head * layer.head_k
            scores = 0 if flash_attn else layer.n_head * masks[layer.has_window]
            k = layer.k_width * (2 if hyper.has_rope or rotates else 1)
            moments.append(masks_now + (2 * stream + 2 * q + k + layer.v_width + scores) * n)
        if layer.r_width:
            states = (layer.r_width + layer.s_width) * shape.n_states * F32
            moments.append(masks_now + states + (stream + 6 * (hyper.d_inner or stream)) * n)
    return max(moments)


def _feed_forward(hyper: Hyper, layer: Layer) -> int:
    if hyper.n_expert_used:
        return 2 * hyper.n_embd + 2 * hyper.n_expert_used * (layer.n_ff + hyper.n_embd)
    return 3 * hyper.n_embd + (3 if hyper.gated else 2) * layer.n_ff


# --- refusals -------------------------------------------------------------------------------------------------------


def _check_types(hyper: Hyper, settings: ContextSettings) -> None:
    """Refuse what `llama_init_from_model` would refuse, and what would not be exact, with the reason."""
    if settings.exact and not settings.flash_attn and any(layer.k_width for layer in hyper.layers):
        raise ContextError(tr("Exact answers need flash attention: without it, sums depend on where cells lie."))
    if BY_NAME[settings.type_v.value].block > 1 and not settings.flash_attn:
        raise ContextError(tr("V of type {type_v} needs flash attention.").format(type_v=settings.type_v))
    if not settings.flash_attn:
        return
    for name, kind, sizes in (
        ("K", settings.type_k, {layer.head_k for layer in hyper.layers if layer.k_width}),
        ("V", settings.type_v, {layer.head_v for layer in hyper.layers if layer.v_width}),
    ):
        block = BY_NAME[kind.value].block
        if any(size % block for size in sizes):
            raise ContextError(
                tr("{name} of type {kind} needs heads of a multiple of {block} numbers; this model's differ.").format(
                    name=name, kind=kind, block=block
                )
            )


def _advice(hyper: Hyper, weights: int, settings: ContextSettings, have: int) -> str:
    largest = _largest(hyper, weights, settings, have)
    small = settings.model_copy(update={"type_k": CacheType.Q8_0, "type_v": CacheType.Q8_0, "flash_attn": True})
    try:
        _check_types(hyper, small)
        smaller = _largest(hyper, weights, small, have)
    except ContextError:
        smaller = 0
    if not largest and not smaller:
        return tr("Not even the smallest context fits: close other programs, or use a smaller model.")
    if not largest:
        return tr("With K and V as q8_0, {smaller:,} cells fit.").format(smaller=smaller)
    more = tr(" With K and V as q8_0, {smaller:,} do.").format(smaller=smaller) if smaller > largest else ""
    return tr("The largest that fits has {largest:,} cells.{more}").format(largest=largest, more=more)


def _largest(hyper: Hyper, weights: int, settings: ContextSettings, available: int) -> int:
    low, high = 0, (1 << 20) // CTX_PAD
    while low < high:
        middle = (low + high + 1) // 2
        tried = settings.model_copy(update={"n_ctx": middle * CTX_PAD})
        if _estimate(hyper, weights, tried).total <= available:
            low = middle
        else:
            high = middle - 1
    return low * CTX_PAD
