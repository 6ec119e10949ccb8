"""Rewrites a saved state with K and V of other types, for a context with other settings, without reading tokens again.

Owns how it is rewritten. Each row is decoded, rotated back if the old context rotates, rotated if the new one does, and
encoded like the engine does it. The table of cells and recurrent states stay unchanged.
"""

import struct
import time
from typing import Final, NamedTuple

import numpy as np

from kvdesk.backends.local.llama.context import Context
from kvdesk.backends.local.llama.ggml_quantizers import encode
from kvdesk.backends.local.llama.memory.state import room
from kvdesk.backends.local.llama.params import ggml_type, planned
from kvdesk.backends.local.llama.traits import FLOAT_TYPES, Traits
from kvdesk.cache.state.blob import Blob, Section, parse_seq_state, parse_state
from kvdesk.errors import ContextError
from kvdesk.library.ggml_rows import Bytes, decode, rotate, rows
from kvdesk.library.ggml_types import TYPES
from kvdesk.settings import CacheType, ContextSettings
from kvdesk.translation import tr
from kvdesk.values import replace

_HEAD: Final = 12  # bytes before each tensor (llama-kv-cache.cpp:2202): type and row size; or type, element size, rows
_V_TRANS: Final = 4  # bytes of the layout of V, behind the table of cells
_PIECE: Final = 1 << 17  # bytes converted together, so that they fit into the processor's cache
_TRIAL: Final = (64, 1024)  # rows, numbers of each


class _Conversion(NamedTuple):
    """The conversion of one tensor. Rotations: numbers that are rotated together, before and after."""

    section: Section
    n_cells: int
    type: int
    width: int
    transposed: bool
    rotations: tuple[int, int]

    @property
    def row_bytes(self) -> int:
        return TYPES[self.type].row_bytes(self.width)

    @property
    def same(self) -> bool:
        """Whether its bytes stay unchanged."""
        s = self.section
        return s.ggml_type == self.type and bool(s.n_rows) == self.transposed and self.rotations[0] == self.rotations[1]


def stored_otherwise(now: ContextSettings, wanted: ContextSettings) -> bool:
    """Whether a context with the other settings stores K and V as other bytes."""
    return (now.type_k, now.type_v, now.flash_attn) != (wanted.type_k, wanted.type_v, wanted.flash_attn)


def loses_nothing_more(now: ContextSettings, wanted: ContextSettings) -> bool:
    """Whether converted K and V are as good as recomputed ones, because nothing was quantized before."""
    return all(a == b or a in FLOAT_TYPES for a, b in ((now.type_k, wanted.type_k), (now.type_v, wanted.type_v)))


def why_not_converted(context: Context, settings: ContextSettings) -> str:
    """Why the whole cache of `context` cannot be converted for one with other settings; "" if it can."""
    mirror = context.memory.mirror
    g = mirror.geometry
    if settings.exact:
        return tr("Exact answers need K and V that were computed with these types: they must be computed again.")
    if g.facts.mla or g.facts.has_other_keys or g.facts.kind == "unknown":
        return tr("K and V of this kind of memory are not converted: they must be computed again.")
    if not len(context.traits.rotated_k) == len(context.traits.rotated_v) == len(g.cache_sizes):
        return tr("This llama.cpp does not say whether it rotates K and V: they must be computed again.")
    try:
        wanted = planned(context.model, settings)
    except ContextError as error:
        return str(error)
    too_small = wanted.n_seq_max < g.n_seq_max or wanted.n_states < g.n_states
    for cache, size in zip(mirror.caches, wanted.cache_sizes, strict=True):
        too_small |= any(cells.high_water > size for cells in cache.streams)
    if too_small or wanted.n_stream != g.n_stream:
        return tr("K and V are converted with the whole cache, which does not fit into this context.")
    return ""


def requantize(blob: Blob, source: Traits, target: Traits, *, whole: bool = True) -> memoryview:
    """Convert a state written by a context with the traits `source` for one with `target`. `whole`: of all sequences,
    by llama_state_get_data, else of one. Both need the same model and number of streams. Read-only.

    Raises BlobError for an invalid state, EngineError if there is not enough memory.
    """
    state = (parse_state if whole else parse_seq_state)(blob, source.geometry)
    stored = [(cache, stream) for cache, streams in enumerate(state.caches) for stream in streams if stream.n_cells]
    conversions = [
        [_conversion(section, stream.n_cells, (source, target), cache) for section in stream.sections]
        for cache, stream in stored
    ]
    view, done, at = memoryview(blob).cast("B"), 0, 0
    grown = sum(c.n_cells * c.row_bytes - c.section.n_bytes for of_stream in conversions for c in of_stream)
    result = room(len(view) + grown)
    out = np.frombuffer(result, np.uint8)
    for (_, stream), of_stream in zip(stored, conversions, strict=True):
        start = stream.table.stop  # of v_trans, which the engine compares even if the stream has no layers
        result[at : at + start - done] = view[done:start]
        struct.pack_into("<I", result, at + start - done, target.geometry.v_trans)
        at, done = at + start - done + _V_TRANS, start + _V_TRANS
        for c in of_stream:
            start = c.section.offset - _HEAD
            result[at : at + start - done] = view[done:start]
            at += start - done
            if c.transposed:
                struct.pack_into("<iII", result, at, c.type, TYPES[c.type].size, c.width)
            else:
                struct.pack_into("<iQ", result, at, c.type, c.row_bytes)
            at += _HEAD
            n_bytes = c.n_cells * c.row_bytes
            _convert(view, c, out[at : at + n_bytes])
            at, done = at + n_bytes, c.section.offset + c.section.n_bytes
    result[at:] = view[done:]
    return result


def rounded(blob: Blob, traits: Traits) -> Blob:
    """The state of one sequence with K and V of floats as q8_0, to be kept: a little more than half of the bytes of
    f16. Unchanged if a row is not made of whole blocks. `unrounded` reads it back.

    Raises BlobError for an invalid state, EngineError if there is not enough memory.
    """
    state, block = parse_seq_state(blob, traits.geometry), TYPES[ggml_type(CacheType.Q8_0)].block
    sections = (section for streams in state.caches for stored in streams for section in stored.sections)
    if any(_width(section) % block for section in sections):
        return blob
    computed, kept = _to_keep(traits)
    return requantize(blob, computed, kept, whole=False)


def unrounded(blob: Blob, traits: Traits) -> Blob:
    """What `rounded` made of the state of a context with these traits, for such a context. Raises as `rounded`."""
    computed, kept = _to_keep(traits)
    return requantize(blob, kept, computed, whole=False)


def rounded_share(traits: Traits) -> float:
    """Bytes of K and V that are rounded over those that are not, if both have as many numbers."""
    before, after = (
        sum(TYPES[ggml_type(kind)].size / TYPES[ggml_type(kind)].block for kind in (s.type_k, s.type_v))
        for s in (side.settings for side in _to_keep(traits))
    )
    return after / before


def unrounding_ms(n_bytes: float, traits: Traits) -> float:
    """Milliseconds to read `n_bytes` of rounded K and V back, estimated by `trial_ms`."""
    kind, s = TYPES[ggml_type(CacheType.Q8_0)], traits.settings
    n = n_bytes / kind.size * kind.block
    return sum(trial_ms(n / 2, CacheType.Q8_0, target) for target in (s.type_k, s.type_v))


def trial_ms(n: float, source: CacheType, target: CacheType) -> float:
    """Milliseconds to convert `n` numbers on this machine, estimated from a few. 0.0 for equal types."""
    if source is target:
        return 0.0
    data = encode(np.random.default_rng(0).normal(size=_TRIAL).astype(np.float32), ggml_type(source))
    turned = 64 * ((source in FLOAT_TYPES) != (target in FLOAT_TYPES))
    took = []
    for _ in range(2):  # the first one finds the quantizer
        start = time.perf_counter()
        encode(rotate(decode(data, ggml_type(source)), turned), ggml_type(target))
        took.append(time.perf_counter() - start)
    return min(took) * 1e3 * n / (_TRIAL[0] * _TRIAL[1])


def _to_keep(traits: Traits) -> tuple[Traits, Traits]:
    """Of a context, and of one that stores as q8_0 what that stores as floats. Rows are not rotated on the way."""
    s, as_it_is = traits.settings, (0,) * len(traits.geometry.cache_sizes)
    k, v = (CacheType.Q8_0 if kind in FLOAT_TYPES else kind for kind in (s.type_k, s.type_v))
    computed = replace(traits, rotated_k=as_it_is, rotated_v=as_it_is)
    settings = s.model_copy(update={"type_k": k, "type_v": v})
    return computed, replace(computed, settings=settings, geometry=replace(traits.geometry, v_trans=False))


def _width(section: Section) -> int:
    """Numbers of a row."""
    kind = TYPES[section.ggml_type]
    return section.row_bytes // kind.size * kind.block


def _conversion(section: Section, n_cells: int, sides: tuple[Traits, Traits], cache: int) -> _Conversion:
    source, target = sides
    is_k = section.kind == "k"
    before, after = ((t.rotated_k if is_k else t.rotated_v)[cache] for t in (source, target))
    return _Conversion(
        section,
        n_cells,
        ggml_type(target.settings.type_k if is_k else target.settings.type_v),
        _width(section),
        transposed=not is_k and target.geometry.v_trans,
        rotations=(before, after),
    )


def _convert(blob: memoryview, c: _Conversion, out: Bytes) -> None:
    section, first = c.section, 0
    if c.same:
        out[:] = np.frombuffer(blob, np.uint8, section.n_bytes, section.offset)
        return
    for table in rows(blob, section, c.n_cells, _PIECE):
        if c.rotations[0] != c.rotations[1]:
            table = rotate(rotate(table, c.rotations[0]), c.rotations[1])
        encoded = encode(table, c.type)
        end = first + len(encoded)
        if c.transposed:
            columns = out.reshape(c.width, c.n_cells, -1)
            columns[:, first:end] = encoded.reshape(len(encoded), c.width, -1).transpose(1, 0, 2)
        else:
            out.reshape(c.n_cells, -1)[first:end] = encoded
        first = end
