"""Embeddings from a model in a child process: it starts with the first request, and again where it has ended.

The engine that chats has no part in it: its cache stays as it is, and a text that is embedded waits for no answer.
"""

import asyncio
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from kvdesk.children.process import Child, ChildStopped, child_command
from kvdesk.protocol.embedding import Embedded, EmbeddingModel, EmbeddingRequest
from kvdesk.server.errors import ApiError
from kvdesk.settings import default_threads

FLAG: Final = "--embed"
_START_S: Final = 300.0
_ANSWER_S: Final = 600.0


class EmbeddingProcess:
    """One child at a time. Used on the event loop; `close` it there.

    file     of the model; None: that of the model that chats
    pooling  in the place of the model's own; ""
    """

    def __init__(self, file: Path | None, pooling: str) -> None:
        self._file, self._pooling = file, pooling
        self._child: Child | None = None
        self._path: Path | None = None  # of the model that the child has
        self._model = EmbeddingModel()
        self._turn = asyncio.Lock()
        self._worker = ThreadPoolExecutor(1, "kvdesk-embedding")

    async def ask(self, chats: Path | None, request: EmbeddingRequest | None) -> tuple[EmbeddingModel, Embedded]:
        """The model and its answer; without a request an empty one. `chats`: file of the model that chats. Raises
        ApiError.
        """
        path = self._file or chats
        if path is None:
            raise ApiError(501, "The model that is open is no file, and no other was given.", code="not_supported")
        async with self._turn:
            work = asyncio.get_running_loop().run_in_executor(self._worker, self._asked, path, request)
            try:
                return await asyncio.shield(work)
            finally:
                await asyncio.wait({work})  # the turn of a client that has gone lasts until the child has answered

    def close(self) -> None:
        """End the child, and whoever waits for it."""
        if self._child is not None:
            self._child.kill()
        self._worker.shutdown(wait=True)
        self._end()

    def _asked(self, path: Path, request: EmbeddingRequest | None) -> tuple[EmbeddingModel, Embedded]:
        """On the worker's thread. Raises ApiError."""
        try:
            child = self._started(path)
            if request is None:
                return self._model, Embedded()
            child.send_value(request)
            found: Embedded = child.receive_value(_ANSWER_S, kind=Embedded)
        except (ChildStopped, OSError) as error:
            self._end()
            raise ApiError(503, "The process that makes embeddings ended. Try again.", retry_s=2) from error
        if found.error:
            raise ApiError(400, found.error, "input", "invalid_value")
        return self._model, found

    def _started(self, path: Path) -> Child:
        """Raises ApiError, ChildStopped, OSError."""
        if self._child is not None and (path != self._path or self._child.wait(0.0) is not None):
            self._end()
        if self._child is None:
            lean = ["lean"] if self._file is None else []
            threads = str(min(default_threads(), max(1, (os.cpu_count() or 1) // 2)))
            self._path = path
            self._child = Child(child_command(FLAG, str(path.absolute()), self._pooling, threads, *lean))
            self._model = self._child.receive_value(_START_S, kind=EmbeddingModel)
            if self._model.error:
                self._end()
                raise ApiError(501, self._model.error, code="not_supported")
        return self._child

    def _end(self) -> None:
        if self._child is not None:
            self._child.close()
            self._child = None
