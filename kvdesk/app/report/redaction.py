"""Taking out of a report of a problem what is nobody's business: texts of chats, and names of people in paths.

What may hold a text is left out rather than searched: messages of exceptions, everything in quotation marks, settings
that are texts, tokens of the journal. Knows no Qt.
"""

import getpass
import json
import re
from collections.abc import Iterable
from enum import Enum
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel

LEFT_OUT: Final = "(left out)"
_KEPT_TEXTS: Final = frozenset({"language"})  # settings that are free texts for the program, not for a user
_SHORTEST: Final = 6  # characters of a text that is looked for as it is
_LOGGED: Final = re.compile(r"\d{4}-\d\d-\d\d [\d:,]+ [A-Z]+ [\w.]+: ")
_FRAME: Final = re.compile(r'\s*(?:\| *)*File ".*", line \d+(?: in | in \w+|, in .*)?$')
_CRASHED: Final = re.compile(r"(?:Current t|T)hread 0x[0-9a-f]+.*:$|Fatal Python error: [\w ]+$")
_RAISED: Final = re.compile(r"[A-Za-z_][\w.]*(?=:|$)")
_QUOTED: Final = re.compile(r"“[^”]*(?:”|$)|\"[^\"]*(?:\"|$)|'[^']*(?:'|$)|«[^»]*(?:»|$)|`[^`]*(?:`|$)")
_FOLDERS: Final = re.compile(r"(?:\b[A-Za-z]:|(?<![\w.…]))(?:[\\/]+[^\\/\n:*?\"<>|]+)*[\\/]+(?=[^\\/\n])")


def without_quotes(text: str) -> str:
    """Nothing in quotation marks stays; one that is never closed goes on to the end of the line."""
    return _QUOTED.sub(f"“{LEFT_OUT}”", text)


def without_folders(text: str) -> str:
    """Of every path only the name of the file, and no name of the user whose computer this is."""
    text = _FOLDERS.sub("…/", text)
    for name in {getpass.getuser(), Path.home().name}:
        if len(name) > 1:
            text = re.sub(rf"(?<![A-Za-z0-9]){re.escape(name)}(?![A-Za-z0-9])", "…", text, flags=re.IGNORECASE)
    return text


def without_lines(text: str, private: Iterable[str]) -> str:
    """Lines that contain a line of one of the `private` texts are left out. Very short ones are not looked for."""
    wanted = {line.strip() for one in private for line in one.splitlines()}
    found = [line for line in wanted if len(line) >= _SHORTEST and line in text]
    if not found:
        return text
    return "".join(
        f"{LEFT_OUT}\n" if any(one in line for one in found) else line for line in text.splitlines(keepends=True)
    )


def log_without_texts(text: str) -> str:
    """A log file with its own lines and the frames of tracebacks; what an exception says is left out."""
    kept: list[str] = []
    in_traceback = False
    was_frame = False
    for line in text.splitlines():
        shown = _line_of_log(line, in_traceback=in_traceback, was_frame=was_frame)
        if _LOGGED.match(line):
            in_traceback = False
        elif line.startswith(("Traceback ", "  + Exception Group Traceback")):
            in_traceback = True
        elif in_traceback and shown and line[:1] not in ("", " "):
            in_traceback = False  # the exception itself; its message may have more lines
        was_frame = _FRAME.match(line) is not None
        if shown:
            kept.append(shown)
    return "".join(f"{line}\n" for line in kept)


def _line_of_log(line: str, *, in_traceback: bool, was_frame: bool) -> str:
    """What stays of a line, "" for nothing."""
    if (begin := _LOGGED.match(line)) is not None:
        return begin.group() + without_quotes(line[begin.end() :])
    if line.startswith("Traceback ") or _FRAME.match(line) or _CRASHED.match(line):
        return line
    if in_traceback and was_frame and line.startswith("    "):
        return line  # the source code of the frame
    if in_traceback and (raised := _RAISED.match(line)) is not None:
        return f"{raised.group()}: {LEFT_OUT}" if line != raised.group() else line
    return ""


def settings_without_texts(value: object, name: str = "") -> Any:
    """Settings as JSON has them: numbers, switches and choices; of a text only its length, of a model its file name."""
    if isinstance(value, BaseModel):
        return {key: settings_without_texts(getattr(value, key), key) for key in type(value).model_fields}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, bool | int | float) or value is None:
        return value
    if isinstance(value, str):
        if not value or name in _KEPT_TEXTS:
            return value
        return f"…/{Path(value).name}" if name == "model" else f"({len(value):,} characters left out)"
    if isinstance(value, list | tuple | set | frozenset):
        return [settings_without_texts(one) for one in value]
    if isinstance(value, dict):
        return f"({len(value):,} entries left out)" if value else {}
    return LEFT_OUT


def journal_line_without_tokens(line: str) -> str:
    """A line of a journal file with unknown tokens (-1), and without what its reason quotes."""
    entry = json.loads(line)
    for runs in (entry.get("cells"), entry.get("more")):
        for run in runs or ():
            if len(run) > 3:
                run[-1] = [-1] * len(run[-1])
    if "reason" in entry:
        entry["reason"] = without_quotes(entry["reason"])
    return json.dumps(entry, ensure_ascii=False, separators=(",", ":")) + "\n"
