"""The body of a request to a server: messages, and the parameters that the server knows."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from kvdesk.message import Message
from kvdesk.protocol.chat import Generate
from kvdesk.protocol.servers import ServerKind
from kvdesk.reasoning import parts_of
from kvdesk.settings import RANDOM_SEED, Mirostat, Sampling

_EVERYWHERE: Final = ("temperature", "top_p", "presence_penalty", "frequency_penalty", "max_tokens")
_LLAMA: Final = (
    *_EVERYWHERE, "top_k", "min_p", "typical_p", "top_n_sigma", "repeat_penalty", "repeat_last_n", "dynatemp_range",
    "dynatemp_exponent", "xtc_probability", "xtc_threshold", "dry_multiplier", "dry_base", "dry_allowed_length",
    "dry_penalty_last_n", "mirostat_tau", "mirostat_eta", "adaptive_target", "adaptive_decay",
)  # fmt: skip
_GPU: Final = (*_EVERYWHERE, "top_k", "min_p")
PARAMETERS: Final[Mapping[ServerKind, tuple[str, ...]]] = {
    "kvdesk": _LLAMA,
    "llama-server": _LLAMA,
    "vLLM": _GPU,
    "SGLang": _GPU,
    "other": _EVERYWHERE,
}
"""Settings that a kind of server knows under the same name; it would refuse or ignore others."""


def body_of(command: Generate, model: str, kind: ServerKind) -> dict[str, Any]:
    """The body of POST /v1/chat/completions. Raises ValueError if the JSON schema in the settings is invalid."""
    sampling = command.sampling
    body: dict[str, Any] = {
        "model": model,
        "messages": messages_of(command.messages, command.continued),
        "stream": True,
        "stream_options": {"include_usage": True},
        **{name: getattr(sampling, name) for name in PARAMETERS[kind]},
    }
    if sampling.stop:
        body["stop"] = list(sampling.stop)
    if sampling.json_schema.strip():
        schema = json.loads(sampling.json_schema)
        body["response_format"] = {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}
    if sampling.seed != RANDOM_SEED:
        body["seed"] = sampling.seed
    if kind in ("llama-server", "kvdesk"):
        body |= _of_llama(sampling)
    if kind == "llama-server":
        body["return_progress"] = True
    if kind in ("vLLM", "SGLang"):
        body["top_k"] = sampling.top_k or -1
        body["repetition_penalty"] = sampling.repeat_penalty
        if command.continued is not None:
            body |= {"continue_final_message": True, "add_generation_prompt": False}
    return body


def _of_llama(sampling: Sampling) -> dict[str, Any]:
    """Parameters of llama-server beyond the protocol. Its `mirostat` is a number."""
    extra: dict[str, Any] = {"cache_prompt": True, "samplers": [str(name) for name in sampling.samplers]}
    if sampling.dry_multiplier:
        extra["dry_sequence_breakers"] = list(sampling.dry_sequence_breakers)
    if sampling.logit_bias:
        extra["logit_bias"] = [list(bias) for bias in sampling.logit_bias]
    if sampling.mirostat is not Mirostat.OFF:
        extra["mirostat"] = int(sampling.mirostat)
    if sampling.grammar.strip():
        extra["grammar"] = sampling.grammar
    return extra


def messages_of(messages: Sequence[Message], continued: Message | None) -> list[dict[str, str]]:
    """Messages of the protocol. Earlier reasoning is left out, as in templates; a continued answer is last."""
    shown = [*messages, continued] if continued is not None else messages
    return [{"role": m.role, "content": _said(m) if m is not continued else m.text} for m in shown]


def _said(message: Message) -> str:
    parts = parts_of(message.text, message.marks) if message.role == "assistant" else None
    is_whole = parts is None or parts.thought_end == len(message.text.rstrip())  # reasoning that has not ended
    return message.text if parts is None or is_whole else message.text[parts.said : parts.said_end]
