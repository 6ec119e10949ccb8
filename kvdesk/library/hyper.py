"""The numbers of a model that decide the size of its memory, layer by layer, read from its header.

Owns how llama.cpp derives them (src/llama-model.cpp `load_hparams`, src/llama-hparams.cpp, src/models/*.cpp). Knows
nothing of contexts and bytes. Where an architecture has its own caches (sparse attention indexers, DeepSeek 4's
compressed ones) those are not counted.
"""

from kvdesk.cache.geometry import MAX_LAYERS
from kvdesk.library.architectures import HYBRID, INTERVAL_HYBRID, RECURRENT, WINDOWS, WITHOUT_ROPE, WITHOUT_WINDOWS
from kvdesk.library.gguf_header import GgufHeader
from kvdesk.values import dataclass

RWKV_TOKEN_SHIFTS = 2


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer. Widths are numbers per cell; 0 if the layer has no such memory."""

    n_head: int
    n_head_kv: int
    k_width: int
    v_width: int
    head_k: int
    head_v: int
    has_window: bool
    r_width: int  # recurrent: convolution state
    s_width: int  # recurrent: state
    n_ff: int


@dataclass(frozen=True, slots=True)
class Hyper:
    """The model."""

    architecture: str
    layers: tuple[Layer, ...]
    n_ctx_train: int
    n_vocab: int
    n_embd: int
    n_window: int  # tokens of a sliding window; 0: no windows
    n_expert_used: int  # 0: no experts
    d_inner: int  # of state-space layers
    has_rope: bool  # K and Q are rotated
    gated: bool  # the feed-forward has a gate beside its two matrices

    @property
    def n_heads(self) -> int:
        """Attention heads of all layers that have cells."""
        return sum(layer.n_head for layer in self.layers if layer.k_width)

    @property
    def n_head_numbers(self) -> int:
        """Numbers of K and V that all heads of all layers read of a visible cell."""
        return sum(layer.n_head * (layer.head_k + layer.head_v) for layer in self.layers if layer.k_width)


def read_hyper(header: GgufHeader) -> Hyper:
    """The numbers of the model in `header`."""
    n_layer = min(header.hyper("block_count"), MAX_LAYERS)
    n_embd = header.hyper("embedding_length")
    heads = header.per_layer("attention.head_count", n_layer)
    given = f"{header.architecture}.attention.head_count_kv" in header.metadata
    heads_kv = header.per_layer("attention.head_count_kv", n_layer) if given else heads
    head_size = n_embd // heads[0] if n_layer and heads[0] else 0
    k = header.hyper("attention.key_length", head_size) if head_size else 0
    v = header.hyper("attention.value_length", head_size) if head_size else 0
    k_window = header.hyper("attention.key_length_swa", k)
    v_window = header.hyper("attention.value_length_swa", v)
    only_k = header.hyper("attention.key_length_mla") != 0  # multi-head latent attention: V is a view of K
    expert_ff = header.hyper("expert_feed_forward_length")
    ff = header.per_layer("feed_forward_length", n_layer)
    experts = header.per_layer("expert_used_count", n_layer)
    n_window, windows = _windows(header, heads_kv)
    attends, recurs = _memories(header, heads_kv, ff)
    r, s = _recurrent_widths(header, n_embd, heads[0] if heads else 0, k)
    layers = tuple(
        Layer(
            n_head=heads[i],
            n_head_kv=heads_kv[i],
            k_width=(k_window if windows[i] else k) * heads_kv[i] if attends[i] else 0,
            v_width=(v_window if windows[i] else v) * heads_kv[i] if attends[i] and not only_k else 0,
            head_k=k_window if windows[i] else k,
            head_v=v_window if windows[i] else v,
            has_window=windows[i],
            r_width=r if recurs[i] else 0,
            s_width=s if recurs[i] else 0,
            n_ff=expert_ff or ff[i] if experts[i] else ff[i],
        )
        for i in range(n_layer)
    )
    return Hyper(
        architecture=header.architecture,
        layers=layers,
        n_ctx_train=header.hyper("context_length"),
        n_vocab=header.n_vocab,
        n_embd=n_embd,
        n_window=n_window,
        n_expert_used=max(experts, default=0),
        d_inner=header.hyper("ssm.inner_size"),
        has_rope=header.architecture not in WITHOUT_ROPE,
        gated=any(".ffn_gate" in tensor.name for tensor in header.tensors),
    )


def _windows(header: GgufHeader, heads_kv: tuple[int, ...]) -> tuple[int, tuple[bool, ...]]:
    """The sliding window in tokens, and which layers have it."""
    architecture, n_layer = header.architecture, len(heads_kv)
    none = (0, (False,) * n_layer)
    rule = WINDOWS.get(architecture)
    key = f"{architecture}.attention.sliding_window"
    n_window = header.integer(key, rule.default if rule else 0)
    pattern = header.metadata.get(f"{key}_pattern")
    if n_window <= 0 or architecture in WITHOUT_WINDOWS or (architecture == "exaone4" and n_layer != 64):
        return none
    if architecture == "llama4":
        n_window = 8192
    if architecture == "lfm2":
        return n_window, tuple(n > 0 for n in heads_kv)
    if isinstance(pattern, tuple):
        flags = tuple(bool(flag) for flag in pattern)[:n_layer]
        return n_window, flags + (False,) * (n_layer - len(flags))
    if rule is None and not isinstance(pattern, int):
        return none
    period = pattern if isinstance(pattern, int) else rule.pattern if rule else 0
    first = rule.dense_first if rule else False
    return n_window, tuple(
        not period or (i % period != 0 if first else i % period < period - 1) for i in range(n_layer)
    )


def _memories(
    header: GgufHeader, heads_kv: tuple[int, ...], ff: tuple[int, ...]
) -> tuple[tuple[bool, ...], tuple[bool, ...]]:
    """Which layers have cells of K and V, and which a recurrent state (llama-model.cpp, `create_memory`)."""
    architecture, n_layer = header.architecture, len(heads_kv)
    every, none = (True,) * n_layer, (False,) * n_layer
    if architecture in RECURRENT:
        return none, every
    if architecture == "falcon-h1":
        return every, every
    if architecture in ("nemotron_h", "nemotron_h_moe"):
        mixes = tuple(n == 0 for n in ff)
        recurs = tuple(n == 0 and mix for n, mix in zip(heads_kv, mixes, strict=True))
        return tuple(mix and not recurrent for mix, recurrent in zip(mixes, recurs, strict=True)), recurs
    if architecture in INTERVAL_HYBRID:
        given = header.metadata.get(f"{architecture}.attention.recurrent_layers")
        interval = header.hyper("full_attention_interval", 8 if architecture == "minimax-01" else 4) or 1
        n_trunk = n_layer - header.hyper("nextn_predict_layers")
        if isinstance(given, tuple):
            recurs = _flags(given, n_layer)
        else:
            recurs = tuple(i < n_trunk and (i + 1) % interval != 0 for i in range(n_layer))
        return tuple(i < n_trunk and not recurrent for i, recurrent in enumerate(recurs)), recurs
    if architecture in HYBRID:
        recurs = tuple(n == 0 for n in heads_kv)
        return tuple(not recurrent for recurrent in recurs), recurs
    if architecture == "gemma3n":
        return tuple(i < 20 for i in range(n_layer)), none
    shared = header.hyper("attention.shared_kv_layers") if architecture == "gemma4" else 0
    return tuple(i < n_layer - shared for i in range(n_layer)), none


def _flags(values: tuple[object, ...], n_layer: int) -> tuple[bool, ...]:
    """A flag per layer; layers that are not mentioned have none."""
    flags = tuple(bool(value) for value in values)[:n_layer]
    return flags + (False,) * (n_layer - len(flags))


def _recurrent_widths(header: GgufHeader, n_embd: int, n_head: int, head_size: int) -> tuple[int, int]:
    """Numbers of convolution state and of state per sequence and layer (`n_embd_r`, `n_embd_s`)."""
    conv = header.hyper("ssm.conv_kernel")
    if wkv := header.hyper("wkv.head_size"):
        return header.hyper("token_shift_count", RWKV_TOKEN_SHIFTS) * n_embd, n_embd * wkv
    if short := header.hyper("shortconv.l_cache"):
        return n_embd * (short - 1), 0
    if kda := header.hyper("kda.head_dim"):
        return 3 * (conv - 1 if conv > 0 else 3) * n_head * kda, kda * kda * n_head
    state, inner = header.hyper("ssm.state_size"), header.hyper("ssm.inner_size")
    r = (conv - 1 if conv > 0 else 0) * (inner + 2 * header.hyper("ssm.group_count") * state)
    if header.architecture == "minimax-01":
        return r, head_size * head_size * n_head
    return r, state * inner
