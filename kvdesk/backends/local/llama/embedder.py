"""A model that turns tokens into vectors, with its own pooling or another one. Its cache is neither mirrored nor kept.

Handles one sequence at a time, from an empty cache. Runs in a separate process
(`kvdesk.backends.local.embedding_child`).
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from kvdesk.backends.local.llama.binding import engine_log, free_context, lib
from kvdesk.backends.local.llama.vocab import Vocab
from kvdesk.errors import ModelFileError, PromptError
from kvdesk.translation import tr

POOLINGS: Final = ("none", "mean", "cls", "last", "rank")
"""In the order of llama.cpp's numbers."""
_LAST, _RANK = POOLINGS.index("last"), POOLINGS.index("rank")
_MOST_TOKENS: Final = 8192
_MOST_AT_ONCE: Final = 2048
"""Tokens in one graph of an encoder, which must see a whole text at once."""
_DECODER_AT_ONCE: Final = 512
"""Same for a decoder. llama.cpp allocates logits for each token, 300 MB for a vocabulary of 150,000 tokens."""


class Embedder:
    """A model and its context. `pooling`: one of POOLINGS, "" for the model's own or else the last token's. `lean`:
    keep weights as they are in the file, because another process may have loaded it too.
    Raises ModelFileError.
    """

    def __init__(self, path: Path, pooling: str, n_threads: int, *, lean: bool) -> None:
        log = engine_log()
        log.forget()
        params = lib.llama_model_default_params()
        params.n_gpu_layers, params.use_extra_bufts = 0, not lean
        self._model: Any = lib.llama_model_load_from_file(str(path).encode("utf-8", "surrogateescape"), params)
        if not self._model:
            raise ModelFileError(tr("llama.cpp cannot load {file}.").format(file=path.name), log.problems())
        decodes, encodes = lib.llama_model_has_decoder(self._model), lib.llama_model_has_encoder(self._model)
        if decodes and encodes:
            raise ModelFileError(tr("{file} translates: it gives no embeddings.").format(file=path.name))
        self._run = lib.llama_decode if decodes else lib.llama_encode
        self.vocab = Vocab(self._model)
        n_ctx = min(int(lib.llama_model_n_ctx_train(self._model)) or _MOST_TOKENS, _MOST_TOKENS)
        self._at_once = min(n_ctx, _DECODER_AT_ONCE if decodes else _MOST_AT_ONCE)
        self._ctx = self._context(path, n_ctx, n_threads, POOLINGS.index(pooling) if pooling else -1)
        if not pooling and decodes and int(lib.llama_pooling_type(self._ctx)) == 0:
            free_context(self._ctx)
            self._ctx = self._context(path, n_ctx, n_threads, _LAST)
        self._pooling = int(lib.llama_pooling_type(self._ctx))
        splits = decodes and self._pooling in (0, _LAST)
        self.n_most = n_ctx if splits else self._at_once
        self._batch = lib.llama_batch_init(self._at_once, 0, 1)
        n_out = lib.llama_model_n_cls_out if self._pooling == _RANK else lib.llama_model_n_embd_out
        self.n_embd = int(n_out(self._model))

    @property
    def pooling(self) -> str:
        """How the vectors of tokens become one vector."""
        return POOLINGS[self._pooling]

    def cut(self, tokens: list[int]) -> list[int]:
        """As many as the model reads; the last one stays, with which many models end a text."""
        return tokens if len(tokens) <= self.n_most else [*tokens[: self.n_most - 1], tokens[-1]]

    def vectors(self, tokens: Sequence[int]) -> tuple[tuple[float, ...], ...]:
        """One vector for all tokens, or one per token without pooling. Raises PromptError."""
        if not tokens:
            raise PromptError(tr("The text is empty."))
        if len(tokens) > self.n_most:
            raise PromptError(
                tr("The text is too large: it has {n:,} tokens, and this model reads {most:,} at once.").format(
                    n=len(tokens), most=self.n_most
                )
            )
        wrong = next((token for token in tokens if not 0 <= token < self.vocab.n_tokens), None)
        if wrong is not None:
            raise PromptError(tr("The model has no token {token}.").format(token=wrong))
        memory = lib.llama_get_memory(self._ctx)
        if memory:
            lib.llama_memory_clear(memory, True)
        found: list[tuple[float, ...]] = []
        for first in range(0, len(tokens), self._at_once):
            part = tokens[first : first + self._at_once]
            self._fill(part, first)
            if self._run(self._ctx, self._batch) != 0:
                raise PromptError(tr("llama.cpp could not compute the embedding."))
            if not self._pooling:
                found += [self._vector(lib.llama_get_embeddings_ith(self._ctx, i)) for i in range(len(part))]
        if self._pooling:
            found = [self._vector(lib.llama_get_embeddings_seq(self._ctx, 0))]
        return tuple(found)

    def ranked(self, query: str, document: str) -> list[int]:
        """The tokens of a query and a document, combined as in llama-server (`format_prompt_rerank`)."""
        prompt = lib.llama_model_chat_template(self._model, b"rerank")
        if prompt:
            text = prompt.decode("utf-8", "replace").replace("{query}", query).replace("{document}", document)
            return self.vocab.tokenize(text, add_special=False, parse_special=True)
        vocab = self.vocab.handle
        end = [self.vocab.eos if self.vocab.eos >= 0 else int(lib.llama_vocab_sep(vocab))]
        ends = end if lib.llama_vocab_get_add_eos(vocab) else []
        between = [int(lib.llama_vocab_sep(vocab))] if lib.llama_vocab_get_add_sep(vocab) else []
        asked, told = (self.vocab.tokenize(t, add_special=False, parse_special=False) for t in (query, document))
        return [*([self.vocab.bos] if self.vocab.add_bos else []), *asked, *ends, *between, *told, *ends]

    def _context(self, path: Path, n_ctx: int, n_threads: int, pooling: int) -> Any:
        params = lib.llama_context_default_params()
        params.n_ctx, params.n_batch, params.n_ubatch = n_ctx, self._at_once, self._at_once
        params.n_seq_max = 1
        params.n_threads = params.n_threads_batch = n_threads
        params.embeddings, params.pooling_type = True, pooling
        params.offload_kqv = params.op_offload = False
        ctx = lib.llama_init_from_model(self._model, params)
        if not ctx:
            raise ModelFileError(
                tr("llama.cpp cannot make a context of {file}.").format(file=path.name), engine_log().problems()
            )
        return ctx

    def _fill(self, tokens: Sequence[int], first: int) -> None:
        batch = self._batch
        batch.n_tokens = len(tokens)
        for i, token in enumerate(tokens):
            batch.token[i], batch.pos[i], batch.logits[i] = token, first + i, True
            batch.n_seq_id[i], batch.seq_id[i][0] = 1, 0

    def _vector(self, pointer: Any) -> tuple[float, ...]:
        if not pointer:
            raise PromptError(tr("llama.cpp could not compute the embedding."))
        return tuple(pointer[: self.n_embd])
