"""The child process of a template process: compiles a chat template and renders with it, until it gets another.

Owns nothing that outlives it, so it may be killed at any moment. `template_process` starts it. Knows nothing of
llama.cpp.
"""

from collections.abc import Sequence

import msgspec

from kvdesk.backends.local.prompt.rendering import Rendering
from kvdesk.backends.local.prompt.template_traits import TemplateTraits
from kvdesk.backends.local.prompt.templates import ChatTemplate
from kvdesk.children.entry import Parent, limit
from kvdesk.errors import TemplateError
from kvdesk.message import Message
from kvdesk.values import dataclass

MEMORY_LIMIT = 1 << 30  # bytes of address space; Python and Jinja2 need a fifth of it


class Compile(msgspec.Struct, frozen=True, tag=True):
    """Compile a template, as `ChatTemplate` takes it."""

    source: str
    bos_token: str
    eos_token: str
    control_tokens: frozenset[str]
    name: str


class Render(msgspec.Struct, frozen=True, tag=True):
    """Render messages with the template, as `ChatTemplate.rendering` takes them."""

    messages: tuple[Message, ...]
    add_generation_prompt: bool
    tools: str
    variables: str


@dataclass(frozen=True, slots=True)
class Answer:
    """Answer to a request; an empty one is sent once the process has started. error: why there is no result."""

    traits: TemplateTraits | None = None
    rendering: Rendering | None = None
    error: str = ""
    detail: str = ""


def child_main(parent: Parent, _argv: Sequence[str]) -> int:
    """Answers requests until the parent ends."""
    limit(MEMORY_LIMIT)
    template: ChatTemplate | None = None
    parent.send_value(Answer())
    while True:
        request: Compile | Render = parent.receive_value(Compile | Render)
        try:
            if isinstance(request, Compile):
                template = ChatTemplate(*msgspec.structs.astuple(request))
                answer = Answer(template.traits)
            else:
                assert template is not None, "nothing is rendered before a template was compiled"
                answer = Answer(rendering=template.rendering(*msgspec.structs.astuple(request)))
        except TemplateError as error:
            answer = Answer(error=str(error), detail=error.detail[:10_000])
        parent.send_value(answer)
