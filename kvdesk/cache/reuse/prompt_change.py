"""What a client changed between two prompts: a block that moved, a role, tools, a cut front, a compaction.

Pure: two prompts in, one change out, and how much they share. A prompt is that of a request (messages and tools), or a
rendered text, which is split at the marks of common templates. Must never know tokens or where a prompt came from.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final

from kvdesk.cache.reuse.prefix import common_prefix
from kvdesk.cache.reuse.usual_causes import AROUND, UsualCause, cause_in_answer, usual_cause
from kvdesk.loose_json import text_in
from kvdesk.translation import plural, tr
from kvdesk.values import dataclass, replace

LONGEST: Final = 1 << 20
"""Characters of a prompt that are kept."""
_BLOCK: Final = 16
"""Least characters of a block; shorter text occurs in every prompt."""
_CONTEXT: Final = 8 * AROUND
"""Characters around a difference that are compared."""
_COMPACTED: Final = 0.6
"""Largest size of a compacted prompt, as a share of the text before."""
_UNLIKE: Final = 0.9
"""Share of a first message that differs from that of another conversation, at least."""
_MARK: Final = re.compile(
    r"<\|im_start\|>(?P<a>\w+)\n?|<\|start_header_id\|>(?P<b>\w+)<\|end_header_id\|>\n*|<start_of_turn>(?P<c>\w+)\n?"
    r"|<\|turn>(?P<g>\w+)\n?|<\|start\|>(?P<d>\w+)|<\|(?P<e>system|user|assistant|tool)\|>\n?|(?P<f>\[INST\])|\[/INST\]"
)
_BEGIN: Final = re.compile(r"(?:\s|<[^<>\s]{1,40}>|\[\w{1,10}\])*")
"""Before the first message: marks that a tokenizer adds, no text."""
_THINKING: Final = re.compile(
    r"<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)\s*|\[THINK\].*?(?:\[/THINK\]|\Z)\s*", re.DOTALL
)
_REASONING: Final = ("reasoning_content", "reasoning", "summary", "encrypted_content")
_FIELDS: Final = (*_REASONING, "content", "name", "arguments", "output", "tool_calls")
"""Fields of a message, or an item, that a template may render; reasoning as templates do, between marks."""
_OPEN: Final = "<think>"
_RENDERED: Final = (("content", 0),)
_SETTINGS: Final = ("chat_template_kwargs", "reasoning_effort", "reasoning", "thinking", "enable_thinking", "think")
"""Fields of a request that its template may read."""
_INSTRUCTING: Final = frozenset({"system", "developer"})
ATTRIBUTION: Final = re.compile(r"x-anthropic-billing-header|\bcch=")


class Change(StrEnum):
    """What was changed; the first that applies."""

    NOTHING = "nothing"  # one prompt begins with the other
    TOOLS_GONE = "tools gone"
    TOOLS_REORDERED = "tools reordered"
    TOOLS_CHANGED = "tools changed"
    ROLE_CHANGED = "role changed"
    THINKING = "thinking removed"
    FRONT_CUT = "front cut"
    DROPPED = "message dropped"
    INSERTED = "message inserted"
    BLOCK_MOVED = "block moved"
    COMPACTED = "compacted"
    ATTRIBUTION = "attribution header"
    USUAL = "usual cause"  # a date, an identifier: `sentence` says which
    EDITED = "edited"
    SETTINGS = "template arguments"  # of prompts whose messages go on: the template may render them differently


_WHOLE: Final = frozenset({Change.FRONT_CUT, Change.DROPPED, Change.INSERTED, Change.COMPACTED})
"""Changes of whole messages, which have no place inside a message."""


@dataclass(frozen=True, slots=True)
class Part:
    """A message: who says it, and its text with everything that a template may render of it. `fields`: each by name,
    with the place in the text where it begins.
    """

    role: str
    text: str
    fields: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Prompt:
    """Messages in order, and tools as name and definition in order. `is_rendered`: cut out of a template's text;
    `settings`: what its template may read besides, by name.
    """

    parts: tuple[Part, ...]
    tools: tuple[tuple[str, str], ...] = ()
    is_rendered: bool = False
    settings: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class PromptChange:
    """`message`: the first that differs, from 1, 0 if none does; `sentence`: what happened, "" for nothing.

    field     of that message, or the tool, such as `content` or `tools[2]`; "" if the whole message is another one
    position  of the first character in it that differs, from 0
    usual     the usual cause, if the texts show one
    """

    change: Change
    message: int = 0
    sentence: str = ""
    field: str = ""
    position: int = 0
    usual: UsualCause | None = None

    @property
    def cause(self) -> str:
        """The cause under which a score counts it (`kvdesk.cache.reuse.score`)."""
        return (self.usual or self.change).value

    @property
    def place(self) -> str:
        """Where the prompts first differ, such as "message 3, content, character 120"."""
        if self.change is Change.NOTHING:
            return ""
        message = tr("message {n}").format(n=self.message) if self.message else ""
        at = tr("character {n:,}").format(n=self.position) if self.field not in ("", "role") else ""
        return ", ".join(part for part in (message, self.field, at) if part)


@dataclass(frozen=True, slots=True)
class Overlap:
    """Characters of a prompt: `common` with the beginning of the previous one, `again` after that but also in the
    previous one, and `n` in total.
    """

    common: int
    again: int
    n: int


def prompt_of_json(body: Mapping[str, Any]) -> Prompt | None:
    """The prompt of a request to a chat, Anthropic's or a completion endpoint; None for anything else, such as tokens
    or the text around a gap that is to be filled.
    """
    if "input_prefix" in body or "input_suffix" in body:
        return None
    parts = [_part("system", {"content": body[name]}) for name in ("system", "instructions") if body.get(name)]
    messages = body.get("messages") or body.get("input") or body.get("prompt")
    if isinstance(messages, str):
        return Prompt((*parts, *prompt_of_text(messages).parts))
    if not isinstance(messages, list):
        return None
    asked = (message for message in messages if isinstance(message, dict))
    parts += [_part(text_in(message.get("role", message.get("type"))), message) for message in asked]
    if not parts:
        return None
    tools = body.get("tools")
    settings = tuple((name, _json(body[name])) for name in _SETTINGS if body.get(name) is not None)
    return Prompt(tuple(parts), tuple(map(_tool, tools)) if isinstance(tools, list) else (), settings=settings)


def prompt_of_text(text: str) -> Prompt:
    """The prompt in a rendered text; one part without a role if it contains no known mark."""
    text = text[:LONGEST]
    parts, role, end = [], "", 0
    for mark in _MARK.finditer(text):
        if role or not _BEGIN.fullmatch(text, end, mark.start()):
            parts.append(Part(role, text[end : mark.start()], _RENDERED))
        role = next((name for name in mark.groupdict().values() if name), "assistant").replace("[INST]", "user")
        end = mark.end()
    parts.append(Part(role, text[end:], _RENDERED))
    return Prompt(tuple(parts), is_rendered=True)


def has_reasoning(text: str) -> bool:
    """Whether a text contains reasoning in the marks of common templates."""
    return _THINKING.search(text) is not None


def _part(role: str, message: Mapping[str, Any]) -> Part:
    texts: list[str] = []
    fields, end = [], 0
    for name in _FIELDS:
        if found := message.get(name):
            text = _text(found)
            if name in _REASONING or (role == "reasoning" and name == "content"):
                text = f"{_OPEN}{text}</think>"
            fields.append((name, end))
            texts.append(text)
            end += len(text) + 1
    return Part(role, "\n".join(texts), tuple(fields))


def _tool(tool: object) -> tuple[str, str]:
    inner = tool.get("function", tool) if isinstance(tool, dict) else tool
    return text_in(inner.get("name")) if isinstance(inner, dict) else "", _json(tool)


def _text(content: object) -> str:
    """The text of a message's content: a string, or blocks, some of which are text or reasoning."""
    if isinstance(content, str):
        return content[:LONGEST]
    if isinstance(content, list):
        return "\n".join(map(_block, content))[:LONGEST]
    return _json(content)[:LONGEST]


def _block(block: object) -> str:
    if isinstance(block, dict):
        if isinstance(text := block.get("text"), str):
            return text
        if isinstance(thought := block.get("thinking"), str):
            return f"<think>{thought}</think>"
        function = block.get("function")
        if isinstance(function, dict) and isinstance(arguments := function.get("arguments"), str):  # JSON in JSON
            rest = {name: one for name, one in function.items() if name != "arguments"}
            return f"{_json({**block, 'function': rest})}\n{arguments}"
    return _json(block)


def _json(value: object) -> str:
    """Without marks about what a server should keep, which no template renders and which move with each request; ""
    for what is nested too deeply.
    """
    if isinstance(value, dict) and "cache_control" in value:
        value = {name: one for name, one in value.items() if name != "cache_control"}
    try:
        return json.dumps(value, ensure_ascii=False)
    except RecursionError:
        return ""


def change_between(before: Prompt, after: Prompt) -> PromptChange:
    """The first reason why the prompt `after` does not continue `before`."""
    if found := _tools_changed(before.tools, after.tools):
        return replace(found, **_place_in_tools(before.tools, after.tools))
    at = next((i for i, (a, b) in enumerate(zip(before.parts, after.parts, strict=False)) if a != b), -1)
    if at < 0:
        return _settings_changed(before, after)
    old, new = before.parts[at], after.parts[at]
    goes_on = at == len(before.parts) - 1 and new.text.startswith(old.text)
    begins = at == len(after.parts) - 1 and old.text.startswith(new.text)
    if old.role == new.role and (goes_on or begins):
        return _settings_changed(before, after)
    of_text = _role_changed(old, new, at) or _thinking_removed(old, new, at)
    found = (
        of_text
        or _dropped(before.parts, after.parts, at)
        or _inserted(before.parts, after.parts, at)
        or _block_moved(before.parts, after.parts, at)
        or _compaction(before.parts, after.parts, at)
        or _text_changed(old, new, at)
    )
    is_whole = found.change in _WHOLE or (old.role != new.role and found.change is not Change.ROLE_CHANGED)
    return found if is_whole else replace(found, **_place(old, new))


def _settings_changed(before: Prompt, after: Prompt) -> PromptChange:
    names = sorted({name for name, _ in set(before.settings) ^ set(after.settings)})
    if not names:
        return PromptChange(Change.NOTHING)
    sentence = tr("The client changed {names}: the template may render earlier messages differently.")
    return PromptChange(Change.SETTINGS, 0, sentence.format(names=_listed(names)))


def _place(old: Part, new: Part) -> dict[str, Any]:
    """The first field that differs, and where."""
    if old.text == new.text:
        return {"field": "role"}
    first = common_prefix(old.text, new.text)
    fields = new.fields if len(new.text) > first else old.fields
    name, start = next(((name, start) for name, start in reversed(fields) if start <= first), ("", 0))
    marks = len(_OPEN) if name in _REASONING else 0
    return {"field": name, "position": max(0, first - start - marks)}


def _place_in_tools(old: Sequence[tuple[str, str]], new: Sequence[tuple[str, str]]) -> dict[str, Any]:
    at = common_prefix(tuple(old), tuple(new))
    ours, theirs = (tools[at][1] if at < len(tools) else "" for tools in (old, new))
    return {"field": f"tools[{at}]", "position": common_prefix(ours, theirs)}


def overlap(before: Prompt, after: Prompt) -> Overlap:
    """How much of a prompt a cache could have that holds the previous one, and what it loses where they diverge."""
    old, new = _pieces(before), _pieces(after)
    at = common_prefix(old, new)
    n = sum(map(_size, new))
    common = sum(map(_size, new[:at]))
    if at == len(new) or at == len(old):
        return Overlap(common, 0, n)
    again = 0
    known = {piece.text for piece in old[at:]}
    if new[at].text not in known and old[at].role == new[at].role:
        ours, theirs = old[at].text, new[at].text
        first = common_prefix(ours, theirs)
        common += first
        again = common_prefix(ours[first:][::-1], theirs[first:][::-1])
    again += sum(_size(piece) for piece in new[at:] if piece.text in known)
    return Overlap(common, min(again, sum(map(_size, old)) - common), n)


def followed(earlier: Iterable[Prompt], prompt: Prompt) -> tuple[Prompt, Overlap] | None:
    """The prompt that this one most likely follows: the one that has most in common with it, the first of several.
    None if all have less than half of the shorter prompt in common with it.
    """
    best = max(((one, overlap(one, prompt)) for one in earlier), key=lambda found: _shared(found[1]), default=None)
    if best is None or 2 * _shared(best[1]) < min(best[1].n, overlap(best[0], best[0]).n):
        return None
    return best


def is_another(before: Prompt, after: Prompt) -> bool:
    """Whether a prompt is most likely of another conversation: less than half of the shorter prompt is in common, and
    next to nothing of the first message.
    """
    if not (before.parts and after.parts) or before.tools != after.tools or followed([before], after):
        return False
    old, new = before.parts[0].text, after.parts[0].text
    only_old, only_new = _differing(old, new)
    return min(len(only_old), len(only_new)) > _UNLIKE * min(len(old), len(new))


def _shared(found: Overlap) -> int:
    return found.common + found.again


def _pieces(prompt: Prompt) -> tuple[Part, ...]:
    """Tools and messages in the order in which templates render them."""
    return (*(Part(f"tool {name}", text) for name, text in prompt.tools), *prompt.parts)


def _size(part: Part) -> int:
    return len(part.text)


def _tools_changed(old: Sequence[tuple[str, str]], new: Sequence[tuple[str, str]]) -> PromptChange | None:
    if list(old) == list(new):
        return None
    if sorted(old) == sorted(new):
        return PromptChange(Change.TOOLS_REORDERED, 0, tr("The client sent its tools in another order."))
    gone = [name for name, _ in old if name not in {other for other, _ in new}]
    if gone:
        all_of_them = len(gone) == len(old) == 1
        many = tr("The client left out {n} of its {all} tools ({names}).")
        sentence = tr("The client left out its only tool ({names}).") if all_of_them else many
        return PromptChange(Change.TOOLS_GONE, 0, sentence.format(n=len(gone), all=len(old), names=_listed(gone)))
    changed = [name for name, text in new if (name, text) not in old]
    return PromptChange(
        Change.TOOLS_CHANGED, 0, tr("The client changed or added tools ({names}).").format(names=_listed(changed))
    )


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (" …" if len(names) > 3 else "")


def _role_changed(old: Part, new: Part, at: int) -> PromptChange | None:
    if old.role == new.role or old.text != new.text:
        return None
    sentence = tr("The client sent message {n} as “{new}”; before, it was “{old}”.")
    return PromptChange(Change.ROLE_CHANGED, at + 1, sentence.format(n=at + 1, new=new.role, old=old.role))


def _thinking_removed(old: Part, new: Part, at: int) -> PromptChange | None:
    def spoken(part: Part) -> str:
        return _THINKING.sub("", part.text).strip()

    if old.role != new.role or old.text == new.text or not (_THINKING.search(old.text) or _THINKING.search(new.text)):
        return None
    ours, theirs = spoken(old), spoken(new)
    n = min(len(ours), len(theirs))
    if ours[:n] != theirs[:n]:
        return None
    return _thinking_gone(at)


def _thinking_gone(at: int) -> PromptChange:
    sentence = tr("The reasoning of an earlier answer (message {n}) was left out or added.")
    return PromptChange(Change.THINKING, at + 1, sentence.format(n=at + 1))


def _dropped(old: Sequence[Part], new: Sequence[Part], at: int) -> PromptChange | None:
    """Whether what follows in the new prompt is what followed later in the old one."""
    gone = _left_out(old, new, at)
    if not gone:
        return None
    if all(not part.text or _THINKING.fullmatch(part.text) for part in gone):
        return _thinking_gone(at)
    if all(part.role in _INSTRUCTING for part in old[:at]):
        change = Change.FRONT_CUT
        sentence = plural(
            "The client dropped a message from the front: message {at}.",
            "The client dropped %n messages from the front, from message {at} on.",
            len(gone),
        )
    else:
        change = Change.DROPPED
        sentence = plural(
            "The client left out message {at}.", "The client left out %n messages, from message {at} on.", len(gone)
        )
    return PromptChange(change, at + 1, sentence.format(at=at + 1))


def _inserted(old: Sequence[Part], new: Sequence[Part], at: int) -> PromptChange | None:
    """Whether what followed in the old prompt follows later in the new one."""
    if not (more := _left_out(new, old, at)):
        return None
    sentence = plural(
        "The client inserted a message before what was message {at}.",
        "The client inserted %n messages before what was message {at}.",
        len(more),
    )
    return PromptChange(Change.INSERTED, at + 1, sentence.format(at=at + 1))


def _left_out(longer: Sequence[Part], shorter: Sequence[Part], at: int) -> Sequence[Part]:
    """The parts from `at` on without which `longer` goes on as `shorter` does; () if it does not, and where they
    come later.
    """
    for later in range(at + 1, len(longer)):
        n = min(len(longer) - later, len(shorter) - at)
        if longer[later] == shorter[at] and longer[later : later + n] == shorter[at : at + n]:
            gone = longer[at:later]
            return () if any(part in shorter[at:] for part in gone) else gone
    return ()


def _block_moved(old: Sequence[Part], new: Sequence[Part], at: int) -> PromptChange | None:
    """Whether what left or entered the first changed message is, or was, elsewhere in the prompt."""
    left, entered = _differing(old[at].text, new[at].text)
    moved = (len(left) >= _BLOCK and any(left in part.text for part in new[at + 1 :])) or (
        len(entered) >= _BLOCK and any(entered in part.text for part in old[at + 1 :])
    )
    moved = moved or (len(old[at].text) >= _BLOCK and old[at] in new[at + 1 :])
    if not moved:
        return None
    block = left if len(left) >= _BLOCK else entered or old[at].text
    sentence = tr("The client moved a block of {n:,} characters out of or into message {at}: it begins with “{text}”.")
    return PromptChange(Change.BLOCK_MOVED, at + 1, sentence.format(n=len(block), at=at + 1, text=_one_line(block)))


def _differing(old: str, new: str) -> tuple[str, str]:
    """What only the one and only the other text has between their common beginning and end."""
    first = common_prefix(old, new)
    last = common_prefix(old[first:][::-1], new[first:][::-1])
    return old[first : len(old) - last].strip(), new[first : len(new) - last].strip()


def _compaction(old: Sequence[Part], new: Sequence[Part], at: int) -> PromptChange | None:
    if len(new) >= len(old) or sum(map(_size, new)) > _COMPACTED * sum(map(_size, old)):
        return None
    sentence = tr(
        "The client compacted the conversation, or began another: from message {n} on it sent another, shorter text."
    )
    return PromptChange(Change.COMPACTED, at + 1, sentence.format(n=at + 1))


def _text_changed(old: Part, new: Part, at: int) -> PromptChange:
    first = common_prefix(old.text, new.text)
    around = slice(max(0, first - _CONTEXT), first + _CONTEXT)
    held, prompt = old.text[around], new.text[around]
    if ATTRIBUTION.search(held) or ATTRIBUTION.search(prompt):
        sentence = tr("Claude Code writes a header with a checksum into the system prompt, new in each request.")
        return PromptChange(Change.ATTRIBUTION, at + 1, sentence)
    usual = None
    if old.role == new.role == "assistant":
        usual = cause_in_answer(*(text[max(0, first - _CONTEXT) :] for text in (old.text, new.text)))
    usual = usual or usual_cause(held, prompt)
    has_date = usual is UsualCause.DATE and new.role in ("user", "tool")
    if usual and not has_date:
        sentence = " ".join((tr("Message {n} changed.").format(n=at + 1), usual.sentence))
        return PromptChange(Change.USUAL, at + 1, sentence, usual=usual)
    sentence = tr("Message {n} ({role}) changed at character {at:,}: “{old}” became “{new}”.").format(
        n=at + 1, role=new.role or "prompt", at=first, old=_one_line(old.text[first:]), new=_one_line(new.text[first:])
    )
    if has_date:
        sentence += " " + tr("It contains the date or the time.")
    return PromptChange(Change.EDITED, at + 1, sentence)


def _one_line(text: str) -> str:
    return " ".join(text[:200].split())[:40]
