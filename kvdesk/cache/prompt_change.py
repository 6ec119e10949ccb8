"""What a client changed between two prompts: a block that moved, a role, tools, a cut front, a compaction.

Pure: two prompts in, one change out. A prompt is that of a request (messages and tools) or a rendered text, which is
cut at the marks of the usual templates. Must never know tokens or how a prompt was found.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, Final

from kvdesk.cache.usual_causes import AROUND, cause_in_answer, usual_cause
from kvdesk.translation import tr
from kvdesk.values import dataclass

LONGEST: Final = 1 << 20
"""Characters of a prompt that are kept."""
_BLOCK: Final = 16
"""Characters that a block has at least: less is somewhere in every prompt."""
_CONTEXT: Final = 8 * AROUND
"""Characters around a difference that are looked at."""
_COMPACTED: Final = 0.6
"""Share of the text before that a compacted prompt has at most."""
_MARK: Final = re.compile(
    r"<\|im_start\|>(?P<a>\w+)\n?|<\|start_header_id\|>(?P<b>\w+)<\|end_header_id\|>\n*|<start_of_turn>(?P<c>\w+)\n?"
    r"|<\|turn>(?P<g>\w+)\n?|<\|start\|>(?P<d>\w+)|<\|(?P<e>system|user|assistant|tool)\|>\n?|(?P<f>\[INST\])|\[/INST\]"
)
_THINKING: Final = re.compile(
    r"<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)\s*|\[THINK\].*?(?:\[/THINK\]|\Z)\s*", re.DOTALL
)
_TOOLS_IN_TEXT: Final = re.compile(r"<tools>.*?</tools>", re.DOTALL)
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
    BLOCK_MOVED = "block moved"
    COMPACTED = "compacted"
    ATTRIBUTION = "attribution header"
    USUAL = "usual cause"  # a date, an identifier: `sentence` says which
    EDITED = "edited"


@dataclass(frozen=True, slots=True)
class Part:
    """A message: who says it, and its text with everything that a template may render of it."""

    role: str
    text: str


@dataclass(frozen=True, slots=True)
class Prompt:
    """Messages in order, and tools as name and definition in order. `is_rendered`: cut out of a template's text."""

    parts: tuple[Part, ...]
    tools: tuple[tuple[str, str], ...] = ()
    is_rendered: bool = False


@dataclass(frozen=True, slots=True)
class PromptChange:
    """`message`: the first that differs, from 1, 0 where it is none; `sentence`: what happened, "" for nothing."""

    change: Change
    message: int = 0
    sentence: str = ""


def prompt_of_json(body: Mapping[str, Any]) -> Prompt | None:
    """The prompt of a request to a chat, Anthropic's or a completion endpoint; None for anything else."""
    parts = [Part("system", _text(body["system"]))] if body.get("system") else []
    messages = body.get("messages") or body.get("input") or body.get("prompt")
    if isinstance(messages, str):
        return Prompt((*parts, *prompt_of_text(messages).parts))
    if not isinstance(messages, list):
        return None
    for message in messages:
        if isinstance(message, dict):
            fields = [
                _text(message.get(name)) for name in ("reasoning_content", "content", "tool_calls") if message.get(name)
            ]
            parts.append(Part(str(message.get("role", message.get("type", ""))), "\n".join(fields)))
    tools = body.get("tools")
    return Prompt(tuple(parts), tuple(map(_tool, tools)) if isinstance(tools, list) else ())


def prompt_of_text(text: str) -> Prompt:
    """The prompt that a template has rendered; one part without a role where no known mark is in it."""
    text = text[:LONGEST]
    parts, role, end = [], "", 0
    for mark in _MARK.finditer(text):
        if text[end : mark.start()].strip() or role:
            parts.append(Part(role, text[end : mark.start()]))
        role = next((name for name in mark.groupdict().values() if name), "assistant").replace("[INST]", "user")
        end = mark.end()
    parts.append(Part(role, text[end:]))
    return Prompt(tuple(parts), is_rendered=True)


def has_reasoning(text: str) -> bool:
    """Whether a text has reasoning in the marks of the usual templates."""
    return _THINKING.search(text) is not None


def _tool(tool: object) -> tuple[str, str]:
    inner = tool.get("function", tool) if isinstance(tool, dict) else tool
    return str(inner.get("name", "")) if isinstance(inner, dict) else "", json.dumps(tool, ensure_ascii=False)


def _text(content: object) -> str:
    """The text of a message's content: a string, or blocks of which some are texts."""
    if isinstance(content, str):
        return content[:LONGEST]
    if isinstance(content, list) and all(
        isinstance(block, dict) and isinstance(block.get("text"), str) for block in content
    ):
        return "\n".join(block["text"] for block in content)[:LONGEST]
    return json.dumps(content, ensure_ascii=False)[:LONGEST]


def change_between(before: Prompt, after: Prompt) -> PromptChange:
    """The first thing that makes the prompt `after` no continuation of `before`."""
    if found := _tools_changed(before.tools, after.tools):
        return found
    at = next((i for i, (a, b) in enumerate(zip(before.parts, after.parts, strict=False)) if a != b), -1)
    if at < 0:
        return PromptChange(Change.NOTHING)
    old, new = before.parts[at], after.parts[at]
    goes_on = at == len(before.parts) - 1 and new.text.startswith(old.text)
    begins = at == len(after.parts) - 1 and old.text.startswith(new.text)
    if old.role == new.role and (goes_on or begins):
        return PromptChange(Change.NOTHING)
    found = (
        _role_changed(old, new, at)
        or _thinking_removed(old, new, at)
        or _front_cut(before.parts, after.parts, at)
        or _block_moved(before.parts, after.parts, at)
        or _compaction(before.parts, after.parts, at)
    )
    return found or _text_changed(old, new, at)


def _size(part: Part) -> int:
    return len(part.text)


def _tools_changed(old: Sequence[tuple[str, str]], new: Sequence[tuple[str, str]]) -> PromptChange | None:
    if list(old) == list(new):
        return None
    if sorted(old) == sorted(new):
        return PromptChange(Change.TOOLS_REORDERED, 0, tr("The client sent its tools in another order."))
    gone = [name for name, _ in old if name not in {other for other, _ in new}]
    if gone:
        sentence = tr("The client left out {n} of its {all} tools ({names}).")
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
    sentence = tr("The reasoning of an earlier answer (message {n}) was left out or added.")
    return PromptChange(Change.THINKING, at + 1, sentence.format(n=at + 1))


def _front_cut(old: Sequence[Part], new: Sequence[Part], at: int) -> PromptChange | None:
    """Whether what follows in the new prompt is what followed later in the old one."""
    for later in range(at + 1, len(old)):
        tail = min(len(old) - later, len(new) - at)
        if old[later] == new[at] and tail and list(old[later : later + tail]) == list(new[at : at + tail]):
            dropped = later - at
            sentence = tr("The client dropped {dropped} messages from the front, from message {n} on.")
            return PromptChange(Change.FRONT_CUT, at + 1, sentence.format(dropped=dropped, n=at + 1))
    return None


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
    n = min(len(old), len(new))
    first = next((i for i in range(n) if old[i] != new[i]), n)
    last = next((i for i in range(n - first) if old[-1 - i] != new[-1 - i]), n - first)
    return old[first : len(old) - last].strip(), new[first : len(new) - last].strip()


def _compaction(old: Sequence[Part], new: Sequence[Part], at: int) -> PromptChange | None:
    if len(new) >= len(old) or sum(map(_size, new)) > _COMPACTED * sum(map(_size, old)):
        return None
    sentence = tr("The client compacted the conversation: from message {n} on it sent another, shorter text.")
    return PromptChange(Change.COMPACTED, at + 1, sentence.format(n=at + 1))


def _text_changed(old: Part, new: Part, at: int) -> PromptChange:
    n = min(len(old.text), len(new.text))
    first = next((i for i in range(n) if old.text[i] != new.text[i]), n)
    around = slice(max(0, first - _CONTEXT), first + _CONTEXT)
    held, prompt = old.text[around], new.text[around]
    if ATTRIBUTION.search(held) or ATTRIBUTION.search(prompt):
        sentence = tr("Claude Code writes a header with a checksum into the system prompt, new in each request.")
        return PromptChange(Change.ATTRIBUTION, at + 1, sentence)
    is_answer = old.role == new.role == "assistant"
    usual = cause_in_answer(old.text[around.start :], new.text[around.start :]) if is_answer else None
    if usual := usual or usual_cause(held, prompt):
        return PromptChange(Change.USUAL, at + 1, tr("Message {n} changed.").format(n=at + 1) + f" {usual.sentence}")
    sentence = tr("Message {n} ({role}) changed at character {at:,}: “{old}” became “{new}”.")
    return PromptChange(
        Change.EDITED,
        at + 1,
        sentence.format(
            n=at + 1,
            role=new.role or "prompt",
            at=first,
            old=_one_line(old.text[first:]),
            new=_one_line(new.text[first:]),
        ),
    )


def _one_line(text: str) -> str:
    return " ".join(text[:200].split())[:40]
