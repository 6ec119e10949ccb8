"""Whether and how much an answer thinks: what a chat template lets one choose, and the variables that choose it."""

from __future__ import annotations

import json
import re
from typing import Any, Final

from kvdesk.values import dataclass

OFF, ON = "off", "on"
EFFORTS: Final = ("low", "medium", "high")
LEVELS: Final = ("", OFF, ON, *EFFORTS)
"""Of `Thinking.level`."""
_MOST: Final = 1 << 31
_SWITCH: Final = re.compile(r"\benable_thinking\b|(?<![.\w'\"])thinking is (?:not )?defined|not thinking is defined")
_EFFORT: Final = re.compile(r"(?<![.\w'\"])reasoning_effort\b")
_KEEP: Final = re.compile(r"\b(?:preserve_thinking|clear_thinking)\b")


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
        if self.level in (OFF, ON):
            found |= switch(self.level == ON)
        elif self.level:
            found["reasoning_effort"] = self.level
        if self.keep:
            found |= {"preserve_thinking": True, "clear_thinking": False}
        return json.dumps(found) if found else ""

    @property
    def most(self) -> int:
        """Tokens of reasoning, as `Generate.reasoning_budget`: none where it is off, whatever the template does."""
        return 0 if self.level == OFF else self.budget


AS_USUAL: Final = Thinking()


def checked(thinking: Thinking) -> Thinking:
    """As it is; as usual where a file has made something else of it."""
    return thinking if thinking.level in LEVELS and -1 <= thinking.budget < _MOST else AS_USUAL


def switch(on: bool) -> dict[str, Any]:
    """Most templates call it `enable_thinking`, DeepSeek's `thinking`."""
    return {"enable_thinking": on, "thinking": on}


def levels_of(template: str) -> tuple[str, ...]:
    """Those of `LEVELS` that make a difference in this chat template (Jinja), "" first; () where none does."""
    found = ((OFF, ON) if _SWITCH.search(template) else ()) + (EFFORTS if _EFFORT.search(template) else ())
    return ("", *found) if found else ()


def can_keep(template: str) -> bool:
    """Whether this chat template (Jinja) can be told to keep earlier reasoning."""
    return _KEEP.search(template) is not None
