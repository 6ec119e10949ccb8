"""What Ollama's clients ask before they chat: `/api/version`, `/api/tags`, `/api/show`. There is one model."""

from datetime import UTC, datetime
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from kvdesk import __version__
from kvdesk.protocol.model import ModelInfo
from kvdesk.server.request.schemas import Body
from kvdesk.server.service import Service


class ShowRequest(Body):
    """`/api/show`. Whatever model is named, the open one is shown."""

    verbose: bool = False


async def version(_service: Service, _http: Request) -> Response:
    """What Ollama's clients ask before they chat: the version."""
    return JSONResponse({"version": __version__})


async def tags(service: Service, _http: Request) -> Response:
    """What Ollama's clients ask before they chat: a list of the open model."""
    model = service.state.model
    if model is None:
        return JSONResponse({"models": []})
    name = service.model_name
    now = datetime.now(UTC).isoformat()
    one = {"name": name, "model": name, "modified_at": now, "size": model.size_bytes, "digest": ""}
    return JSONResponse({"models": [{**one, "details": _details(model)}]})


async def show(service: Service, http: Request) -> Response:
    """What Ollama's clients ask before they chat: facts about the open model."""
    await service.body(http, ShowRequest)
    model = service.model
    kind = model.architecture
    return JSONResponse(
        {
            "modelfile": "",
            "parameters": "",
            "template": model.template,
            "details": _details(model),
            "model_info": {
                "general.architecture": kind,
                "general.parameter_count": model.n_params,
                f"{kind}.block_count": model.n_layer,
                f"{kind}.context_length": model.n_ctx_train,
            },
            "capabilities": ["completion", "tools", *(["insert"] if model.infill.fills else [])],
        }
    )


def _details(model: ModelInfo) -> dict[str, Any]:
    return {
        "parent_model": "",
        "format": "gguf",
        "family": model.architecture,
        "families": [model.architecture],
        "parameter_size": f"{model.n_params / 1e6:.1f}M" if model.n_params < 1e9 else f"{model.n_params / 1e9:.1f}B",
        "quantization_level": model.description.rpartition(" ")[2],
    }
