"""What goes over the pipes between a server and the child process that makes embeddings. Values only."""

import msgspec


class Embed(msgspec.Struct, frozen=True, tag=True):
    """What are the vectors of these prompts? Each is texts and token ids in order. Answered by `Embedded`. `cuts`: of
    one that is too long as much counts as the model reads.
    """

    prompts: tuple[tuple[str | tuple[int, ...], ...], ...]
    cuts: bool = False


class Rank(msgspec.Struct, frozen=True, tag=True):
    """How well do these documents answer the query? Answered by `Embedded`, whose vectors are scores."""

    query: str
    documents: tuple[str, ...]


class EmbeddingModel(msgspec.Struct, frozen=True):
    """The first thing that the child says. `error`: why it ends, a sentence; "" if it goes on.

    pooling  how the vectors of tokens become one: none, mean, cls, last or rank
    """

    name: str = ""
    pooling: str = ""
    n_embd: int = 0
    error: str = ""
    detail: str = ""


class Embedded(msgspec.Struct, frozen=True):
    """Of each prompt its vectors and its tokens: one vector, or if nothing is pooled one a token. `error`: why there
    are none, a sentence; "" as a rule.
    """

    vectors: tuple[tuple[tuple[float, ...], ...], ...] = ()
    n_tokens: tuple[int, ...] = ()
    error: str = ""


EmbeddingRequest = Embed | Rank
