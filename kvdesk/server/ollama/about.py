"""What Ollama's clients ask before they chat: version, models and facts about one. There is one model."""

import hashlib
import time
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response

from kvdesk.protocol.model import LocalFile, ModelInfo
from kvdesk.server.request.schemas import Body
from kvdesk.server.service import Service
from kvdesk.server.streaming import LINES
from kvdesk.thinking import levels_of

PROTOCOL: Final = "0.14.0"
"""The first Ollama that spoke all protocols that are spoken here too, Anthropic's the last. Clients refuse what calls
itself older than they know: Copilot 0.6.4, Codex 0.13.4.
"""
_KEPT: Final = timedelta(days=365)


class ShowRequest(Body):
    """`/api/show`. Whatever model is named, the open one is shown."""

    verbose: bool = False


class PullRequest(Body):
    """`/api/pull`. `stream`: the answer is in lines, as Ollama's is."""

    stream: bool = True


async def root(_service: Service, _http: Request) -> Response:
    """Says that there is a server, as clients and people who open its address want to know."""
    return PlainTextResponse("kvdesk is running")


async def version(_service: Service, _http: Request) -> Response:
    """What Ollama's clients ask before they chat: the version of Ollama whose protocol this is."""
    return JSONResponse({"version": PROTOCOL})


async def tags(service: Service, _http: Request) -> Response:
    """What Ollama's clients ask before they chat: a list of the open model."""
    return JSONResponse({"models": _models(service)})


async def running(service: Service, _http: Request) -> Response:
    """What Ollama's clients ask: the models in memory, which is the open one. It stays there."""
    until = (datetime.now(UTC) + _KEPT).isoformat()
    more = {"expires_at": until, "size_vram": 0}
    return JSONResponse({"models": [{**one, **more, "context_length": service.n_ctx} for one in _models(service)]})


async def pull(service: Service, http: Request) -> Response:
    """Ollama's download of a model, which some clients request first: nothing is loaded, and the open model answers."""
    request = await service.body(http, PullRequest)
    _ = service.model
    return JSONResponse({"status": "success"}, media_type=LINES.media_type if request.stream else None)


async def show(service: Service, http: Request) -> Response:
    """What Ollama's clients ask before they chat: facts about the open model."""
    await service.body(http, ShowRequest)
    model = service.model
    kind, n_ctx = model.architecture, service.n_ctx
    return JSONResponse(
        {
            **({"license": model.license} if model.license else {}),
            "modelfile": f"FROM {service.model_name}\nPARAMETER num_ctx {n_ctx}\n",
            "parameters": f"num_ctx {n_ctx}",
            "template": model.template,
            "details": _details(model),
            "model_info": {
                "general.architecture": kind,
                "general.basename": service.model_name,
                "general.parameter_count": model.n_params,
                f"{kind}.block_count": model.n_layer,
                f"{kind}.context_length": n_ctx,  # of the open context, which no request can change
            },
            "capabilities": _capabilities(model),
            "modified_at": _modified(model),
        }
    )


def _models(service: Service) -> list[dict[str, Any]]:
    """The open model, if there is one. `digest`: of its name and size, by which clients tell models apart."""
    model, name = service.state.model, service.model_name
    if model is None:
        return []
    digest = hashlib.sha256(f"{name} {model.size_bytes}".encode()).hexdigest()
    one = {"name": name, "model": name, "modified_at": _modified(model), "size": model.size_bytes, "digest": digest}
    return [{**one, "details": _details(model), "capabilities": _capabilities(model)}]


def _capabilities(model: ModelInfo) -> list[str]:
    able = {"tools": True, "insert": model.infill.fills, "thinking": bool(levels_of(model.template))}
    return ["completion", *(name for name, is_able in able.items() if is_able)]


def _modified(model: ModelInfo) -> str:
    """Of the file; of a model that is none, now."""
    try:
        changed = model.source.path.stat().st_mtime if isinstance(model.source, LocalFile) else time.time()
    except OSError:  # it has gone since it was opened
        changed = time.time()
    return datetime.fromtimestamp(changed, UTC).isoformat()


def _details(model: ModelInfo) -> dict[str, Any]:
    return {
        "parent_model": "",
        "format": "gguf",
        "family": model.architecture,
        "families": [model.architecture],
        "parameter_size": f"{model.n_params / 1e6:.1f}M" if model.n_params < 1e9 else f"{model.n_params / 1e9:.1f}B",
        "quantization_level": quantization(model.description),
    }


def quantization(description: str) -> str:
    """The type as file names have it (Q4_K_M), from llama.cpp's description ("qwen2 1B Q4_K - Medium")."""
    *_, kind = description.split(" ", 2)
    name, _, size = kind.removeprefix("(guessed) ").partition(" - ")
    return f"{name}_{size[0]}" if size in ("Small", "Medium", "Large") else name
