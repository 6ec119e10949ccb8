"""Whether and how much an answer thinks: what a chat template lets one choose, and the variables that choose it."""

import json
import re
from collections.abc import Collection, Iterator, Sequence
from typing import Any, Final

from kvdesk.values import dataclass

OFF, ON = "off", "on"
EFFORTS: Final = ("low", "medium", "high", "max")
LEVELS: Final = ("", OFF, ON, *EFFORTS)
"""Of `Thinking.level`."""
_USUAL_EFFORTS: Final = EFFORTS[:3]
"""Of a template that writes whatever it is given."""
_MOST: Final = 1 << 31
_SWITCHES: Final[dict[str, tuple[Any, Any]]] = {
    "enable_thinking": (False, True),
    "thinking": (False, True),  # DeepSeek, Kimi K3, Granite
    "reasoning": (False, True),  # Cohere
    "thinking_mode": ("disabled", "enabled"),  # MiniMax M3
}
"""Names that templates have for the switch, with its values for off and on."""
_EFFORT_NAMES: Final = ("reasoning_effort", "reasoning_strength")
_KEPT: Final = {
    "preserve_thinking": True,  # Qwen, LFM, Laguna
    "preserved_thinking": True,  # Hunyuan
    "clear_thinking": False,  # GLM
    "drop_thinking": False,  # DeepSeek V4
    "truncate_history_thinking": False,  # Nemotron
}
_BUDGET: Final = "thinking_budget"
"""Seed-OSS's. Its 0 is the switch."""
_STRING: Final = r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\""
_BEGIN: Final = re.compile(r"\{[{%#]")
_ENDS: Final = {
    "{{": re.compile(rf"(?:{_STRING}|[^'\"])*?\}}\}}", re.DOTALL),
    "{%": re.compile(rf"(?:{_STRING}|[^'\"])*?%\}}", re.DOTALL),
    "{#": re.compile(r".*?#\}", re.DOTALL),
}
_STRINGS: Final = re.compile(_STRING, re.DOTALL)
_COMPARES: Final = re.compile(r"==|!=|\bin\b")


@dataclass(frozen=True, slots=True)
class Thinking:
    """Of the answers of one chat. All of it is the template's to follow.

    level   one of `LEVELS`; "": as the template does without being asked
    keep    earlier reasoning stays in the prompt: nothing is read again for it, and it takes room
    budget  most tokens of reasoning, which is closed then; -1: no limit
    """

    level: str = ""
    keep: bool = False
    budget: int = -1

    @property
    def variables(self) -> str:
        """Of the chat template, as `Generate.variables`."""
        found: dict[str, Any] = {}
        if self.level:
            found |= switch(self.level != OFF)
        if self.level in EFFORTS:
            found |= at_effort(self.level)
        if self.keep:
            found |= _KEPT
        if self.most >= 0:
            found[_BUDGET] = self.most
        return json.dumps(found) if found else ""

    @property
    def most(self) -> int:
        """Tokens of reasoning, as `Generate.reasoning_budget`: none if it is off, whatever the template does."""
        return 0 if self.level == OFF else self.budget


AS_USUAL: Final = Thinking()


def checked(thinking: Thinking) -> Thinking:
    """As it is; as usual where a file has made something else of it."""
    return thinking if thinking.level in LEVELS and -1 <= thinking.budget < _MOST else AS_USUAL


def switch(on: bool) -> dict[str, Any]:
    """By all names that templates have for it."""
    return {name: values[on] for name, values in _SWITCHES.items()}


def at_effort(level: str) -> dict[str, Any]:
    """By all names that templates have for it."""
    return dict.fromkeys(_EFFORT_NAMES, level)


def levels_of(template: str) -> tuple[str, ...]:
    """Those of `LEVELS` that this chat template (Jinja) knows, "" first; () where it knows none."""
    tags = [*_tags(template)]
    found = ((OFF, ON) if _asks(tags, (*_SWITCHES, _BUDGET)) else ()) + _efforts(tags)
    return ("", *found) if found else ()


def can_keep(template: str) -> bool:
    """Whether this chat template (Jinja) can be told to keep earlier reasoning."""
    return bool(_asks([*_tags(template)], _KEPT))


def _efforts(tags: Sequence[str]) -> tuple[str, ...]:
    """What the template compares its effort with; the usual ones where it compares nothing."""
    reading = _asks(tags, _EFFORT_NAMES)
    if not any(_COMPARES.search(_STRINGS.sub("''", tag)) for tag in reading):
        return _USUAL_EFFORTS if reading else ()
    named = {text[1:-1] for tag in reading for text in _STRINGS.findall(tag)}
    return tuple(level for level in EFFORTS if level in named)


def _asks(tags: Sequence[str], names: Collection[str]) -> list[str]:
    """The tags that read one of these variables, of those that the template does not set before it reads them."""
    found = []
    for name in names:
        uses, reads = (re.compile(rf"(?<![.\w]){name}\b{rest}") for rest in ("", r"(?!\s*=(?!=))"))
        using = [(tag, bare) for tag in tags if uses.search(bare := _STRINGS.sub("''", tag))]
        if using and reads.search(using[0][1]):
            found += [tag for tag, bare in using if reads.search(bare)]
    return found


def _tags(template: str) -> Iterator[str]:
    """What is between the brackets of expressions and statements, without comments."""
    at = 0
    while (begin := _BEGIN.search(template, at)) is not None:
        end = _ENDS[begin[0]].match(template, begin.end())
        if end is None:
            return
        if begin[0] != "{#":
            yield end[0]
        at = end.end()
