"""`GET /props` in llama-server's shape (server-context.cpp, `get_res_props`), without the path of the model."""

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from kvdesk.protocol.model import LocalFile
from kvdesk.server.llama_server.completions import generation_settings
from kvdesk.server.service import FINGERPRINT, Service


async def lora_adapters(_service: Service, _http: Request) -> Response:
    """As llama-server has it: the list of LoRA adapters, which is empty."""
    return JSONResponse([])


async def props(service: Service, _http: Request) -> Response:
    """As llama-server has it: the sampling that requests get, the chat template, slots. Of the model's path only its
    name.
    """
    model = service.model
    settings = generation_settings(service.sampling)
    settings["max_tokens"] = settings["n_predict"] = service.config.max_tokens or -1
    return JSONResponse(
        {
            "default_generation_settings": {"params": settings, "n_ctx": service.n_ctx},
            "total_slots": service.state.n_parallel,
            "model_alias": service.model_name,
            "model_ftype": model.description,
            "model_path": model.source.path.name if isinstance(model.source, LocalFile) else model.source.name,
            "modalities": {"vision": False, "video": False, "audio": False},
            "endpoint_slots": True,
            "endpoint_props": False,
            "endpoint_metrics": True,
            "chat_template": model.template,
            "bos_token": model.bos,
            "eos_token": model.eos,
            "build_info": FINGERPRINT,
            "is_sleeping": False,
        }
    )
