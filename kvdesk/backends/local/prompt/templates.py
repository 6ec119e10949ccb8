"""Renders a conversation with the model's chat template, split into text to parse, text to leave alone, and answers.

Owns the template and its input. Knows nothing of tokens except the texts of control tokens. The output is as Hugging
Face transformers would render it, with the beginning-of-sequence token if the template writes it.

An untrusted template may compute forever and fill the memory, so it is rendered in a separate process
(`template_process`).
"""

import json
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from itertools import chain
from typing import Any

from jinja2.exceptions import SecurityError

from kvdesk.backends.local.prompt.jinja_sandbox import Sandbox
from kvdesk.backends.local.prompt.rendering import Rendering, segments_of
from kvdesk.backends.local.prompt.template_calls import with_calls
from kvdesk.backends.local.prompt.template_errors import MODELS_OWN, template_error
from kvdesk.backends.local.prompt.template_spans import ControlTexts, SplitText, TemplateSpanFinder
from kvdesk.backends.local.prompt.template_tools import (
    calls_as_text,
    complete,
    one_call_each,
    questions_in_turn,
    results_as_questions,
    results_in_calls,
    told_of_tools,
    with_objects,
    with_short_ids,
)
from kvdesk.backends.local.prompt.template_traits import BLOCKS, TemplateTraits, answer_in_form, traits_of
from kvdesk.errors import TemplateError
from kvdesk.message import Message, MessageId, fields_of, fields_text
from kvdesk.reasoning import AnswerParts, parts_of, written
from kvdesk.translation import tr
from kvdesk.values import dataclass, field, replace

MAX_SOURCE = 1 << 20  # characters of a template; the longest known ones have about 20,000
OWN_TEXT = 100_000
"""Characters that a template may add, besides REPEATED times those of the messages and OWN_PER_MESSAGE for each. This
limits what is tokenized. The longest known template adds 5,000."""
REPEATED, OWN_PER_MESSAGE = 4, 1000
PROBE_TEXT, PROBE_DAY = OWN_TEXT, datetime(2025, 1, 1, tzinfo=UTC)
"""Characters that a probe of the template's traits may return, and its day."""
PROBE_S = 0.5  # for all probes; a slower template has no traits
_IN_PARTS = (frozenset(), *map(frozenset, (("system", "user", "assistant", "tool"), ("system", "user"), ("user",))))
"""Roles whose contents a template may accept only as typed parts, in the order of attempts."""
THOUGHT_FIELD = "reasoning_content"
"""Field of an answer for reasoning that its text does not contain."""
_OWN_VARIABLES = frozenset(
    ("messages", "add_generation_prompt", "tools", "documents", "strftime_now", "bos_token", "eos_token")
)
"""Variables of a template that only kvdesk sets."""
CHATML_MARK = "<|im_start|>"
"""With which `FALLBACK` begins every message."""
FALLBACK = (  # ChatML, for a GGUF without a template
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)


@dataclass(frozen=True, slots=True)
class _Given:
    """Input of a template besides the messages.

    parts    roles whose contents it accepts only as typed parts
    strings  strings in tools and fields, with their replacements
    """

    add_generation_prompt: bool
    now: datetime
    tools: str
    variables: str
    parts: frozenset[str] = frozenset()
    strings: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Seen:
    """Messages, and their texts as the template gets them; separate reasoning follows them.

    thoughts  by index of an answer, the index of its reasoning among the texts
    parts     of the split answers, by index
    """

    messages: Sequence[Message]
    texts: Sequence[str]
    thoughts: Mapping[int, int]
    parts: Mapping[int, AnswerParts]


class ChatTemplate:
    """A compiled template. Not for two threads at once."""

    def __init__(
        self,
        source: str,
        bos_token: str = "",
        eos_token: str = "",
        control_tokens: frozenset[str] = frozenset(),
        name: str = MODELS_OWN,
    ) -> None:
        """`source` may be empty for ChatML. `control_tokens` are the texts of all tokens that `parse_special` finds and
        that are marks (`Vocab.controls`). `name` begins the sentences about it.

        Raises TemplateError for a template that cannot be compiled.
        """
        self.is_fallback = not source.strip()
        self._name = name
        if len(source) > MAX_SOURCE:
            raise TemplateError(tr("{name} is far too long to be one.").format(name=name), f"{len(source)} characters")
        self._controls = ControlTexts(control_tokens)
        self._sandbox = Sandbox()
        self._special = {"bos_token": bos_token, "eos_token": eos_token}
        try:
            self._template = self._sandbox.from_string(FALLBACK if self.is_fallback else source)
        except Exception as error:  # untrusted code may raise anything
            raise template_error(error, name) from error
        self._probed_until_s = time.monotonic() + PROBE_S
        self.traits: TemplateTraits = with_calls(traits_of(self._probe, source), self._probe, source)

    def rendering(
        self, messages: Sequence[Message], add_generation_prompt: bool, tools: str = "", variables: str = ""
    ) -> Rendering:
        """Render `messages`, oldest first. `tools`: a JSON array that the template gets; `variables`: a JSON object of
        further ones; "" for none.

        Raises TemplateError: broken, refusing or forbidden template.
        """
        try:
            return self._rendering(messages, add_generation_prompt, tools, variables)
        except Exception as error:  # untrusted code may raise anything
            raise template_error(error, self._name) from error

    # --- internals --------------------------------------------------------------------------------------------------

    def _rendering(
        self, messages: Sequence[Message], add_generation_prompt: bool, tools: str, variables: str
    ) -> Rendering:
        messages, tools = self._taken([self._with_thought(message) for message in messages], tools)
        given = _Given(add_generation_prompt, datetime.now().astimezone(), tools, variables)
        problem: Exception | None = None  # of the first attempt
        for tried, remark in chain(self._ways(messages), self._ways_with_calls(messages)):
            folding: Rendering | None = None
            for parts in _IN_PARTS:
                way = replace(given, parts=parts)
                try:
                    accepted, plain, folded = self._plain(tried, way)
                except SecurityError:
                    raise
                except Exception as error:  # noqa: BLE001  # a template can fail in any way
                    problem = problem or error
                    continue
                if parts and any(str(_in_parts(text)) in plain for text in accepted.texts):
                    continue  # parts as Python prints them, so it takes text for that role
                found = self._found(accepted, plain, folded, way)
                if self._lacks_last(found, accepted, plain, way):
                    said = tr(
                        "{name} leaves the last message out of the prompt. Choose another template for this chat."
                    )
                    problem = problem or TemplateError(said.format(name=self._name))
                elif folded and parts:  # another choice of roles may keep the system prompt in place
                    folding = folding or replace(found, remark=remark)
                else:
                    return replace(found, remark=remark)
            if folding is not None:
                return folding
        assert problem is not None
        raise problem

    def _taken(self, messages: Sequence[Message], tools: str) -> tuple[Sequence[Message], str]:
        """Messages and tools in forms that this template takes."""
        if not self.traits.writes_calls:
            messages = calls_as_text(messages, self.traits.calls)
            if not self.traits.takes_tools:
                messages = results_as_questions(messages)
        if tools and not self.traits.takes_tools:
            return told_of_tools(messages, tools, self.traits.calls), ""
        return messages, complete(tools) if tools else ""

    def _with_thought(self, message: Message) -> Message:
        """An answer with the reasoning from its fields, if the template's family reasons."""
        fields = fields_of(message)
        thought = fields.pop(THOUGHT_FIELD, None)
        if message.role != "assistant" or not isinstance(thought, str):
            return message
        text = written(thought, message.text) if self.traits.marks is not None and thought.strip() else message.text
        return replace(message, text=text, fields=fields_text(fields))

    def _ways(self, messages: Sequence[Message]) -> Iterator[tuple[Sequence[Message], str]]:
        """The messages to try, each with a remark for the user: unchanged, with calls as the model wrote them; with
        calls as the template writes them; and as many templates require them, in turn: with an empty question before
        every answer that lacks one, and with questions in a row as one, as agents send them.
        """
        own = [replace(m, fields="") if m.tokens and m.fields and m.role == "assistant" else m for m in messages]
        if own != [*messages]:
            yield own, ""
        yield messages, ""
        completed: list[Message] = []
        for message in messages:
            before = completed[-1].role if completed else "system"
            if message.role == "assistant" and before in ("system", "assistant"):
                completed.append(replace(message, id=MessageId(""), role="user", text="", tokens=(), fields=""))
            completed.append(message)
        if len(completed) > len(messages):
            said = tr("{name} does not accept an answer without a question: an empty question was added before it.")
            yield completed, said.format(name=self._name)
        in_turn = questions_in_turn(completed)
        if in_turn != completed:
            said = tr("{name} does not accept two questions in a row: they became one.")
            yield in_turn, said.format(name=self._name)

    def _ways_with_calls(self, messages: Sequence[Message]) -> Iterator[tuple[Sequence[Message], str]]:
        """The same with calls in each form that some templates require, where it is another."""
        for formed in (with_short_ids, one_call_each, with_objects):
            changed = formed(messages)
            if changed != [*messages]:
                yield from self._ways(changed)

    def _found(self, seen: _Seen, plain: str, folded: bool, given: _Given) -> Rendering:
        """The origin of each part of the rendering `plain`."""
        n, messages = len(seen.texts), seen.messages
        given_strings = [
            s for s in _strings_of(messages, given.tools, given.variables) if next(self._controls.find(s), None)
        ]
        answers = frozenset(i for i, m in enumerate(messages) if m.role == "assistant")
        marker = TemplateSpanFinder(
            [*seen.texts, *given_strings],
            lambda texts: self._render(
                seen, texts[:n], replace(given, strings=dict(zip(given_strings, texts[n:], strict=True)))
            ),
            self._controls,
            answers=frozenset(i for i in answers if messages[i].tokens and (i in seen.thoughts or i not in seen.parts)),
            thinking=answers.union(seen.thoughts.values()),
            strings=frozenset(range(n, n + len(given_strings))),
            splits=[
                SplitText(messages[i].text, i, thought, seen.parts[i].thought) for i, thought in seen.thoughts.items()
            ],
        )
        marked = marker.mark(plain)
        places = tuple((span, messages[i].id) for span, i in marked.places)
        return Rendering(tuple(segments_of(marked, messages)), folded, places, marked.exact)

    def _lacks_last(self, found: Rendering, seen: _Seen, plain: str, given: _Given) -> bool:
        """Whether the last message, or the question before a tool's result, is missing: no place shows it, and the
        rendering does not change with its text.
        """
        shown = {message for _, message in found.places}
        lasts = [*range(len(seen.messages))][-1:]
        if lasts and seen.messages[-1].role == "tool":
            lasts += [i for i, message in enumerate(seen.messages) if message.role == "user"][-1:]
        for last in lasts:
            if not seen.texts[last].strip() or seen.messages[last].id in shown:
                continue
            texts = [*seen.texts[:last], f"x{seen.texts[last]}x", *seen.texts[last + 1 :]]
            try:
                if self._render(seen, texts, given) == plain:
                    return True
            except Exception:  # noqa: BLE001  # a template can fail in any way, so it has read the message
                continue
        return False

    def _plain(self, messages: Sequence[Message], given: _Given) -> tuple[_Seen, str, bool]:
        """The rendering without marks, with the system prompt where this template takes it."""
        system = "\n\n".join(m.text.strip() for m in messages if m.role == "system" and m.text.strip())
        refusal: Exception | None = None
        seen, plain = self._seen(messages), ""
        try:
            plain = self._render(seen, seen.texts, given)
        except SecurityError:
            raise
        except Exception as error:  # noqa: BLE001  # a template can fail in any way
            refusal = error
        if refusal is None and system in plain:
            return seen, plain, False
        folded = self._seen(_fold_system(messages, system))
        try:
            text = self._render(folded, folded.texts, given)
        except Exception as error:
            if refusal is None:
                return seen, plain, False
            raise refusal from error
        if refusal is None and system not in text:  # the template rewrites it everywhere
            return seen, plain, False
        return folded, text, bool(system)

    def _seen(self, messages: Sequence[Message]) -> _Seen:
        """Separate the reasoning of earlier answers from their text, if the template takes it separately."""
        texts, thoughts, parts = [message.text for message in messages], {}, {}
        for i, message in enumerate(messages):
            if message.role != "assistant" or not self.traits.form or f'"{self.traits.form}"' in message.fields:
                continue
            found = parts_of(message.text, message.marks or self.traits.marks)
            if found is None:
                continue
            parts[i], texts[i] = found, message.text[found.said : found.said_end]
            if thought := message.text[found.thought : found.thought_end]:
                thoughts[i] = len(texts)
                texts.append(thought)
        return _Seen(messages, texts, thoughts, parts)

    def _render(self, seen: _Seen, texts: Sequence[str], given: _Given) -> str:
        n_given = sum(map(len, texts)) + sum(len(message.fields) for message in seen.messages)
        n_given += len(given.tools) + len(given.variables)
        room = OWN_TEXT + REPEATED * n_given + OWN_PER_MESSAGE * len(texts)
        is_apart = self.traits.form == BLOCKS and bool(seen.thoughts)  # all answers need the same form
        as_seen = []
        for i, message in enumerate(seen.messages):
            thought = texts[seen.thoughts[i]] if i in seen.thoughts else ""
            in_form = bool(thought) or (is_apart and message.role == "assistant")
            fields = _replaced(json.loads(message.fields), given.strings) if message.fields else {}
            said = fields.pop("content", texts[i])
            content = answer_in_form(self.traits.form, thought, said) if in_form else {"content": said}
            if message.role in given.parts and isinstance(content["content"], str):
                content["content"] = _in_parts(said)
            as_seen.append({"role": message.role, **content, **fields})
        if self.traits.takes_results:
            as_seen = results_in_calls(as_seen)
        tools = _replaced(json.loads(given.tools), given.strings) if given.tools else None
        flags = _replaced(json.loads(given.variables), given.strings) if given.variables else {}
        return self._written(as_seen, given.add_generation_prompt, tools, room, given.now, flags)

    def _probe(
        self,
        messages: Sequence[Mapping[str, Any]],
        begins: bool,
        tools: Sequence[Mapping[str, Any]] | None,
        flags: Mapping[str, Any],
    ) -> str:
        if time.monotonic() > self._probed_until_s:
            raise SecurityError("the template is too slow to be probed")
        return self._written(messages, begins, tools, PROBE_TEXT, PROBE_DAY, flags)

    def _written(
        self,
        messages: Sequence[Mapping[str, Any]],
        begins: bool,
        tools: object,
        room: int,
        now: datetime,
        flags: Mapping[str, Any],
    ) -> str:
        """The template's output, at most `room` characters."""
        kept: list[str] = []
        pieces = self._template.generate(
            messages=messages,
            add_generation_prompt=begins,
            tools=tools,
            documents=None,
            strftime_now=partial(_strftime, now),
            **self._special,
            **{name: value for name, value in flags.items() if name not in _OWN_VARIABLES},
        )
        for piece in pieces:
            room -= len(piece)
            if room < 0:
                raise SecurityError("the template writes far more text than the conversation has")
            kept.append(piece)
        return "".join(kept)


def _in_parts(text: str) -> list[dict[str, str]]:
    """A text as a content of typed parts."""
    return [{"type": "text", "text": text}]


def _strings_of(messages: Sequence[Message], *given: str) -> list[str]:
    """Every string that a template gets in these JSON texts and in fields of messages; others wrote all of them."""
    found: dict[str, None] = {}

    def collect(value: object) -> None:
        if isinstance(value, str):
            found[value] = None
        elif isinstance(value, list):
            for one in value:
                collect(one)
        elif isinstance(value, dict):
            for name, one in value.items():
                found[name] = None
                collect(one)

    for source in (*(message.fields for message in messages), *given):
        if source:
            collect(json.loads(source))
    return list(found)


def _replaced(value: Any, strings: Mapping[str, str]) -> Any:
    """The value with some texts replaced."""
    if not strings:
        return value
    if isinstance(value, str):
        return strings.get(value, value)
    if isinstance(value, list):
        return [_replaced(one, strings) for one in value]
    if isinstance(value, dict):
        return {strings.get(name, name): _replaced(one, strings) for name, one in value.items()}
    return value


def _fold_system(messages: Sequence[Message], system: str) -> Sequence[Message]:
    """The messages without system ones, whose text becomes the beginning of the first user message."""
    folded = [message for message in messages if message.role != "system"]
    if not system:
        return folded
    first = next(message for message in messages if message.role == "system")
    for i, message in enumerate(folded):
        if message.role == "user":
            whole = replace(message, text=f"{system}\n\n{message.text}")
            folded[i] = whole if message.text else replace(first, role="user", text=system)
            return folded
    return [replace(first, role="user", text=system), *folded]


def _strftime(now: datetime, layout: str) -> str:
    if re.search(r"%[^a-zA-Z%]*\d{2}", layout) or len(layout) > 100:  # glibc takes widths: %999999999d
        raise SecurityError("a date format with a width")
    return now.strftime(layout)
