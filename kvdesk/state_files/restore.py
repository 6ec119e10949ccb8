"""Whether llama.cpp would restore a file into a context of a model, or why not. Asks header and file; no engine.

Owns the checks that the engine makes while it restores (llama-kv-cache.cpp:2139-2640, llama-memory-recurrent.cpp:847-
1229, and llama-server's of the tokens). The context is empty otherwise.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from kvdesk.cache.geometry import ContextParams, Geometry, MemoryKind, ModelFacts, model_facts, plan
from kvdesk.errors import ContextError
from kvdesk.library.architectures import HYBRID, INTERVAL_HYBRID, RECURRENT
from kvdesk.library.fingerprint import fingerprint
from kvdesk.library.ggml_types import BY_NAME, GgmlType
from kvdesk.library.gguf_header import GgufHeader
from kvdesk.library.hyper import Hyper, Layer, read_hyper
from kvdesk.settings import ContextSettings
from kvdesk.state_files.found import Fit, Numbers, StateFile, Stream
from kvdesk.translation import marked, plural, tr

_MROPE, _OTHER_ROPE = 8, 0
_MEMORY: Final[dict[MemoryKind, str]] = {
    "attention": marked("attention without a window"),
    "iswa": marked("attention and sliding windows"),
    "recurrent": marked("recurrent states"),
    "hybrid": marked("attention and recurrent states"),
    "hybrid_iswa": marked("attention, sliding windows and recurrent states"),
}
_BEGINS: Final = {("attention", "iswa"), ("attention", "hybrid"), ("attention", "hybrid_iswa"), ("iswa", "hybrid_iswa")}
"""Memory whose saved state begins as that of the other one."""
_NAMES: Final = (marked("the cache"), marked("the window cache"))


def judge(file: StateFile, header: GgufHeader, settings: ContextSettings) -> Fit:
    """Whether the file can be restored into a context of the model with these settings."""
    hyper = read_hyper(header)
    facts = _facts(header, hyper)
    asked = ContextParams(
        n_ctx=settings.n_ctx,
        n_seq_max=settings.n_seq_max,
        n_batch=settings.n_batch,
        n_ubatch=settings.n_ubatch,
        kv_unified=settings.kv_unified,
        swa_full=settings.whole_window,
        flash_attn=settings.flash_attn,
        n_ctx_train=hyper.n_ctx_train,
    )
    try:
        geometry = plan(facts, asked)
    except ContextError as error:
        return Fit(False, (str(error),), (), "")
    context = _context(geometry, settings)
    if file.problem:
        return Fit(False, (file.problem,), (), context)
    if facts.has_other_keys or facts.kind == "unknown":
        why = facts.reason or tr("the cache has keys of an indexer, or compressed ones, whose size it does not know")
        return Fit(None, (tr("kvdesk cannot tell: {why}.").format(why=why),), (), context)
    if file.made_by is not None and "kept_as" in file.made_by:
        return Fit(
            None, (tr("It is a document kept as q8_0, which kvdesk converts before it restores it."),), (), context
        )
    reasons = [*_of_model(file, header, facts), *_of_kvdesk(file, header, settings)]
    if not reasons:
        reasons = [*_of_memory(file, geometry, hyper, settings), *_of_tokens(file, geometry, hyper)]
    notes = () if reasons else tuple(_notes(file, facts, geometry))
    return Fit(not reasons, tuple(dict.fromkeys(reasons)), notes, context)


def _facts(header: GgufHeader, hyper: Hyper) -> ModelFacts:
    architecture = header.architecture
    sections = header.metadata.get(f"{architecture}.rope.dimension_sections")
    recurs = any(layer.r_width or layer.s_width for layer in hyper.layers)
    return model_facts(
        architecture=architecture,
        n_swa=hyper.n_window,
        is_recurrent=architecture in RECURRENT,
        is_hybrid=architecture not in RECURRENT and (recurs or architecture in HYBRID | INTERVAL_HYBRID),
        rope_type=_MROPE if isinstance(sections, tuple) and any(sections) else _OTHER_ROPE,
        mla=header.hyper("attention.key_length_mla") != 0,
        n_layer=len(hyper.layers),
        indexer=header.hyper("attention.indexer.top_k") != 0,
    )


def _context(geometry: Geometry, settings: ContextSettings) -> str:
    """The context in words."""
    return tr("{n:,} cells, {streams}, K {k}, V {v}, flash attention {flash}").format(
        n=geometry.n_ctx,
        streams=_streams(geometry.n_stream),
        k=settings.type_k.value,
        v=settings.type_v.value,
        flash=tr("on") if settings.flash_attn else tr("off"),
    )


def _streams(n: int) -> str:
    return plural("1 stream", "%n streams", n)


def _of_model(file: StateFile, header: GgufHeader, facts: ModelFacts) -> Iterator[str]:
    if file.architecture and file.architecture != header.architecture:
        yield tr("It is from a {architecture} model, and this one is {other}.").format(
            architecture=file.architecture, other=header.architecture
        )
    kind = _kind(file)
    if kind != facts.kind and not _passes_over(file, facts):
        yield tr("It has {memory}, and the model {other}.").format(
            memory=tr(_MEMORY[kind]), other=tr(_MEMORY[facts.kind])
        )
    elif file.caches and any(s.n_cells for s in file.caches[0]) and file.extended != facts.cell_ext:
        yield (
            tr("Its cells have the positions of M-RoPE, and those of the model do not.")
            if file.extended
            else tr("Its cells lack the positions of M-RoPE, which those of the model have.")
        )


def _passes_over(file: StateFile, facts: ModelFacts) -> bool:
    """Whether llama.cpp would read the beginning of the file, all that the model has, and not notice the rest: of one
    sequence it does not compare the lengths (llama-context.cpp:3371).
    """
    return file.format in ("slot", "sequence") and (facts.kind, _kind(file)) in _BEGINS


def _kind(file: StateFile) -> MemoryKind:
    """The class of memory that the file is of."""
    if not file.caches:
        return "recurrent"
    window, recurrent = len(file.caches) > 1, bool(file.states or file.state_tensors)
    if recurrent:
        return "hybrid_iswa" if window else "hybrid"
    return "iswa" if window else "attention"


def _of_kvdesk(file: StateFile, header: GgufHeader, settings: ContextSettings) -> Iterator[str]:
    """kvdesk restores its own states into the very model and settings that made them."""
    if file.made_by is None:
        return
    if file.made_by.get("model_sha256") not in ("", None, fingerprint(header.path)):
        yield tr("It is from another model file, and kvdesk restores it only into that one.")
    for name, value in (("type_k", settings.type_k.value), ("type_v", settings.type_v.value)):
        if (was := file.made_by.get(name)) not in (None, value):
            yield tr("{name} was {was}, and is {value} here.").format(name=name, was=was, value=value)
    if file.made_by.get("flash_attn") not in (None, str(settings.flash_attn)):
        yield _transposed(settings.flash_attn)


def _of_memory(file: StateFile, geometry: Geometry, hyper: Hyper, settings: ContextSettings) -> Iterator[str]:
    if file.caches and file.n_streams != geometry.n_stream:
        yield tr("It has {streams}, and the context {other}: `kv_unified` or the number of slots differs.").format(
            streams=_streams(file.n_streams), other=_streams(geometry.n_stream)
        )
    caches = file.caches[: geometry.has_attention + geometry.has_window]
    for number, streams in enumerate(caches):
        layers = [one for one in hyper.layers if one.k_width]
        if geometry.has_window:
            layers = [one for one in layers if one.has_window == bool(number)]
        n_cells = geometry.n_window if number else geometry.n_cells
        for stream in streams:
            if stream.n_cells:
                yield from _of_stream(stream, layers, n_cells, tr(_NAMES[number]), settings)
    ids = [seq_id for streams in file.caches for stream in streams for seq_id in stream.sequences]
    ids += [seq_id for state in file.states for seq_id in state.sequences]
    if file.format in ("session", "pickle", "context") and ids and max(ids) >= geometry.n_seq_max:
        yield tr("It has a sequence {id}, and the context has {n} sequences.").format(id=max(ids), n=geometry.n_seq_max)
    if geometry.has_recurrent and len(file.states) > geometry.n_states:
        yield tr("It has {n} recurrent states, and the context has room for {room}.").format(
            n=len(file.states), room=geometry.n_states
        )
    recurrent = [layer for layer in hyper.layers if layer.r_width or layer.s_width]
    if file.states and geometry.has_recurrent:
        for kind, widths in (("r", [one.r_width for one in recurrent]), ("s", [one.s_width for one in recurrent])):
            yield from _rows(
                [one for one in file.state_tensors if one.kind == kind], widths, BY_NAME["f32"], kind.upper()
            )


def _of_stream(
    stream: Stream, layers: Sequence[Layer], n_cells: int, name: str, settings: ContextSettings
) -> Iterator[str]:
    if stream.n_cells > n_cells:
        yield tr("{name} of the file has {n:,} cells, and that of the context has room for {room:,}.").format(
            name=name[0].upper() + name[1:], n=stream.n_cells, room=n_cells
        )
    k = [one for one in stream.tensors if one.kind == "k"]
    v = [one for one in stream.tensors if one.kind == "v"]
    if any(one.n_rows for one in v) == settings.flash_attn and v:
        yield _transposed(settings.flash_attn)
        return
    yield from _rows(k, [layer.k_width for layer in layers], BY_NAME[settings.type_k.value], "K")
    yield from _rows(v, [layer.v_width for layer in layers if layer.v_width], BY_NAME[settings.type_v.value], "V")


def _transposed(flash_attn: bool) -> str:
    if flash_attn:
        return tr("Its V is transposed, as without flash attention, and the context has flash attention on.")
    return tr("Its V is not transposed, as with flash attention, and the context has flash attention off.")


def _rows(tensors: Sequence[Numbers], widths: Sequence[int], kind: GgmlType, name: str) -> Iterator[str]:
    """The first of the layers that differs."""
    if len(tensors) != len(widths):
        yield tr("{name} has {n} layers, and the model has {other} in this cache.").format(
            name=name, n=len(tensors), other=len(widths)
        )
        return
    for one, width in zip(tensors, widths, strict=True):
        if one.type != kind.name:
            yield tr("{name} is of type {type}, and in the context {other}.").format(
                name=name, type=one.type, other=kind.name
            )
            return
        if one.row_bytes != kind.row_bytes(width):
            yield tr("{name} of layer {layer} has {n:,} numbers a cell, and in the model {other:,}.").format(
                name=name, layer=one.layer, n=one.row_bytes // kind.size * kind.block, other=width
            )
            return


def _of_tokens(file: StateFile, geometry: Geometry, hyper: Hyper) -> Iterator[str]:
    """What llama-server checks besides; kvdesk's own server too."""
    if not file.tokens or file.format != "slot":
        return
    room = min(geometry.n_ctx_seq, hyper.n_ctx_train or geometry.n_ctx_seq)
    if len(file.tokens) > room:
        yield tr("It has {n:,} tokens, and a slot has room for {room:,}.").format(n=len(file.tokens), room=room)
    worst = min(file.tokens) if min(file.tokens) < 0 else max(file.tokens)
    if hyper.n_vocab and not 0 <= worst < hyper.n_vocab:
        yield tr("It has token {token}, and the model's vocabulary has {n:,} tokens.").format(
            token=worst, n=hyper.n_vocab
        )


def _notes(file: StateFile, facts: ModelFacts, geometry: Geometry) -> Iterator[str]:
    if _kind(file) != facts.kind:
        yield tr(
            "It is from another model, with {memory}: llama.cpp reads the parts that this model has, and ignores the "
            "rest."
        ).format(memory=tr(_MEMORY[_kind(file)]))
    if facts.kind != "attention" and file.format in ("slot", "sequence"):
        yield tr(
            "It can only be used as a whole: the file has no checkpoints, so a request that differs before its last "
            "token is read again from the beginning{window}."
        ).format(window=tr(", or from the window") if "iswa" in facts.kind else "")
    if file.format != "kvdesk":
        yield tr("llama.cpp compares only the shape: the file does not show which model of this shape made it.")
    if file.n_context and file.n_context != geometry.n_ctx:
        yield tr("Llama.load_state also restores its list of {n:,} tokens: n_ctx should equal that.").format(
            n=file.n_context
        )
