"""What a request of Ollama's protocol has beside its text, as fields of a chat request."""

from typing import Any, Final

from pydantic import Field

from kvdesk.server.request.sampling import SAME
from kvdesk.server.request.schemas import MOST_PROBS, Body, Whole

_SAME: Final = SAME | {"mirostat", "seed", "stop"}
"""Options that have the same name in a chat request."""
_LIMIT: Final = "num_predict"
NAMES: Final = {
    **{name: f"options.{name}" for name in _SAME},
    "max_tokens": f"options.{_LIMIT}",
    "response_format": "format",
    "reasoning_effort": "think",
}
"""What a client calls the fields of a chat request."""


class OllamaRequest(Body):
    """`format`: "json" or a JSON schema; `think`: whether, or how much; `options`: those of `_SAME`, and `num_predict`,
    the most tokens of the answer, 0 or less: no limit. `keep_alive`: how long the model stays, which is until the end.
    """

    stream: bool = True
    format: str | dict[str, Any] | None = None
    think: bool | str | None = None
    options: dict[str, Any] = Field(default_factory=dict)
    logprobs: bool = False
    top_logprobs: Whole = Field(0, ge=0, le=MOST_PROBS)
    keep_alive: Any = None

    @property
    def n_probs(self) -> int:
        """As in `Generate`."""
        return self.top_logprobs if self.logprobs else -1

    def unknown(self) -> list[str]:
        return [*super().unknown(), *(f"options.{name}" for name in self.options if name not in (*_SAME, _LIMIT))]

    def fields(self) -> dict[str, Any]:
        """As a chat request has them, not checked yet."""
        found: dict[str, Any] = {name: self.options.get(name) for name in _SAME}
        limit = self.options.get(_LIMIT)
        found["max_tokens"] = -1 if isinstance(limit, int | float) and limit <= 0 else limit
        found |= {"stream": self.stream, "logprobs": self.logprobs, "top_logprobs": self.top_logprobs}
        if isinstance(self.format, dict):
            found["response_format"] = {"type": "json_schema", "json_schema": {"schema": self.format}}
        elif self.format:
            found["response_format"] = {"type": "json_object" if self.format == "json" else self.format}
        found["enable_thinking" if isinstance(self.think, bool) else "reasoning_effort"] = self.think
        return found
