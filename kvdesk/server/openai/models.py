"""`GET /v1/models`, `GET /v1/models/NAME` and `GET /health`. There is one model."""

import time
from datetime import UTC, datetime
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from kvdesk.server.errors import ApiError
from kvdesk.server.service import Service


async def health(service: Service, _http: Request) -> Response:
    """As llama-server has it: whether requests can be answered."""
    if service.state.ready:
        return JSONResponse({"status": "ok"})
    return ApiError(503, "Loading model" if service.state.loading else "No model is open.").response()


async def models(service: Service, _http: Request) -> Response:
    """The open model. `--alias NAME` gives it another name; what a request calls `model` makes no difference."""
    found = _model(service)
    names = {"first_id": found["id"], "last_id": found["id"]} if found is not None else {}
    data = [found] if found is not None else []
    return JSONResponse({"object": "list", "data": data, "has_more": False, **names})


async def model(service: Service, http: Request) -> Response:
    """The open model, if this is its name."""
    found = _model(service)
    if found is None or http.path_params["name"] != found["id"]:
        raise ApiError(404, "There is no such model; /v1/models lists what there is.", code="model_not_found")
    return JSONResponse(found)


def _model(service: Service) -> dict[str, Any] | None:
    """As llama-server reports it, without the path of the file, and with what Anthropic's clients read."""
    model, context = service.state.model, service.state.context
    if model is None:
        return None
    meta = {
        "n_vocab": model.n_vocab,
        "n_ctx_train": model.n_ctx_train,
        "n_ctx": context.n_ctx_seq if context is not None else 0,
        "n_params": model.n_params,
        "size": model.size_bytes,
    }
    now = int(time.time())
    return {
        "id": service.model_name,
        "object": "model",
        "type": "model",
        "display_name": service.model_name,
        "created": now,
        "created_at": datetime.fromtimestamp(now, UTC).isoformat(),
        "owned_by": "kvdesk",
        "meta": meta,
    }
