"""Markdown as text without its marks: what one pastes where Markdown means nothing. Code, links and numbers stay."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kvdesk.ui.markdown.parser import markdown_parser

if TYPE_CHECKING:
    from markdown_it.token import Token


def plain_text(markdown: str) -> str:
    """Paragraphs apart, items of lists with their number or a dash, cells of tables apart by tabs, addresses of links
    in brackets behind their words, code as it is.
    """
    writer = _Writer()
    for token in markdown_parser().parse(markdown):
        writer.take(token)
    return "\n".join(writer.lines).strip("\n")


class _Writer:
    def __init__(self) -> None:
        self.lines: list[str] = []
        self._lists: list[int | None] = []  # the next number of each open list; None: not numbered
        self._mark = ""  # of an item of a list whose text comes next
        self._cells: list[str] | None = None  # of a row of a table

    def take(self, token: Token) -> None:
        match token.type:
            case "bullet_list_open" | "ordered_list_open":
                if not self._lists:
                    self._gap()
                self._lists.append(int(token.attrGet("start") or 1) if token.type == "ordered_list_open" else None)
            case "bullet_list_close" | "ordered_list_close":
                self._lists.pop()
            case "list_item_open":
                number = self._lists[-1]
                self._mark = "- " if number is None else f"{number}. "
                self._lists[-1] = None if number is None else number + 1
            case "table_open":
                self._gap()
            case "tr_open":
                self._cells = []
            case "tr_close":
                self.lines.append("\t".join(self._cells or []))
                self._cells = None
            case "fence" | "code_block":
                self._write(token.content.rstrip("\n"))
            case "hr":
                self._write("---")
            case "inline" if self._cells is not None:
                self._cells.append(_words(token.children or []).replace("\n", " "))
            case "inline":
                self._write(_words(token.children or []))

    def _write(self, text: str) -> None:
        """A block: behind the mark of its item where it is the first of one, else apart from what is before."""
        depth = len(self._lists)
        if not self._mark:
            self._gap()
        outer, inner = "  " * max(depth - 1, 0), "  " * depth
        first, *rest = text.split("\n")
        self.lines += [f"{outer}{self._mark}{first}" if self._mark else inner + first, *(inner + line for line in rest)]
        self._mark = ""

    def _gap(self) -> None:
        if self.lines and self.lines[-1]:
            self.lines.append("")


def _words(children: Sequence[Token]) -> str:
    parts: list[str] = []
    links: list[tuple[str, int]] = []
    for token in children:
        match token.type:
            case "softbreak" | "hardbreak":
                parts.append("\n")
            case "link_open":
                links.append((str(token.attrGet("href") or ""), len(parts)))
            case "link_close":
                address, start = links.pop()
                if address not in ("", "".join(parts[start:])):
                    parts.append(f" ({address})")
            case _:
                parts.append(token.content)
    return "".join(parts)
