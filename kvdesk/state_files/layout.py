"""The layout of a blob whose model is not known: the first one of those that llama.cpp writes that fits to its end.

A blob does not say what it is of. Each memory class, with and without what M-RoPE and latent attention change, is
tried; a wrong one fails at the first length that cannot be.
"""

from itertools import product
from typing import Final

from kvdesk.cache.geometry import MAX_SEQ, Geometry, ModelFacts
from kvdesk.cache.state.blob import Blob, BlobError, StateBlob, parse_seq_state, parse_state
from kvdesk.translation import tr

_PARTS: Final = ((1, 0, 0), (1, 1, 0), (1, 0, 1), (1, 1, 1), (0, 0, 1))
"""Whether it has attention, a window and a recurrent part."""


def read_layout(blob: Blob, *, whole: bool) -> tuple[StateBlob, Geometry]:
    """The cells and tensors of a state, and the memory that they are of. `whole`: of a context, else of one sequence.
    Raises BlobError if no layout fits.
    """
    view = memoryview(blob)
    architecture, at = "", 8
    if whole:
        length = int.from_bytes(view[:4], "little")
        architecture, at = bytes(view[4 : 4 + min(length, 256)]).decode("utf-8", "replace"), 4 + length
    n_streams = int.from_bytes(view[at : at + 4], "little")
    parse = parse_state if whole else parse_seq_state
    problems = []
    for (attention, window, recurrent), extended, latent in product(_PARTS, (False, True), (False, True)):
        if attention and not 1 <= n_streams <= MAX_SEQ:
            continue
        if not attention and (extended or latent):
            continue
        n = n_streams if attention else MAX_SEQ
        facts = ModelFacts(architecture, "unknown", cell_ext=extended, mla=latent)
        geometry = Geometry(
            facts,
            n_ctx=attention,
            n_ctx_seq=attention,
            n_seq_max=n,
            n_batch=0,
            n_ubatch=0,
            n_stream=n,
            n_cells=attention,
            n_window=window,
            n_states=n * recurrent,
            kv_unified=n == 1,
            can_shift=False,
            v_trans=False,
        )
        try:
            return parse(blob, geometry), geometry
        except BlobError as error:
            problems.append(f"{attention}{window}{recurrent}: {error} {error.detail}")
    raise BlobError(
        tr("Its cells cannot be read: it is damaged or truncated, or of a kind of memory that kvdesk does not know."),
        "\n".join(problems),
    )
