r"""Closes what a text of Markdown leaves open: a stopped answer ends in the middle of a program, a formula or a fold.

What follows such a text in a file would otherwise belong to it. A list, a quotation and a paragraph end by
themselves; code between fences, formulas between `$$` or `\[` `\]`, comments and tags of HTML do not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Final

from kvdesk.reasoning import TAGS

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

_MAY_BE_OPEN: Final = re.compile(r"```|~~~|\$\$|\\\[|<[!?A-Za-z]")
_BEHIND: Final = "behind"
_COMMENT_END: Final = "-->"
_RAW: Final = ("script", "style", "textarea", "title", "iframe", "xmp")
"""Elements that have no tags in them."""
_ELEMENTS: Final = frozenset((
    *("a", "abbr", "article", "aside", "audio", "b", "big", "blockquote", "button", "center", "code", "del", "details"),
    *("dfn", "div", "dl", "em", "fieldset", "figure", "font", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6"),
    *("header", "i", "ins", "kbd", "main", "mark", "math", "nav", "noscript", "object", "ol", "pre", "q", "s", "samp"),
    *("section", "select", "small", "span", "strike", "strong", "sub", "summary", "sup", "svg", "table", "tt", "u"),
    *("ul", "var", "video", *_RAW, *TAGS),
))  # fmt: skip
"""Those that nothing but their end ends. Another word between angle brackets is text, as in `vector<int>`."""
_BLOCKS: Final = (
    *((re.compile(rf"<{name}\b", re.IGNORECASE), f"</{name}>") for name in ("script", "pre", "style", "textarea")),
    *((re.compile(start), end) for start, end in (("<!--", _COMMENT_END), (r"<\?", "?>"), (r"<!\[CDATA\[", "]]>"))),
    (re.compile("<![A-Za-z]"), ">"),
)
"""HTML that goes on over empty lines, and its end."""
_TAG: Final = re.compile(r"<!--|<(?P<end>/?)(?P<name>[A-Za-z][A-Za-z0-9-]*+)(?:[^<>\"']|\"[^\"]*+\"|'[^']*+')*+>")
_LINE_END: Final = re.compile(r"\r\n|\r|\n")
_CUT_TAG: Final = re.compile(r"</?[A-Za-z](?:[^<>\"']|\"[^\"]*+\"|'[^']*+')*+(?P<quote>[\"'])?[^\"']*+\Z")
_TICKS: Final = re.compile("`+")
_TICKS_OR_ESCAPED: Final = re.compile(r"\\[^\[\]\n]|`+")
_FENCE: Final = "```"
_PARAGRAPH_END: Final = re.compile(rf"\n[ \t]*\n|^({_FENCE})$", re.MULTILINE)
_MATH: Final = re.compile(r"\$\$|\\[\[\]]")
_MATH_ENDS: Final = {"$$": "$$", "\\[": "\\]"}


def closed(text: str) -> str:
    """The text, and behind it the ends of what it leaves open."""
    if not _MAY_BE_OPEN.search(text):
        return text
    text += _Html(_markdown().parse(text)).end_of_tag
    text += _end_of_block(text)
    tokens = _markdown().parse(text)
    return text + _end_of_formula(text, tokens) + "".join(f"\n\n{end}" for end in _Html(tokens).ends())


def _end_of_block(text: str) -> str:
    """Of a fence, or of HTML that empty lines do not end."""
    last = _last(text)
    if last is None or last.map is None:
        return ""
    if last.type == "fence":
        line = _LINE_END.split(text)[last.map[0]]
        # The fence may be in a list or a quotation.
        inside = "\n" + re.sub(r"[^>\s]", " ", line[: line.find(last.markup)])
        behind = _last(text + inside + _BEHIND)
        is_open = behind is not None and behind.type == "fence" and behind.content.rstrip().endswith(_BEHIND)
        return inside + last.markup if is_open else ""
    if last.type == "html_block":
        behind = _last(f"{text}\n\n# {_BEHIND}")
        if behind is not None and behind.type == "html_block":
            return next((f"\n{end}" for start, end in _BLOCKS if start.match(last.content.lstrip())), "")
    return ""


def _last(text: str) -> Token | None:
    """The last part of the text that is no end of another."""
    return next((token for token in reversed(_markdown().parse(text)) if token.nesting >= 0), None)


def _end_of_formula(text: str, tokens: Sequence[Token]) -> str:
    """A formula begins with a line. An empty line ends it, unless its mark is alone in its line; a fence
    or HTML always.
    """
    lines = _LINE_END.split(text)
    for token in tokens:
        if token.map is not None and token.type in ("fence", "code_block", "html_block"):
            first, last = token.map
            lines[first:last] = ["x" if token.type == "code_block" else _FENCE] * (last - first)
    indent, end, is_alone = "", "", False
    for part in filter(None, _PARAGRAPH_END.split("\n".join(lines))):
        if not is_alone or part == _FENCE:
            end = ""
        plain = _without_code(part)
        for match in _MATH.finditer(plain):
            if end:
                end = "" if match[0] == end else end
            elif match[0] in _MATH_ENDS:
                start = plain.rfind("\n", 0, match.start()) + 1
                before, behind = plain[start : match.start()], plain[match.end() :].partition("\n")[0]
                if not before.strip():
                    indent, end, is_alone = before, _MATH_ENDS[match[0]], not behind.strip()
    return f"\n{indent}{end}" if end else ""


class _Html:
    """Finds the elements that are open behind all tokens."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        self._open: dict[str, list[int]] = {}
        self._n = 0
        self._until = ""  # what ends a comment, or an element without tags
        self.end_of_tag = ""
        """Of one in which the text ends."""
        for token in tokens:
            self.end_of_tag = self.end_of_tag if token.nesting < 0 else ""
            if token.type == "html_block":
                self._read(token.content, is_block=True)
            elif token.type == "inline":
                self._read(_without_code(token.content), is_block=False)

    def ends(self) -> Iterator[str]:
        """Of what is open, the innermost first."""
        if self._until == _COMMENT_END:
            yield "<!-- -->"  # the end alone would be text
        found = ((at, name) for name, places in self._open.items() for at in places)
        for _, name in sorted(found, reverse=True):
            yield f"</{name}>"

    def _read(self, text: str, *, is_block: bool) -> None:
        lower = text.lower()
        at = self._behind(lower, 0, is_block)
        last_comment = text.rfind(_COMMENT_END)
        while (match := _TAG.search(text, at)) is not None:
            at = match.end()
            if match["name"] is None:
                if last_comment >= at or is_block:
                    self._until = _COMMENT_END
            elif (name := match["name"].lower()) in _ELEMENTS:
                self._take(name, is_end=bool(match["end"]))
            at = self._behind(lower, at, is_block)
        if is_block and (cut := _CUT_TAG.search(text, at)) is not None:
            self.end_of_tag = f"{cut['quote'] or ''}>"

    def _behind(self, text: str, at: int, is_block: bool) -> int:
        """The place behind what has no tags; in a paragraph the end of a comment is text."""
        if not self._until:
            return at
        end = text.find(self._until, at) if is_block or self._until != _COMMENT_END or at else -1
        if end < 0:
            return len(text)
        is_comment = self._until == _COMMENT_END
        self._until = ""
        return end + len(_COMMENT_END) if is_comment else end

    def _take(self, name: str, *, is_end: bool) -> None:
        self._n += 1
        if not is_end:
            self._open.setdefault(name, []).append(self._n)
            self._until = f"</{name}" if name in _RAW else ""
        elif self._open.get(name):
            self._open[name].pop()


def _without_code(text: str) -> str:
    r"""A paragraph with blanks for code between backticks, and for characters behind a backslash but `\[` and `\]`."""
    last = {len(run[0]): run.start() for run in _TICKS.finditer(text)}
    parts: list[str] = []
    at = 0
    while (match := _TICKS_OR_ESCAPED.search(text, at)) is not None:
        parts.append(text[at : match.start()])
        at = match.end()
        n = len(match[0])
        if match[0][0] == "`" and last.get(n, 0) >= at:
            end = re.compile(f"(?<!`)`{{{n}}}(?!`)").search(text, at)
            at = end.end() if end is not None else at
        parts.append(" " * (at - match.start()))
    return "".join((*parts, text[at:]))


@cache
def _markdown() -> MarkdownIt:
    """Blocks alone."""
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark").enable("table")
    parser.core.ruler.enableOnly(["normalize", "block"])
    return parser
