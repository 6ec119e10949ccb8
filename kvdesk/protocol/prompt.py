"""What a back end that renders prompts itself shows of them: their tokens, and what changing them costs.

Frozen values, as all of the protocol. Needs `Feature.PROMPT_VIEW`.
"""

from kvdesk.message import ConversationId
from kvdesk.protocol.chat import Generate, PreviewTurn
from kvdesk.values import dataclass


@dataclass(frozen=True, slots=True)
class PreviewPrompt:
    """How is `turn` rendered, and what does it cost more than `now`, the same turn without what is being changed?
    Answered by `PromptPreview`, always. A turn whose last message is an answer ends with that.

    number   is returned with the answer, so that answers to older questions are known
    """

    turn: PreviewTurn
    now: PreviewTurn
    number: int = 0


@dataclass(frozen=True, slots=True)
class PromptToken:
    """One token of a prompt. `text`: how it reads; "" if a character goes on in the next token.

    is_special   a control token, such as the one that begins a message
    """

    id: int
    text: str
    is_special: bool = False


@dataclass(frozen=True, slots=True)
class PromptPreview:
    """The rendered prompt of a turn and its cost in the cache.

    number          of the question
    model_template  the chat template of the model (Jinja), or the plain one that is used if it has none
    problem         why the prompt cannot be made, "" if it can; all that follows is then empty
    refused         why it could not be sent, such as a full context; "" if it could
    tokens          of the prompt, the middle of a long one left out: `n_left_out` tokens after the first `n_head`
    n_tokens        of the whole prompt
    n_cached        that many at its beginning are in the cache, or in a saved state
    n_again         tokens that are prefilled because of the change: beside those that the turn costs without it
    again_ms        what those take, in milliseconds; None while nothing was measured
    """

    conversation: ConversationId
    number: int
    model_template: str = ""
    problem: str = ""
    refused: str = ""
    tokens: tuple[PromptToken, ...] = ()
    n_head: int = 0
    n_left_out: int = 0
    n_tokens: int = 0
    n_cached: int = 0
    n_again: int = 0
    again_ms: float | None = None

    def position(self, index: int) -> int:
        """Position in the prompt of the token `tokens[index]`."""
        return index if index < self.n_head else index + self.n_left_out


@dataclass(frozen=True, slots=True)
class Tokenize:
    """Which tokens is this text? Answered by `Tokenized`, always.

    add_special    with the tokens that begin and end a text, where the model has such
    parse_special  control tokens that are written out are those, and not text
    prompt         in the place of the text: the prompt of this request, which is not answered
    begins         the answer begins behind that prompt, as the chat template has it
    """

    text: str
    add_special: bool = False
    parse_special: bool = True
    number: int = 0
    prompt: Generate | None = None
    begins: bool = True


@dataclass(frozen=True, slots=True)
class Detokenize:
    """Which text are these tokens? Answered by `Tokenized`, always."""

    tokens: tuple[int, ...]
    number: int = 0


@dataclass(frozen=True, slots=True)
class Tokenized:
    """A text and its tokens; `pieces`: the bytes of each. `problem`: why there are none, a sentence; "" as a rule."""

    number: int
    text: str = ""
    tokens: tuple[int, ...] = ()
    pieces: tuple[bytes, ...] = ()
    problem: str = ""


@dataclass(frozen=True, slots=True)
class PriceTools:
    """What do the schemas of tool servers cost in the prompt of `turn`? Answered by `ToolsPriced`, always.

    turn     with the tools of all servers
    without  by the name of a server, the tools of all others, as in `Generate`
    number   is returned with the answer
    """

    turn: PreviewTurn
    without: tuple[tuple[str, str], ...]
    number: int = 0


@dataclass(frozen=True, slots=True)
class ToolPrice:
    """Of one server.

    n_tokens    that the prompt has more with it; ms: what reading those takes, None while nothing was measured
    p0, p1      positions [p0, p1) of the prompt in which its schemas are
    n_again     tokens after them, read again when the server is switched off or on; again_ms: what that takes
    """

    server: str
    n_tokens: int
    p0: int
    p1: int
    n_again: int
    ms: float | None = None
    again_ms: float | None = None


@dataclass(frozen=True, slots=True)
class ToolsPriced:
    """The price of each server, in tokens of the prompt and of a context of `n_ctx`. `problem`: why there is none."""

    conversation: ConversationId
    number: int
    prices: tuple[ToolPrice, ...] = ()
    n_ctx: int = 0
    problem: str = ""


PromptCommand = PreviewPrompt | Tokenize | Detokenize | PriceTools
PromptEvent = PromptPreview | Tokenized | ToolsPriced
