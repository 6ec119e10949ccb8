"""The child process of a server that makes embeddings: opens a model and answers until its parent ends.

Owns nothing that outlives it, so it may be killed at any moment. `kvdesk.server.embedding_process` starts it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from kvdesk.children.entry import Parent
from kvdesk.errors import KvdeskError
from kvdesk.protocol.embedding import Embed, Embedded, EmbeddingModel, EmbeddingRequest

if TYPE_CHECKING:
    from kvdesk.backends.local.llama.embedder import Embedder


def child_main(parent: Parent, argv: Sequence[str]) -> int:
    """`argv`: file, pooling or "", threads, and "lean" if another process also has the file loaded."""
    from kvdesk.backends.local.llama.embedder import Embedder

    file, pooling, threads, *lean = argv
    try:
        embedder = Embedder(Path(file), pooling, int(threads), lean=bool(lean))
    except KvdeskError as error:
        parent.send_value(EmbeddingModel(error=str(error), detail=error.detail))
        return 2
    parent.send_value(EmbeddingModel(Path(file).stem, embedder.pooling, embedder.n_embd))
    while True:
        try:
            parent.send_value(_answer(embedder, parent.receive_value(EmbeddingRequest)))
        except KvdeskError as error:
            parent.send_value(Embedded(error=str(error)))


def _answer(embedder: Embedder, asked: EmbeddingRequest) -> Embedded:
    """Raises PromptError."""
    if isinstance(asked, Embed):
        prompts = [_tokens(embedder, parts) for parts in asked.prompts]
        if asked.cuts:
            prompts = [embedder.cut(tokens) for tokens in prompts]
    else:
        prompts = [embedder.ranked(asked.query, document) for document in asked.documents]
    vectors = tuple(embedder.vectors(tokens) for tokens in prompts)
    return Embedded(vectors, tuple(map(len, prompts)))


def _tokens(embedder: Embedder, parts: Sequence[str | tuple[int, ...]]) -> list[int]:
    """Tokens of the parts. Only the first part gets the tokens with which a text begins and ends."""
    tokens: list[int] = []
    for i, part in enumerate(parts):
        if isinstance(part, str):
            tokens += embedder.vocab.tokenize(part, add_special=i == 0, parse_special=True)
        else:
            tokens += part
    return tokens
