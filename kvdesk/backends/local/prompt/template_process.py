"""Renders a chat template in a separate process, which alone suffers whatever an untrusted template does.

Limits inside Jinja2 do not work: every filter, method and literal that makes text or containers would have to be
metered by name, and one that is overlooked fills the memory of the process that holds the conversations. A thread
cannot stop a long computation inside one C call. Another engine (minijinja has fuel) does not work either: templates
are written for Python's Jinja2 and its methods, and one different byte is another prompt. A process can be limited and
killed, and costs a fraction of a millisecond per rendering.

The system limits memory where it can (RLIMIT_AS), and everywhere the process is checked while it works.

Owns the process: it starts with the template, is killed when it takes too much time or memory, and starts again with
the next rendering. If it ends on its own, something else may have killed it, such as a system that is out of memory:
the same is asked of another process once. Knows nothing of Jinja2.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from kvdesk.backends.local.prompt.rendering import Rendering
from kvdesk.backends.local.prompt.template_child import Answer, Compile, Render
from kvdesk.backends.local.prompt.template_errors import MODELS_OWN, stopped
from kvdesk.backends.local.prompt.template_traits import TemplateTraits
from kvdesk.children.process import Child, ChildStopped, child_command
from kvdesk.errors import TemplateError, TemplateStopped
from kvdesk.message import Message
from kvdesk.translation import tr
from kvdesk.values import replace

TIME_LIMIT_S = 2.0  # for everything one rendering does
START_LIMIT_S = 30.0  # for the start of the process on a busy machine
MEMORY_LIMIT = 600_000_000  # bytes of real memory
T = TypeVar("T")


class _Ended(TemplateStopped):
    """The process has ended on its own."""


class TemplateProcess:
    """A chat template in a child process. Not for two threads at once. `close` it.

    `source` may be empty for ChatML. `control_tokens`, `name`: as in `ChatTemplate`. Returns before the process is
    ready; an invalid template is noticed at the first rendering.
    """

    def __init__(
        self,
        source: str,
        bos_token: str = "",
        eos_token: str = "",
        control_tokens: frozenset[str] = frozenset(),
        name: str = MODELS_OWN,
    ) -> None:
        self._name = name
        self._special = bos_token, eos_token, control_tokens
        self._child: _Child | None = None
        self._refused: TemplateError | None = None
        self._source, self._template = source, self._request(source)
        self._begin()

    def use(self, source: str) -> None:
        """Render with this template from now on, in the same process."""
        if source != self._source:
            self._source, self._template, self._refused = source, self._request(source), None

    def rendering(
        self, messages: Sequence[Message], add_generation_prompt: bool, tools: str = "", variables: str = ""
    ) -> Rendering:
        """Render `messages`, oldest first. `tools`, `variables`: as in `Generate`.

        Raises TemplateError: broken, refusing, forbidden or endless template.
        """
        request = Render(tuple(map(_short, messages)), add_generation_prompt, tools, variables)

        def render() -> Rendering:
            child = self._compiled()
            child.send_value(request)
            rendering = _checked(child.answer(TIME_LIMIT_S)).rendering
            assert rendering is not None
            return rendering

        return _twice(render)

    @property
    def traits(self) -> TemplateTraits:
        """The template's traits; if it cannot be compiled, empty ones."""
        try:
            return _twice(self._compiled).traits
        except TemplateError:
            return TemplateTraits()

    def close(self) -> None:
        """End the process."""
        if self._child is not None:
            self._child.close()
            self._child = None

    def _compiled(self) -> _Child:
        """The process, ready to render. Raises TemplateError."""
        if self._refused is not None:
            raise self._refused
        if self._child is None or self._child.wait(0.0) is not None:
            self._begin()
        if self._child is None:
            raise TemplateError(tr("The process that renders chat templates could not be started."))
        try:
            self._child.compile(self._template)
        except _Ended:
            raise
        except TemplateError as error:
            self._refused = error  # another process would fail too
            raise
        return self._child

    def _request(self, source: str) -> Compile:
        return Compile(source, *self._special, self._name)

    def _begin(self) -> None:
        self.close()
        try:
            self._child = _Child(self._template, self._name)
        except OSError:
            self._child = None


class _Child(Child):
    """The process, and what it has compiled.

    template  what it compiles while it starts; name: of the template, for sentences
    """

    def __init__(self, template: Compile, name: str) -> None:
        self._name = name
        self._template = template
        self._is_there = False
        self._is_compiling = True
        self.traits = TemplateTraits()
        super().__init__(child_command("--render"), memory=MEMORY_LIMIT)
        self.send_value(template)

    def compile(self, template: Compile) -> None:
        """Return once it renders with this template. Raises TemplateError if that cannot be compiled."""
        if not self._is_there:
            self.answer(START_LIMIT_S)
            self._is_there = True
        if template is not self._template:
            if self._is_compiling:
                self.answer(TIME_LIMIT_S)  # errors of the previous template do not matter
            self._template, self._is_compiling = template, True
            self.send_value(template)
        if self._is_compiling:
            answer = self.answer(TIME_LIMIT_S)
            self._is_compiling = False
            self.traits = _checked(answer).traits or TemplateTraits()

    def answer(self, limit_s: float) -> Answer:
        """The next answer. Raises TemplateError if it takes longer than `limit_s` or too much memory, or never comes;
        the process is then dead.
        """
        try:
            answer: Answer = self.receive_value(limit_s, kind=Answer)
        except ChildStopped as error:
            self.close()
            if error.reason == "time":
                sentence = tr("{name} did not finish within {limit_s:g} seconds.")
                raise TemplateStopped(sentence.format(name=self._name, limit_s=limit_s)) from error
            kind = _Ended if error.reason == "ended" else TemplateStopped
            raise kind(stopped(self._name), error.detail) from error
        return answer


def _twice(ask: Callable[[], T]) -> T:
    """What `ask` returns, which is called again if the process has ended meanwhile."""
    try:
        return ask()
    except _Ended:
        return ask()


def _short(message: Message) -> Message:
    """Without fields that no template reads; of the tokens only whether there are any."""
    return replace(message, tokens=message.tokens[:1], attachments=())


def _checked(answer: Answer) -> Answer:
    if answer.error:
        raise TemplateError(answer.error, answer.detail)
    return answer
