"""`POST /infill`: what is between two texts. The prompt is llama-server's (server-common.cpp,
`format_prompt_infill`): files around it, what is before and behind, each behind a token that marks it.
"""

import asyncio
from collections.abc import Sequence
from typing import Final

from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from kvdesk.message import storable
from kvdesk.protocol.chat import RawPrompt
from kvdesk.protocol.model import InfillTokens
from kvdesk.protocol.prompt import Tokenize
from kvdesk.server.errors import ApiError
from kvdesk.server.llama_server.completions import LlamaCompletion, LlamaSampled
from kvdesk.server.mixed_prompts import tokens_of
from kvdesk.server.request.sampling import check_schema
from kvdesk.server.request.schemas import Body
from kvdesk.server.service import Service

_REPOSITORY, _FILE = "myproject\n", "filename\n"
_SNIPPET: Final = "\n\n--- snippet ---\n\n"
"""Between files for a model without a token for that."""


class InfillFile(Body):
    """Another file of the same project."""

    text: str
    filename: str = "tmp"


class InfillRequest(LlamaSampled):
    """`/infill`. `prompt` is the beginning of what is filled in."""

    input_prefix: str
    input_suffix: str
    input_extra: list[InfillFile] = Field(default_factory=list, max_length=1000)
    prompt: str = ""


async def infill(service: Service, http: Request) -> Response:
    """As llama-server has it: the text between `input_prefix` and `input_suffix`, for models with tokens for it, such
    as Qwen's coders.
    """
    request = await service.body(http, InfillRequest)
    await check_schema(request)
    prompt = await tokens_of(service, (await tokens_to_fill(service, request),))
    return LlamaCompletion(service, request, http, [prompt]).response()


async def filled(service: Service, before: str, behind: str) -> RawPrompt:
    """The prompt of a text between two others, for protocols that call the second one a suffix. Raises ApiError."""
    request = InfillRequest(input_prefix=before, input_suffix=behind)
    return RawPrompt(tokens=await tokens_to_fill(service, request))


async def tokens_to_fill(service: Service, request: InfillRequest) -> tuple[int, ...]:
    """Of the whole prompt. Raises ApiError."""
    marks, context = service.model.infill, service.state.context
    if context is None or not marks.fills:
        raise ApiError(501, "The model has no tokens for a text that is filled in.", code="not_supported")

    async def read(text: str, *, special: bool = False) -> tuple[int, ...]:
        return (await service.tokenized(Tokenize(storable(text), parse_special=special))).tokens

    repository = [marks.repository, *await read(_REPOSITORY)] if marks.repository >= 0 else []
    mark = [marks.separator] if marks.separator >= 0 else []
    extra = repository
    for file in request.input_extra:
        heading, text = await asyncio.gather(read(file.filename + "\n" if mark else _SNIPPET), read(file.text))
        extra += [*mark, *heading, *text]
    if mark:
        extra += [*mark, *await read(_FILE)]
    prefix, suffix = await read(request.input_prefix), await read(request.input_suffix)
    begun = await read(request.prompt, special=True) if request.prompt else ()
    bos = (await service.tokenized(Tokenize("", add_special=True))).tokens[:1]
    room = service.n_ctx - context.n_batch - 2 * service.config.max_tokens
    return tuple(infill_prompt(marks, extra[-room:] if room > 0 else [], bos, prefix, suffix, begun, context.n_batch))


def infill_prompt(
    marks: InfillTokens,
    extra: Sequence[int],
    bos: Sequence[int],
    prefix: Sequence[int],
    suffix: Sequence[int],
    begun: Sequence[int],
    n_batch: int,
) -> list[int]:
    """The tokens. Three quarters of a batch are for the end of what is before, one for the beginning of what is after
    with `begun`, the beginning of the answer.
    """
    n_suffix = max(0, n_batch // 4 - 2 - len(begun))
    before = prefix[max(0, len(prefix) - 3 * (n_batch // 4)) :]
    return [*extra, *bos, marks.prefix, *before, *begun, marks.suffix, *suffix[:n_suffix], marks.middle]
