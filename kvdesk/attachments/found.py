"""What was found in a file, or why there is no text in it. Values without words for a user."""

import re
from collections.abc import Mapping
from typing import Final, Literal

from kvdesk.message import AttachmentKind
from kvdesk.values import dataclass, field

MOST_CHARACTERS = 500_000
"""What is more of a text is left out. No context that fits into a laptop holds as much."""

ODD: Final = re.compile(rb"[\0-\x07\x0e-\x1a\x1c-\x1f\x7f]")
"""Control characters that a text does not have, as bytes."""

Problem = Literal[
    "too large", "password", "no text", "binary", "picture", "old document", "other archive", "damaged", "empty"
]
Part = Literal[
    "footnotes",
    "comments",
    "equations",
    "pictures",
    "headers",
    "charts",
    "objects",
    "hidden text",
    "deleted text",
    "symbols",
]
"""What a document has and its text has not."""


class Unreadable(Exception):
    """The file has no text for the model; `problem` says why, `detail` is for the log."""

    def __init__(self, problem: Problem, detail: str = "") -> None:
        super().__init__(problem)
        self.problem, self.detail = problem, detail


@dataclass(frozen=True, slots=True)
class Contents:
    """A file's text.

    encoding          of a text file that is not UTF-8 or for which one was chosen, else ""
    n_pages, of_pages read, and there, in a PDF; 0 in others
    is_cut            it is longer than `MOST_CHARACTERS`
    left_out          how many parts of each kind its text has not
    """

    kind: AttachmentKind
    text: str
    encoding: str = ""
    n_pages: int = 0
    of_pages: int = 0
    is_cut: bool = False
    left_out: Mapping[Part, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Answer:
    """What the process that reads a file sends: its contents, or why there are none."""

    contents: Contents | None
    problem: Problem | Literal["memory", "os", ""] = ""
    detail: str = ""
