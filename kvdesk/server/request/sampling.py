"""From the fields of a request to how its answers are sampled."""

import asyncio
import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from pydantic import ValidationError

from kvdesk.errors import SchemaError
from kvdesk.grammar.json_schema import gbnf_of
from kvdesk.server.errors import ApiError, invalid, unsupported
from kvdesk.server.request.samplers import samplers_of
from kvdesk.server.request.schemas import ChatRequest, ResponseFormat, Sampled, wrong_field
from kvdesk.settings import RANDOM_SEED, Mirostat, Sampling

SAME: Final = (Sampled.model_fields.keys() & Sampling.model_fields.keys()) - {
    *("json_schema", "logit_bias", "max_tokens", "mirostat", "samplers", "seed", "stop")
}
"""Fields that have the same name and meaning in `Sampling`."""
_WINDOWS: Final = ("repeat_last_n", "dry_penalty_last_n")
BANNED: Final = -100.0
"""The bias that bans a token."""
_MOST_DIGITS: Final = 10


def sampling_of(
    request: Sampled, base: Sampling, n_ctx: int, max_tokens: int = 0, ends: Sequence[int] = ()
) -> Sampling:
    """`base` with the request's values. Without a limit an answer has `max_tokens` at most; 0: as many as the context
    of `n_ctx` tokens holds. `ends`: tokens that end an answer, unless the request ignores them. Raises ApiError.
    """
    changes: dict[str, Any] = {name: value for name in SAME if (value := getattr(request, name)) is not None}
    changes |= {name: n_ctx for name in _WINDOWS if changes.get(name) == -1}
    if changes.get("top_k", 0) < 0:
        changes["top_k"] = 0  # among all tokens
    changes["max_tokens"] = max(1, _most_tokens(request, n_ctx, max_tokens))
    if request.samplers is not None:
        changes["samplers"] = samplers_of(request.samplers)
    if request.seed is not None:
        changes["seed"] = RANDOM_SEED if request.seed == -1 else request.seed & 0xFFFFFFFF
    if request.stop is not None:
        stops = [request.stop] if isinstance(request.stop, str) else request.stop
        changes["stop"] = tuple(text for text in stops if text)
    if request.mirostat is not None:
        changes["mirostat"] = list(Mirostat)[request.mirostat]
    if request.logit_bias is not None:
        changes["logit_bias"] = _biases(request.logit_bias)
    if request.ignore_eos:
        bans = tuple((token, BANNED) for token in ends)
        changes["logit_bias"] = (*changes.get("logit_bias", base.logit_bias), *bans)
    schema, param = _schema(request)
    if schema:
        changes["json_schema"] = schema
    if changes.get("json_schema", base.json_schema) and changes.get("grammar"):
        raise invalid("grammar", "there is a JSON schema already; choose one of them")
    try:
        return Sampling.model_validate({**base.model_dump(), **changes})
    except ValidationError as error:
        raise wrong_field(error, {"json_schema": param} if schema else None) from error


def seeded(sampling: Sampling, choice: int) -> Sampling:
    """Of several answers to one request each has its own seed, the same in each such request."""
    if not choice or sampling.seed == RANDOM_SEED:
        return sampling
    return sampling.model_copy(update={"seed": (sampling.seed + choice) % RANDOM_SEED})


def only_reads(request: Sampled) -> bool:
    """Whether the client wants no token, but the prompt in the cache, for requests that begin with it."""
    return _asked_tokens(request) == 0


def _asked_tokens(request: Sampled) -> int | None:
    others = request.max_completion_tokens if isinstance(request, ChatRequest) else None
    return next((n for n in (others, request.n_predict, request.max_tokens) if n is not None), None)


def _most_tokens(request: Sampled, n_ctx: int, usual: int) -> int:
    asked = _asked_tokens(request)
    if asked is None or asked < 0:
        asked = usual or n_ctx
    return min(asked, n_ctx)


async def check_schema(request: Sampled) -> None:
    """Raises ApiError, with the place, where the JSON schema cannot be used. Large ones take a second: on a thread."""
    schema, param = _schema(request)
    if not schema:
        return
    worker = ThreadPoolExecutor(1, "kvdesk-schema")
    try:
        await asyncio.get_running_loop().run_in_executor(worker, gbnf_of, schema)
    except SchemaError as error:
        where = f"{param}.{error.place}" if error.place else param
        raise ApiError(400, str(error), where, "invalid_value") from error
    finally:
        worker.shutdown(wait=False)


def _schema(request: Sampled) -> tuple[str, str]:
    """The JSON schema that the answer follows, as text, and the field that has it; "" for none. Raises ApiError."""
    schema, param = request.json_schema, "json_schema"
    form: ResponseFormat | None = request.response_format
    if form is not None:
        match form.type:
            case "text":
                pass
            case "json_object":
                schema, param = form.schema_ or {}, "response_format.schema"
            case "json_schema":
                inner = form.json_schema or {}
                schema, param = inner.get("schema"), "response_format.json_schema.schema"
                if schema is None:
                    schema = form.schema_ or {}
                if not isinstance(schema, dict):
                    raise invalid(param, "must be an object")
            case _:
                said = f"{form.type[:100]} is not supported; text, json_object and json_schema are"
                raise unsupported("response_format", said)
    return ("", "") if schema is None else (json.dumps(schema, ensure_ascii=False), param)


def _biases(given: dict[str, Any] | list[Any]) -> tuple[tuple[int | str, float], ...]:
    """By token id, or by a text of which every token is meant; llama-server also takes a list of pairs, and false for a
    ban. Raises ApiError.
    """
    found: list[tuple[int | str, float]] = []
    for pair in given.items() if isinstance(given, dict) else given:
        if not isinstance(pair, list | tuple) or len(pair) != 2:
            raise _wrong_bias("must have pairs of a token and a bias")
        token, bias = pair
        is_id = isinstance(given, dict) and token.isascii() and token.isdecimal() and len(token) <= _MOST_DIGITS
        if is_id or (isinstance(token, float) and token.is_integer()):
            token = int(token)
        if isinstance(token, bool) or not isinstance(token, int | str):
            raise _wrong_bias("a token is an id or a text")
        if bias is True or not isinstance(bias, int | float) or abs(bias) > -BANNED:
            raise _wrong_bias("a bias is a number from -100 to 100, or false")
        found.append((token, BANNED if bias is False else float(bias)))
    return tuple(found)


def _wrong_bias(said: str) -> ApiError:
    return invalid("logit_bias", said)
