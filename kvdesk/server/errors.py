"""Errors in the form of the OpenAI protocol, `{"error": {"message", "type", "param", "code"}}`, in Anthropic's where
the path is one of theirs: `{"type": "error", "error": {"type", "message"}}`, and in Ollama's: `{"error": message}`.
"""

from collections.abc import Mapping
from typing import Any, Final

from starlette.responses import JSONResponse

_TYPES: Mapping[int, str] = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    405: "invalid_request_error",
    408: "timeout_error",
    413: "invalid_request_error",
    415: "invalid_request_error",
    429: "rate_limit_error",
    501: "not_supported_error",
    503: "unavailable_error",
}
_ANTHROPIC: Final = "/v1/messages"
"""Paths that begin with it have errors in Anthropic's form."""
_OLLAMA: Final = "/api/"
_ANTHROPIC_TYPES: Mapping[int, str] = {**_TYPES, 413: "request_too_large", 503: "overloaded_error"}


class ApiError(Exception):
    """What a client gets instead of an answer. `param`: the wrong field; `code`: for programs; `more`: other members of
    the error.
    """

    def __init__(
        self,
        status: int,
        message: str,
        param: str | None = None,
        code: str | None = None,
        retry_s: int = 0,
        more: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.status, self.message, self.param, self.code, self.retry_s = status, message, param, code, retry_s
        self.more = more or {}

    def body(self) -> dict[str, Any]:
        kind = _TYPES.get(self.status, "server_error")
        return {"error": {"message": self.message, "type": kind, "param": self.param, "code": self.code, **self.more}}

    def anthropic_body(self) -> dict[str, Any]:
        """A prompt that is too long in Anthropic's words, by which their clients know it."""
        message, more = self.message, self.more
        if self.code == "context_length_exceeded":
            message = f"prompt is too long: {more['n_prompt_tokens']} tokens > {more['n_ctx']} maximum"
        kind = _ANTHROPIC_TYPES.get(self.status, "api_error")
        return {"type": "error", "error": {"type": kind, "message": message}}

    def response(self, path: str = "") -> JSONResponse:
        """In the form of the protocol that the path of the request belongs to."""
        body = self.anthropic_body() if path.startswith(_ANTHROPIC) else self.body()
        if path.startswith(_OLLAMA):
            body = {"error": self.message}
        headers = {"retry-after": str(self.retry_s)} if self.retry_s else {}
        if self.status == 401:
            headers["www-authenticate"] = "Bearer"
        return JSONResponse(body, self.status, headers)


def invalid(at: str, said: str) -> ApiError:
    """A wrong value of the field `at`."""
    return ApiError(400, f"{at}: {said}.", at, "invalid_value")


def unsupported(at: str, said: str) -> ApiError:
    """A value of the field `at` that is right elsewhere, such as a picture."""
    return ApiError(400, f"{at}: {said}.", at, "unsupported_value")
