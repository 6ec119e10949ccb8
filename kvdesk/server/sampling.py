"""From the fields of a request to how its answers are sampled."""

from __future__ import annotations

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from pydantic import ValidationError

from kvdesk.errors import SchemaError
from kvdesk.grammar.json_schema import gbnf_of
from kvdesk.server.errors import ApiError
from kvdesk.server.schemas import ChatRequest, ResponseFormat, Sampled, wrong_field
from kvdesk.settings import RANDOM_SEED, Mirostat, Sampling

_SAME: Final = (
    *("temperature", "top_p", "presence_penalty", "frequency_penalty", "top_k", "min_p", "typical_p", "top_n_sigma"),
    *("xtc_probability", "xtc_threshold", "dry_multiplier", "dry_base", "dry_allowed_length", "dry_penalty_last_n"),
    *("dynatemp_range", "dynatemp_exponent", "repeat_penalty", "repeat_last_n", "mirostat_tau", "mirostat_eta"),
    *("adaptive_target", "adaptive_decay", "grammar"),
)
"""Fields that have the same name and meaning in `Sampling`."""
_WINDOWS: Final = ("repeat_last_n", "dry_penalty_last_n")
_BANNED: Final = -100.0
_MOST_DIGITS: Final = 10


def sampling_of(request: Sampled, base: Sampling, n_ctx: int, max_tokens: int = 0) -> Sampling:
    """`base` with what the request says. Without a limit an answer has `max_tokens` at most; 0: as many as the context
    of `n_ctx` tokens holds. Raises ApiError.
    """
    changes = _same(request, n_ctx)
    changes["max_tokens"] = _most_tokens(request, n_ctx, max_tokens)
    if request.seed is not None:
        changes["seed"] = RANDOM_SEED if request.seed == -1 else request.seed & 0xFFFFFFFF
    if request.stop is not None:
        stops = [request.stop] if isinstance(request.stop, str) else request.stop
        changes["stop"] = tuple(text for text in stops if text)
    if request.mirostat is not None:
        changes["mirostat"] = list(Mirostat)[request.mirostat]
    if request.dry_sequence_breakers is not None:
        changes["dry_sequence_breakers"] = tuple(request.dry_sequence_breakers)
    if request.samplers is not None:
        changes["samplers"] = tuple(request.samplers)
    if request.logit_bias is not None:
        changes["logit_bias"] = _biases(request.logit_bias)
    schema, param = _schema(request)
    if schema:
        changes["json_schema"] = schema
    if changes.get("json_schema", base.json_schema) and changes.get("grammar"):
        raise ApiError(400, "Choose a grammar or a JSON schema: there can be only one.", "grammar", "invalid_value")
    try:
        return Sampling.model_validate({**base.model_dump(), **changes})
    except ValidationError as error:
        raise wrong_field(error, {"json_schema": param} if schema else None) from error


def _same(request: Sampled, n_ctx: int) -> dict[str, Any]:
    """What the request says by the names of `Sampling`."""
    found: dict[str, Any] = {
        name: value for name in _SAME if (value := getattr(request, name)) is not None and name in Sampling.model_fields
    }
    for name in _WINDOWS:
        if found.get(name) == -1:
            found[name] = n_ctx
    if found.get("top_k", 0) < 0:
        found["top_k"] = 0  # among all tokens
    return found


def seeded(sampling: Sampling, choice: int) -> Sampling:
    """Of several answers to one request each has its own seed, the same in each such request."""
    if not choice or sampling.seed == RANDOM_SEED:
        return sampling
    return sampling.model_copy(update={"seed": (sampling.seed + choice) % RANDOM_SEED})


def _most_tokens(request: Sampled, n_ctx: int, usual: int) -> int:
    others = request.max_completion_tokens if isinstance(request, ChatRequest) else None
    asked = next((n for n in (others, request.n_predict, request.max_tokens) if n is not None), None)
    if asked == 0:
        raise ApiError(400, "max_tokens: an answer has at least one token.", "max_tokens", "invalid_value")
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
                    raise ApiError(400, f"{param}: must be an object.", param, "invalid_value")
            case _:
                raise ApiError(
                    400,
                    f"response_format: {form.type[:100]} is not supported; text, json_object and json_schema are.",
                    "response_format",
                    "unsupported_value",
                )
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
        if bias is True or not isinstance(bias, int | float) or abs(bias) > -_BANNED:
            raise _wrong_bias("a bias is a number from -100 to 100, or false")
        found.append((token, _BANNED if bias is False else float(bias)))
    return tuple(found)


def _wrong_bias(said: str) -> ApiError:
    return ApiError(400, f"logit_bias: {said}.", "logit_bias", "invalid_value")
