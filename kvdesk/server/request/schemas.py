"""The requests of the protocol as values. Unknown fields are ignored, and reported to the client
(`Body.passed_over`); one without which the answer would have another form than its client reads is refused. Fields that
are null count as absent.
"""

import json
import re
from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from kvdesk.codec import read_json
from kvdesk.message import storable
from kvdesk.server.errors import ApiError, unsupported
from kvdesk.server.request.samplers import unknown_samplers

IGNORED: Final = frozenset(
    {
        *("model", "user", "metadata", "store", "service_tier", "prompt_cache_key", "prompt_cache_retention"),
        *("safety_identifier", "return_tokens", "verbosity"),
        *("n_keep", "n_discard", "t_max_predict_ms", "samplers_seq", "cache_salt"),
    }
)
"""Fields that change no answer here: who asks, how it is billed. `model`: the one that is open answers."""
OTHER_NAMES: Final = {
    "repetition_penalty": "repeat_penalty",
    "typ_p": "typical_p",
    **dict.fromkeys(
        ("thinking_budget_tokens", "reasoning_budget", "thinking_budget", "thinking_token_budget"),
        "reasoning_budget_tokens",
    ),
}
"""What other servers call a field."""
_MOST_PASSED_OVER: Final = 20
_KINDS: Final = frozenset({"str", "int", "float", "bool"})  # where a field may have several
_PLAIN_NAME: Final = re.compile(r"[A-Za-z0-9_.-]{1,64}")
MOST_CHOICES: Final = 16
MOST_ANSWERS: Final = 128
"""Of one request with several prompts: LangChain sends 20 at once."""
MOST_PROBS: Final = 20
MOST_MESSAGES: Final = 10_000


def _whole(value: object) -> object:
    return int(value) if isinstance(value, float) and value.is_integer() else value


Whole = Annotated[int, BeforeValidator(_whole)]
"""A whole number, which some clients write as 2.0."""
Share = Annotated[float, Field(ge=0.0, le=1.0)]
Penalty = Annotated[float, Field(ge=-2.0, le=2.0)]
B = TypeVar("B", bound="Body")


class Body(BaseModel):
    """Of any request. Strict: a text is no number."""

    model_config = ConfigDict(extra="allow", strict=True, frozen=True, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _known(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            raise ValueError("The body must be a JSON object")
        ignored = IGNORED - cls.model_fields.keys()
        found = {name: part for name, part in value.items() if part is not None and name not in ignored}
        for other, name in OTHER_NAMES.items():
            if other in found:
                found.setdefault(name, found[other])
                del found[other]
        return found

    def passed_over(self) -> tuple[str, ...]:
        """Fields that are not known here, as far as a header can name them."""
        return tuple(name for name in self.unknown() if _PLAIN_NAME.fullmatch(name))[:_MOST_PASSED_OVER]

    def unknown(self) -> list[str]:
        """What is not known here: fields by their names."""
        names = list(self.model_extra or ())
        for name in type(self).model_fields:
            if isinstance(inner := getattr(self, name), Body):
                names += [f"{name}.{one}" for one in inner.unknown()]
        return names


class StreamOptions(Body):
    include_usage: bool = False
    include_obfuscation: bool = False


class ResponseFormat(Body):
    """`schema`: also llama-server's short form, beside the type json_object."""

    type: str
    json_schema: dict[str, Any] | None = None
    schema_: dict[str, Any] | None = Field(None, alias="schema")


class Prediction(Body):
    """What the answer may be. `content`: a text, or a list of parts, as that of a message."""

    type: Literal["content"]
    content: str | list[Any]


class Sampled(Body):
    """What both kinds of completions have: how tokens are chosen, how many answers, how they come.

    The names are the protocol's, then llama-server's.
    """

    n: Whole = Field(1, ge=1, le=MOST_CHOICES)
    stream: bool = False
    stream_options: StreamOptions | None = None
    stop: str | list[str] | None = None
    seed: Whole | None = None
    max_tokens: Whole | None = Field(None, ge=-1)
    n_predict: Whole | None = Field(None, ge=-1)
    temperature: float | None = Field(None, ge=0.0, le=5.0)
    top_p: Share | None = None
    presence_penalty: Penalty | None = None
    frequency_penalty: Penalty | None = None
    logit_bias: dict[str, Any] | list[Any] | None = None  # read by `kvdesk.server.request.sampling`
    response_format: ResponseFormat | None = None
    grammar: str | None = None
    json_schema: dict[str, Any] | None = None
    cache_prompt: bool = True
    id_slot: Whole = Field(-1, ge=-1)
    ignore_eos: bool = False
    timings_per_token: bool = False
    top_k: Whole | None = None
    min_p: Share | None = None
    typical_p: Share | None = None
    top_n_sigma: float | None = None
    xtc_probability: float | None = None
    xtc_threshold: float | None = None
    dry_multiplier: float | None = None
    dry_base: float | None = None
    dry_allowed_length: Whole | None = None
    dry_penalty_last_n: Whole | None = None
    dry_sequence_breakers: list[str] | None = None
    dynatemp_range: float | None = None
    dynatemp_exponent: float | None = None
    repeat_penalty: float | None = None
    repeat_last_n: Whole | None = None
    mirostat: Whole | None = Field(None, ge=0, le=2)
    mirostat_tau: float | None = None
    mirostat_eta: float | None = None
    adaptive_target: float | None = None
    adaptive_decay: float | None = None
    samplers: str | list[str] | None = None  # read by `kvdesk.server.request.samplers`

    def unknown(self) -> list[str]:
        return [*super().unknown(), *(f"samplers.{name}" for name in unknown_samplers(self.samplers or ()))]

    @property
    def usage_in_stream(self) -> bool:
        return self.stream_options is not None and self.stream_options.include_usage


class ChatOptions(Sampled):
    """What every protocol of chats takes, beside its own fields: what the chat template gets, and reasoning."""

    reasoning_format: str | None = None
    reasoning_effort: str | None = None
    chat_template_kwargs: dict[str, Any] | None = None
    enable_thinking: bool | None = None
    reasoning_budget_tokens: Whole | None = Field(None, ge=-1)
    thinking: Any = None  # Anthropic's and DeepSeek's: {"type": "enabled", "budget_tokens": 1024}
    reasoning: Any = None  # OpenRouter's and that of responses: {"effort": "low", "max_tokens": 1024, "enabled": true}
    parallel_tool_calls: bool = True
    return_progress: bool = False


class ChatRequest(ChatOptions):
    """`/v1/chat/completions`, and what the requests of all other protocols become. `messages` are read by
    `kvdesk.server.request.conversation`. `functions` are what tools were; `continue_final_message` is what happens
    anyway to an answer at the end.
    """

    messages: list[dict[str, Any]] = Field(min_length=1, max_length=MOST_MESSAGES)
    max_completion_tokens: Whole | None = Field(None, ge=-1)
    logprobs: bool = False
    top_logprobs: Whole | None = Field(None, ge=0, le=MOST_PROBS)
    tools: list[dict[str, Any]] | None = Field(None, max_length=1000)
    tool_choice: str | dict[str, Any] | None = None
    continue_final_message: bool = False
    add_generation_prompt: bool | None = None
    functions: list[Any] | None = None
    modalities: list[str] | None = None
    prediction: Prediction | None = None


def as_chat(request: ChatOptions, messages: list[dict[str, Any]], more: Mapping[str, Any]) -> ChatRequest:
    """A request of another protocol as one of chat completions: with its options, `messages`, and `more` fields that
    are checked already. Raises ApiError.
    """
    if request.n != 1:
        raise unsupported("n", "this protocol has one answer")
    given = {name: getattr(request, name) for name in ChatOptions.model_fields if name in request.model_fields_set}
    more = {name: value for name, value in more.items() if value is not None}
    return ChatRequest.model_construct(None, **{**given, "messages": messages, **more})


class CompletionRequest(Sampled):
    """`/v1/completions`. `prompt` is read by `kvdesk.server.mixed_prompts`; `suffix` comes behind the answer."""

    prompt: Any
    suffix: str = ""
    logprobs: Whole | None = Field(None, ge=0, le=MOST_PROBS)
    echo: bool = False
    best_of: Whole | None = None


def read(kind: type[B], body: bytes) -> B:
    """The request in a body. Raises ApiError with a sentence that names the field."""
    try:
        value = read_json(body)
        if b"\\ud" in body.lower():  # half a character, which no answer could name
            value = json.loads(storable(json.dumps(value, ensure_ascii=False)))
    except (ValueError, RecursionError) as error:
        raise ApiError(400, f"The body is no JSON: {str(error)[:200]}.") from error
    return parsed(kind, value)


def parsed(kind: type[B], value: object, names: Mapping[str, str] | None = None) -> B:
    """`names`: as in `wrong_field`. Raises ApiError."""
    try:
        return kind.model_validate(value)
    except ValidationError as error:
        raise wrong_field(error, names) from error
    except RecursionError as error:
        raise ApiError(400, "The body is nested too deeply.") from error


def wrong_field(error: ValidationError, names: Mapping[str, str] | None = None) -> ApiError:
    """The first thing that is wrong, in a sentence. `names`: what fields are called where the client named them."""
    first = error.errors(include_url=False, include_context=False)[0]
    path = [str(part) for part in first["loc"] if isinstance(part, int) or (part.isidentifier() and part not in _KINDS)]
    param = ".".join(path) or None
    if names is not None and param is not None:
        param = names.get(path[0], param)
    if first["type"] == "missing":
        return ApiError(400, f"The field {param} is missing.", param, "missing_required_parameter")
    said = str(first["msg"]).removeprefix("Value error, ")
    return ApiError(400, f"{param}: {said}." if param else f"{said}.", param, "invalid_value")
