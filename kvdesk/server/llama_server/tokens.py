"""`POST /tokenize` and `POST /detokenize`, as llama-server has them."""

from pydantic import Field
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from kvdesk.protocol.prompt import Detokenize, Tokenize
from kvdesk.server.errors import invalid
from kvdesk.server.request.schemas import Body
from kvdesk.server.service import Service

MOST_PROMPT_TOKENS = 1 << 20


class TokenizeRequest(Body):
    """`/tokenize`."""

    content: str
    add_special: bool = False
    parse_special: bool = True
    with_pieces: bool = False


class DetokenizeRequest(Body):
    """`/detokenize`."""

    tokens: list[int] = Field(max_length=MOST_PROMPT_TOKENS)


async def tokenize(service: Service, http: Request) -> Response:
    """As llama-server has it: the tokens of a text."""
    asked = await service.body(http, TokenizeRequest)
    most = service.config.limits.text_chars
    if len(asked.content) > most:
        raise invalid("content", f"has more than {most:,} characters")
    found = await service.tokenized(Tokenize(asked.content, asked.add_special, asked.parse_special))
    if not asked.with_pieces:
        return JSONResponse({"tokens": list(found.tokens)})
    pairs = zip(found.tokens, found.pieces, strict=True)
    return JSONResponse({"tokens": [{"id": token, "piece": _piece(piece)} for token, piece in pairs]})


async def detokenize(service: Service, http: Request) -> Response:
    """As llama-server has it: the text of tokens."""
    asked = await service.body(http, DetokenizeRequest)
    found = await service.tokenized(Detokenize(tuple(asked.tokens)))
    return JSONResponse({"content": found.text})


def _piece(piece: bytes) -> str | list[int]:
    """Bytes where they are no text."""
    try:
        return piece.decode()
    except UnicodeDecodeError:
        return list(piece)
