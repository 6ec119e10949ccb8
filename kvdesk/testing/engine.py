"""The engine of kvdesk reads the requests of a conversation, as `kvdesk serve` would, and counts what it reused."""

from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from kvdesk import paths
from kvdesk.cache.reuse.prefix import common_prefix
from kvdesk.errors import ModelFileError, UserError
from kvdesk.headless import HeadlessEngine
from kvdesk.message import new_conversation_id, new_message_id
from kvdesk.protocol.chat import Client, Generate, LoadModel, RawPrompt, TurnEnded
from kvdesk.protocol.model import LocalFile
from kvdesk.protocol.prompt import Tokenize, Tokenized
from kvdesk.server.anthropic.request import MessagesRequest, chat_of_messages
from kvdesk.server.errors import ApiError
from kvdesk.server.openai.responses_request import ResponsesRequest, chat_of_response
from kvdesk.server.request.conversation import messages_of
from kvdesk.server.request.reasoning_options import options_of
from kvdesk.server.request.schemas import ChatRequest, parsed
from kvdesk.server.request.tools import tools_of
from kvdesk.settings import ContextSettings, Sampling
from kvdesk.testing.prompts import Asked
from kvdesk.testing.replay import Turn
from kvdesk.translation import tr

_CLIENT = Client("kv_cache")
_ONE_TOKEN = Sampling(temperature=0.0, max_tokens=1)
_QUOTE = 12
"""Tokens that are quoted behind a difference."""


def replayed(requests: Sequence[Asked], model: Path | None, n_ctx: int) -> tuple[Path, tuple[Turn, ...]]:
    """The file of the model, and one turn for each request. Raises UserError."""
    file = model or paths.embedded_model()
    if file is None:
        raise ModelFileError(tr("The embedded model is not installed; give the GGUF file of another model."))
    with closing(HeadlessEngine()) as headless:
        headless.do(LoadModel(LocalFile(file.absolute()), ContextSettings(n_ctx=n_ctx)))
        turns: list[Turn] = []
        before: Tokenized | None = None
        for number, asked in enumerate(requests, start=1):
            command = _command(asked, number)
            prompt = _prompt(headless, command, number)
            turns.append(_turn(headless, command, before, prompt, number))
            before = prompt
    return file, tuple(turns)


def _turn(
    headless: HeadlessEngine, command: Generate, before: Tokenized | None, prompt: Tokenized, number: int
) -> Turn:
    events = headless.do(command)
    ended = next(event for event in events if isinstance(event, TurnEnded) and event.answer == command.answer)
    if ended.state == "failed":
        raise UserError(tr("Request {n}: {why}").format(n=number, why=ended.note))
    stats = ended.stats
    if before is None:
        return Turn(stats.prompt_tokens, stats.reused_tokens, 0)
    n = min(len(before.tokens), len(prompt.tokens) - 1)
    at = common_prefix(before.tokens, prompt.tokens)
    if at >= n:
        return Turn(stats.prompt_tokens, stats.reused_tokens, n)
    return Turn(stats.prompt_tokens, stats.reused_tokens, n, at, _text(before, at), _text(prompt, at))


def _text(prompt: Tokenized, at: int) -> str:
    """The token and those after it."""
    return repr(b"".join(prompt.pieces[at : at + _QUOTE]).decode("utf-8", "replace"))


def _prompt(headless: HeadlessEngine, command: Generate, number: int) -> Tokenized:
    found = next(event for event in headless.do(Tokenize("", prompt=command)) if isinstance(event, Tokenized))
    if found.problem:
        raise UserError(tr("Request {n}: {why}").format(n=number, why=found.problem))
    return found


def _command(asked: Asked, number: int) -> Generate:
    """Raises UserError."""
    conversation, answer = new_conversation_id(), new_message_id()
    text = asked.body.get("prompt")
    if asked.tokens or isinstance(text, str):
        raw = RawPrompt(tokens=asked.tokens) if asked.tokens else RawPrompt(str(text))
        return Generate(conversation, answer, (), _ONE_TOKEN, client=_CLIENT, raw=raw)
    try:
        request = _chat(asked.body)
        messages, tools = messages_of(request.messages, conversation), tools_of(request)
        variables = options_of(request, -1).variables
    except ApiError as error:
        raise UserError(tr("Request {n}: {why}").format(n=number, why=error.message)) from error
    return Generate(conversation, answer, messages, _ONE_TOKEN, client=_CLIENT, tools=tools, variables=variables)


def _chat(body: Mapping[str, Any]) -> ChatRequest:
    """By the protocol that the body is of. Raises ApiError."""
    if "input" in body:
        request, _ = chat_of_response(parsed(ResponsesRequest, body), (), _unknown)
        return request
    if _is_anthropic(body):
        return chat_of_messages(parsed(MessagesRequest, body))
    return parsed(ChatRequest, body)


def _is_anthropic(body: Mapping[str, Any]) -> bool:
    """Only Anthropic's protocol has a system prompt beside the messages, and tools and calls in these forms."""
    blocks = [
        block
        for message in body["messages"]
        if isinstance(message.get("content"), list)
        for block in message["content"]
        if isinstance(block, dict)
    ]
    return (
        "system" in body
        or any("input_schema" in tool for tool in body.get("tools") or ())
        or any(block.get("type") in ("tool_use", "tool_result", "thinking") for block in blocks)
    )


def _unknown(name: str) -> dict[str, Any]:
    raise ApiError(400, f"{name} refers to a response of a server.", "input", "unsupported_value")
