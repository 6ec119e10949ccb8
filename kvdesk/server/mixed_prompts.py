"""Prompts as llama-server takes them: a text, token ids, both in one list, or an object around a text; one or several.

As `tokenize_input_prompts` (server-common.cpp): a list that has a number is one prompt, any other list is several.
"""

from collections.abc import Sequence
from typing import Final

from kvdesk.message import storable
from kvdesk.protocol.prompt import Detokenize, Tokenize
from kvdesk.server.errors import ApiError, invalid, unsupported
from kvdesk.server.request.parts import text_of
from kvdesk.server.service import Service
from kvdesk.values import dataclass

Part = str | tuple[int, ...]
_MOST_TOKEN: Final = 1 << 31


@dataclass(frozen=True, slots=True)
class TokenizedPrompt:
    """The ids of a prompt, and how they read with control tokens written out."""

    tokens: tuple[int, ...]
    text: str


def prompts_of(given: object, param: str, most: int) -> list[tuple[Part, ...]]:
    """The parts of each prompt, in order; at most `most` prompts. Raises ApiError that names `param`."""
    if not isinstance(given, list) or any(_is_number(part) for part in given):
        return [_parts(given, param)]
    if not given:
        raise invalid(param, "the list is empty")
    if len(given) > most:
        raise invalid(param, f"at most {most:,} of them are answered at once")
    return [_parts(one, f"{param}.{i}") for i, one in enumerate(given)]


async def tokens_of(service: Service, parts: Sequence[Part]) -> TokenizedPrompt:
    """The tokens that a prompt begins with, such as the beginning of a sequence, belong to a text that is first. Raises
    ApiError.
    """
    tokens: list[int] = []
    text = ""
    for i, part in enumerate(parts):
        if isinstance(part, str):
            found = await service.tokenized(Tokenize(part, add_special=i == 0))
        else:
            found = await service.tokenized(Detokenize(part))
        tokens += found.tokens
        text += found.text
    if not tokens:
        raise ApiError(400, "The prompt is empty.", "prompt", "invalid_value")
    return TokenizedPrompt(tuple(tokens), text)


def _parts(one: object, param: str) -> tuple[Part, ...]:
    match one:
        case str():
            return (storable(one),)
        case {"prompt_string": str(text), **more}:
            if more.get("multimodal_data"):
                raise unsupported(f"{param}.multimodal_data", "only text is supported")
            return (storable(text),)
        case {"content": [*content]}:
            return (text_of(content, f"{param}.content", between=""),)
        case [*inner] if inner:
            return _joined(inner, param)
    raise invalid(param, "must be a string, or a list of token ids and strings")


def _joined(inner: Sequence[object], param: str) -> tuple[Part, ...]:
    """Texts, and the ids between them."""
    parts: list[Part] = []
    for one in inner:
        if isinstance(one, str):
            parts.append(storable(one))
        elif _is_number(one) and 0 <= one < _MOST_TOKEN:  # type: ignore[operator]
            last = parts.pop() if parts and isinstance(parts[-1], tuple) else ()
            parts.append((*last, one))  # type: ignore[arg-type]
        else:
            raise invalid(param, "a token id is a number from 0 on")
    return tuple(parts)


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
