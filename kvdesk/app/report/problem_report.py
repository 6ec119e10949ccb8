"""The report of a problem: one zip file with versions, settings, logs, the journal and what the model's cache can do.

`contents` gathers the texts, `write_report` writes them. No text of a chat is in it unless that was ticked; the rules
are in `redaction`. Knows no Qt.
"""

import json
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from kvdesk import paths
from kvdesk.app.report import redaction
from kvdesk.cache.journal.file import JournalHeader, journal_lines
from kvdesk.cache.journal.recording import Recording
from kvdesk.errors import explained
from kvdesk.protocol.chat import LogLine
from kvdesk.protocol.model import LocalFile, ModelInfo
from kvdesk.protocol.operations import Capability
from kvdesk.session.commands import ReportChoice
from kvdesk.settings import Settings
from kvdesk.translation import tr
from kvdesk.values import asdict, dataclass
from kvdesk.whole_file import replacing

_LOG_BYTES: Final = 512 << 10  # of each log file, its end
_README: Final = """This is a report of a problem in kvdesk, written on the computer of the person who has it.

versions.json   versions, processor, memory
settings.json   settings{settings}
model.json      the open model, and what can be done to its cache with these settings
{more}"""


@dataclass(frozen=True, slots=True)
class ReportSources:
    """Everything a report is made of.

    versions   names and versions
    model      the open model, None if none is
    possible   what can be done to the cache
    log_dir    folder of the log files; `engine_log`: lines of the window's log
    journal    None if there is none, or if it is not wanted
    private    texts of chats and settings that are in memory: a line with one of them is left out
    chat       the chat that is open, as Markdown; "" if it is not wanted
    """

    settings: Settings
    versions: Mapping[str, str]
    model: ModelInfo | None = None
    possible: tuple[Capability, ...] = ()
    log_dir: Path | None = None
    engine_log: tuple[LogLine, ...] = ()
    journal: Recording | None = None
    private: tuple[str, ...] = ()
    chat: str = ""


def write_report(path: Path, sources: ReportSources, choice: ReportChoice) -> None:
    """Write the zip file; one that was there is replaced at the end. Raises UserError if it cannot be written."""
    with (
        explained(tr("The report could not be saved to {name}: {strerror}."), name=path.name),
        replacing(path) as part,
        zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED) as archive,
    ):
        for name, lines in contents(sources, choice):
            with archive.open(name, "w", force_zip64=True) as out:
                for line in lines:
                    out.write(line.encode("utf-8", "replace"))


def contents(sources: ReportSources, choice: ReportChoice) -> Iterator[tuple[str, Iterable[str]]]:
    """The files of the report: their names, and their text in pieces."""
    settings = (
        sources.settings.model_dump(mode="json") if choice.texts else redaction.settings_without_texts(sources.settings)
    )
    yield "versions.json", [_folders(_json(dict(sources.versions)), choice)]
    yield "settings.json", [_folders(_json(settings), choice)]
    yield "model.json", [_folders(_json(_model(sources)), choice)]
    more = []
    if choice.logs:
        more.append("log/            log files, and the lines of the window's log")
        yield from _logs(sources, choice)
    if choice.journal and sources.journal is not None:
        more.append("journal.jsonl   operations on the cache: kvdesk replay journal.jsonl")
        yield "journal.jsonl", _journal(sources.journal, sources, choice)
    if choice.texts and sources.chat:
        more.append("chat.md         the chat that was open")
        yield "chat.md", [_folders(sources.chat, choice)]
    without = "" if choice.texts else ", without texts"
    yield "README.txt", [_README.format(settings=without, more="\n".join(more)) + "\n"]


def _folders(text: str, choice: ReportChoice) -> str:
    return text if choice.folders else redaction.without_folders(text)


def _model(sources: ReportSources) -> dict[str, Any]:
    model = sources.model
    if model is None:
        return {"model": None}
    where = str(model.source.path) if isinstance(model.source, LocalFile) else model.source.name
    facts = {name: value for name, value in asdict(model).items() if isinstance(value, str | int | float)}
    return {"model": facts | {"file": where}, "capabilities": [asdict(row) for row in sources.possible]}


def _logs(sources: ReportSources, choice: ReportChoice) -> Iterator[tuple[str, Iterable[str]]]:
    def shown(text: str) -> str:
        return _folders(text if choice.texts else redaction.without_lines(text, sources.private), choice)

    files = sorted(sources.log_dir.glob("*.log*")) if sources.log_dir is not None else []
    for file in files:
        text = _end_of(file)
        yield f"log/{file.name}", [shown(text if choice.texts else redaction.log_without_texts(text))]
    lines = "".join(f"{line.level}: {line.text.rstrip()}\n" for line in sources.engine_log)
    yield "log/window.log", [shown(lines if choice.texts else redaction.without_quotes(lines))]


def _end_of(file: Path) -> str:
    """The last lines of a log file; empty if it cannot be read."""
    try:
        with paths.open_regular(file) as log:
            size = log.seek(0, 2)
            log.seek(max(0, size - _LOG_BYTES))
            text = log.read().decode("utf-8", "replace")
    except OSError:
        return ""
    return text if size <= _LOG_BYTES else text.partition("\n")[2]


def _journal(journal: Recording, sources: ReportSources, choice: ReportChoice) -> Iterator[str]:
    model = sources.model.source.name if sources.model is not None else ""
    for line in journal_lines(journal, JournalHeader(model, dict(sources.versions))):
        yield line if choice.texts else redaction.journal_line_without_tokens(line)


def _json(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False, default=str) + "\n"
