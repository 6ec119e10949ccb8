"""Guesses the usual cause why a program's prompt differs from the previous one, from the text on both sides.

Pure: two texts in, a cause out. The causes are those reported with local servers (llama.cpp #22746, lmstudio #1229): a
date or time in the system prompt, an identifier that is new in each request, tools in another order.
"""

import re
from enum import StrEnum
from typing import Final

from kvdesk.reasoning import TAGS
from kvdesk.translation import marked, tr

AROUND: Final = 24
"""Tokens on each side of the first difference."""
_MONTH: Final = "Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec"
_DAY: Final = "Mon|Tue|Wed|Thu|Fri|Sat|Sun"
_DATE: Final = re.compile(
    rf"\d{{4}}-\d\d?-\d\d?|\d\d?[./]\d\d?[./]\d{{2,4}}|\b\d\d?:\d\d\b|\b(?:{_MONTH})[a-z]*\.? \d|\b\d\d? (?:{_MONTH})"
    rf"|\b(?:{_DAY})[a-z]*\b,?|\d{{4}}年"
)
_ATTRIBUTION: Final = re.compile(r"x-anthropic-billing-header|\bcc_(?:version|entrypoint)=")
_IDENTIFIER: Final = re.compile(
    r"\bx-[a-z-]+:|\b(?:request|session|trace|message|conversation|user)[-_ ]?id\b|\bcch=|\buuid\b"
    r'|"(?:tool_call_)?id"\s*:|\[CALL_ID\]'
    r"|\b[0-9a-f]{8}-[0-9a-f]{4}|\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{12,}",
    re.IGNORECASE,
)
_TOOL: Final = re.compile(r'"(?:parameters|function|properties|required|description|inputSchema)"')
_THINKING: Final = re.compile(
    rf"</?(?:{'|'.join(TAGS)})>|\[/?THINK\]|◁/?think▷|<\|(?:START|END)_THINKING\|>|<\|(?:begin|end)_of_thought\|>"
    r"|<\|channel\|?>(?:analysis|thought)|<\|think\|>|<\|open\|>think|\breasoning_content\b"
)
"""Marks, not words: prompts are about thinking, too."""
_FIELD: Final = re.compile(r'"([^"\\]{1,60})"\s*:')
_NULL: Final = re.compile(r'"([^"\\]{1,60})"\s*:\s*null\b')
_ID: Final = re.compile(r'(?:"(?:tool_call_)?id"\s*:\s*"[^"]*"|\[CALL_ID\]\w+)')
_ESCAPE: Final = re.compile(r"\\u([0-9a-fA-F]{4})")


class UsualCause(StrEnum):
    """What a program does that makes its prompts differ."""

    REASONING = "reasoning"
    ATTRIBUTION = "attribution header"
    IDENTIFIER = "identifier"
    DATE = "date"
    TOOLS = "tools"
    BLANKS = "blanks"
    CALL_IDS = "call ids"
    FIELD_ORDER = "field order"
    NULL_FIELDS = "null fields"

    @property
    def sentence(self) -> str:
        return tr(_SENTENCES[self])


_SENTENCES: Final = {
    UsualCause.REASONING: marked(
        "Usual cause: the chat template, or the program, leaves out the reasoning of earlier answers."
    ),
    UsualCause.ATTRIBUTION: marked(
        "Usual cause: Claude Code begins the system prompt with an attribution header that changes. "
        "CLAUDE_CODE_ATTRIBUTION_HEADER=0 turns it off."
    ),
    UsualCause.IDENTIFIER: marked(
        "Usual cause: the program puts an identifier or a header into the prompt that changes."
    ),
    UsualCause.DATE: marked("Usual cause: the system prompt contains the date or the time."),
    UsualCause.TOOLS: marked("Usual cause: the tools come in another order, or other tools come."),
    UsualCause.BLANKS: marked(
        "Usual cause: the chat template, or the program, writes an earlier answer again, with other blanks or escapes."
    ),
    UsualCause.CALL_IDS: marked("Usual cause: the program gives the calls of an earlier answer other ids."),
    UsualCause.FIELD_ORDER: marked(
        "Usual cause: the program writes the arguments of a call again, with their fields in another order."
    ),
    UsualCause.NULL_FIELDS: marked(
        "Usual cause: the program writes the arguments of a call again, without the fields that are null."
    ),
}


def cause_in_answer(held: str, prompt: str) -> UsualCause | None:
    """The cause if texts differ inside an earlier answer; None if the answer was changed otherwise. The texts begin
    where the answer begins.
    """
    if _THINKING.search(held) or _THINKING.search(prompt):
        return usual_cause(held, prompt)
    names, others = _FIELD.findall(held), _FIELD.findall(prompt)
    nulls = set(names) - set(others)
    causes = (
        (_begin_alike(_plain(held), _plain(prompt)), UsualCause.BLANKS),
        (_begin_alike(_plain(_ID.sub("", held)), _plain(_ID.sub("", prompt))), UsualCause.CALL_IDS),
        (names != others and sorted(names) == sorted(others), UsualCause.FIELD_ORDER),
        (bool(nulls) and set(others) <= set(names) and nulls <= set(_NULL.findall(held)), UsualCause.NULL_FIELDS),
    )
    return next((cause for applies, cause in causes if applies), None)


def _plain(text: str) -> str:
    """Without blanks, and with escapes decoded."""
    unescaped = _ESCAPE.sub(lambda found: chr(int(found[1], 16)), text)
    return re.sub(r"\\n|\s", "", unescaped)


def _begin_alike(held: str, prompt: str) -> bool:
    """Whether the shorter of two texts is the beginning of the other."""
    n = min(len(held), len(prompt))
    return n > 0 and held[:n] == prompt[:n]


def usual_cause(held: str, prompt: str) -> UsualCause | None:
    """The first matching cause, None if there is none. The texts around the first difference: from the cache, and from
    the prompt. Equal texts in other tokens have none.
    """
    if held.startswith(prompt) or prompt.startswith(held):
        return None
    causes = (
        (_THINKING, UsualCause.REASONING),
        (_ATTRIBUTION, UsualCause.ATTRIBUTION),
        (_IDENTIFIER, UsualCause.IDENTIFIER),
        (_DATE, UsualCause.DATE),
        (_TOOL, UsualCause.TOOLS),
    )
    for pattern, cause in causes:
        found, other = ([match[0] for match in pattern.finditer(text)] for text in (held, prompt))
        if cause in (UsualCause.TOOLS, UsualCause.REASONING):
            if found or other:
                if cause is UsualCause.REASONING and _begin_alike(_plain(held), _plain(prompt)):
                    return UsualCause.BLANKS
                if cause is UsualCause.TOOLS or found != other:
                    return cause
        elif found and other:
            return cause
    return None
