"""A tiny OpenAI-compatible server for tests, on a free port of this machine, in a thread of this process."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

WORDS = ("The ", "lamp ", "burns", ".")


class TinyServer:
    """What it is asked stays in `asked`; how it behaves is said by the last message: see `_answer`."""

    def __init__(self, models: tuple[str, ...] = ("tiny",)) -> None:
        self.asked: list[dict[str, Any]] = []
        self.n_stopped = 0
        self._models = models
        self.app = Starlette(
            routes=[
                Route("/v1/models", self._list, methods=["GET"]),
                Route("/v1/chat/completions", self._answer, methods=["POST"]),
                Route("/text/v1/models", self._text, methods=["GET"]),
                Route("/locked/v1/models", self._locked, methods=["GET"]),
            ]
        )

    async def _list(self, _request: Request) -> Response:
        return JSONResponse({"data": [{"id": name} for name in self._models]})

    async def _text(self, _request: Request) -> Response:
        return PlainTextResponse("hello")

    async def _locked(self, _request: Request) -> Response:
        return Response(status_code=401)

    async def _answer(self, request: Request) -> Response:
        asked = await request.json()
        self.asked.append(asked)
        said = asked["messages"][-1]["content"]
        if "too long" in said:
            return JSONResponse({"error": {"message": "the request exceeds\n the context"}}, status_code=400)
        if "no stream" in said:
            return JSONResponse({"choices": []})
        return StreamingResponse(self._events(said, asked["max_tokens"]), media_type="text/event-stream")

    async def _events(self, said: str, n_tokens: int) -> AsyncIterator[str]:
        if "silent" in said:
            await asyncio.sleep(30)
        yield event({"choices": [{"delta": {"role": "assistant", "content": None}}]})
        if "crash" in said:
            yield event({"error": {"message": "out of memory"}})
            return
        if "garbage" in said:
            yield "data: {nonsense\n\n"
            return
        words = [f"word{i} " for i in range(n_tokens)] if "endless" in said else WORDS[:n_tokens]
        try:
            for word in words:
                yield event({"choices": [{"delta": {"content": word}}]})
                await asyncio.sleep(0.005 if "endless" in said else 0)
        except (asyncio.CancelledError, GeneratorExit):
            self.n_stopped += 1
            raise
        yield event({"choices": [{"delta": {}, "finish_reason": "stop"}]})
        usage = {
            "completion_tokens": len(words) + 1,
            "prompt_tokens": 20,
            "prompt_tokens_details": {"cached_tokens": 15},
        }
        yield event({"choices": [], "usage": usage})
        yield "data: [DONE]\n\n"


def event(data: dict[str, Any]) -> str:
    return f"data: {json.dumps(data)}\n\n"


@contextmanager
def running(server: TinyServer) -> Iterator[str]:
    """Its address, while it runs."""
    config = uvicorn.Config(server.app, host="127.0.0.1", port=0, log_level="critical", lifespan="off", loop="asyncio")
    uvi = uvicorn.Server(config)
    socket = config.bind_socket()
    thread = threading.Thread(target=uvi.run, kwargs={"sockets": [socket]}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{socket.getsockname()[1]}"
    finally:
        uvi.should_exit = uvi.force_exit = True
        thread.join(10)
        socket.close()
