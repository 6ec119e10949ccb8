"""What tokens of the cache look at: how that is asked for, what it costs, and the answer.

Ordinary contexts compute no weights that anyone could read. The weights are computed in a second context of the same
model: the sequence's K and V are copied to it, the tokens that were asked for are decoded there once more, and what
each layer computes of them is read meanwhile. The live cache is read and stays as it is.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from kvdesk.cache.attention_weights import AttentionColumns, LayerAttention
from kvdesk.values import dataclass

MOST_BYTES: Final = 256 << 20
"""Of the weights of one answer."""


@dataclass(frozen=True, slots=True)
class Queries:
    """Tokens whose attention is wanted: those at the positions `[p0, p1)` of a sequence.

    p0     -1: the last token alone, such as the one just written
    p1     -1: to the end of the sequence
    each   a row for each token; else one row: their sum
    first  columns begin at this position; what goes to cells before it is in `LayerAttention.elsewhere`
    """

    seq_id: int
    p0: int = -1
    p1: int = -1
    each: bool = False
    first: int = 0


@dataclass(frozen=True, slots=True)
class PreviewAttention:
    """What would `Attend` cost? Answered by `AttentionPreview`; by nothing without `Feature.ATTENTION`."""

    queries: Queries


@dataclass(frozen=True, slots=True)
class AttentionPreview:
    """The price of `Attend(queries)`.

    refused     why it cannot be done, a sentence; "" if it can. The numbers are 0 then
    sentence    the price for a person
    n_tokens    tokens that are decoded once more
    n_read      tokens before them that have to be read again first, since their state cannot be copied (a recurrent
                part, a window that has moved on); 0 as a rule
    state_bytes of K and V that are copied
    n_bytes     of memory meanwhile: the second context, the copied state and the answer
    seconds     all of it, from what this machine has measured; None if nothing was measured
    """

    queries: Queries
    refused: str = ""
    sentence: str = ""
    n_tokens: int = 0
    n_read: int = 0
    state_bytes: int = 0
    n_bytes: int = 0
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Attend:
    """Compute the attention of these tokens. Answered by `Attended`, or by `CommandFailed`. Answers under way go on:
    it is done between two of their batches, of what the sequence holds then. The answer has the same `number`.
    """

    queries: Queries
    number: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Attended:
    """The attention of the tokens `queries`, as they look at the cache now.

    number     of `Attend`
    operation  the last operation on the cache (`CacheSnapshot.operation`) when its cells were read
    pos        int32, positions of the tokens asked for, ascending: of the rows with `Queries.each`, else of what the
               only row stands for
    columns    what they could look at
    layers     each layer with attention, ascending
    n_read     as in `AttentionPreview`
    n_bytes    that were taken meanwhile
    ms         it took
    """

    queries: Queries
    number: int
    operation: int
    pos: NDArray[np.int32]
    columns: AttentionColumns
    layers: tuple[LayerAttention, ...]
    n_read: int = 0
    n_bytes: int = 0
    ms: float = 0.0


AttentionCommand = PreviewAttention | Attend
AttentionEvent = AttentionPreview | Attended
