"""Writes the parts of docs that follow from declarations: `python packaging/reference.py [--check]`.

A page says where such a part goes: `<!-- made: commands -->`, and `<!-- end -->` behind it. What is between them is
replaced; pages of `docs/zh` get it in Chinese, as far as the catalogue has it. `--check` writes nothing and lists the
pages that are older than their declarations.

    settings     `kvdesk.settings`              commands     the parsers of `kvdesk.cli`
    endpoints    the routes of `kvdesk.server`  fields       its requests
    experiments  `kvdesk.experiments`           tuned        `kvdesk.policies.tuned`

Must never know: what the text around a part says.
"""

from __future__ import annotations

import argparse
import inspect
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from enum import Enum
from functools import partial
from pathlib import Path
from typing import Any, Final
from unittest import mock

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from setup import ROOT

from kvdesk import translation
from kvdesk.__main__ import COMMANDS
from kvdesk.__main__ import main as kvdesk
from kvdesk.cli import options, sampling_options
from kvdesk.cli.parser import Parser
from kvdesk.experiments import EXPERIMENTS
from kvdesk.paths import catalogues
from kvdesk.policies.tuned import TABLE
from kvdesk.settings import RANDOM_SEED, Settings, default_threads, llama_name
from kvdesk.translation import tr
from kvdesk.whole_file import write_whole

DOCS = ROOT / "docs"
BLOCK: Final = re.compile(r"(?s)(<!-- made: (\w+) -->\n).*?(<!-- end -->)")
_CHINESE: Final = {
    "Setting": "设置", "Name in files": "文件中的名称", "llama.cpp": "llama.cpp", "Default": "默认值", "Range": "范围",
    "Meaning": "含义", "Command": "命令", "Option": "选项", "Context options": "上下文选项",
    "Sampling options": "采样选项", "Window and engine": "窗口和引擎", "physical cores": "物理核心数", "random": "随机",
}  # fmt: skip
"""Words that the program does not show."""
_SECTIONS: Final = {
    "": "Window and engine", "sampling": "Sampling", "cache": "Cache", "context": "Context", "tools": "Tools",
    "serve": "Serve on this computer",
}  # fmt: skip
"""Tables of settings, with what the window calls them."""


def made(page: Path) -> str:
    """The text of the page with its parts as their declarations are now."""
    text = page.read_text(encoding="utf-8")
    with _language("zh_CN" if page.relative_to(DOCS).parts[0] == "zh" else translation.ENGLISH):
        return BLOCK.sub(lambda found: found[1] + "\n".join((*PARTS[found[2]](), "")) + found[3], text)


def pages() -> list[Path]:
    """Those with such parts."""
    return [page for page in sorted(DOCS.rglob("*.md")) if BLOCK.search(page.read_text(encoding="utf-8"))]


@contextmanager
def _language(name: str) -> Iterator[None]:
    """Of all texts, those of parsers too."""
    with mock.patch.dict(os.environ, {translation.VARIABLE: name}):
        translation.use([name], catalogues())
        try:
            yield
        finally:
            translation.install(translation.english)


def _word(english: str) -> str:
    return english if translation.installed() == translation.ENGLISH else _CHINESE.get(english) or tr(english)


def _table(*heads: str) -> list[str]:
    return [_row(*map(_word, heads)), "|---" * len(heads) + "|"]


def _row(*cells: str) -> str:
    return f"| {' | '.join(' '.join(cell.split()).replace('|', chr(92) + '|') or '–' for cell in cells)} |"


# --- settings ---------------------------------------------------------------------------------------------------------


def _settings() -> Iterator[str]:
    for table, title in _SECTIONS.items():
        model = Settings if not table else type(getattr(Settings(), table))
        heads = _table("Setting", "Name in files", "llama.cpp", "Default", "Range", "Meaning")
        yield from ("", f"## {_word(title)}", "", *heads)
        for name, info in model.model_fields.items():
            if info.title:
                key = f"`{table}.{name}`" if table else f"`{name}`"
                about = tr(info.description or "")
                yield _row(tr(info.title), key, _code(llama_name(info)), _default(info), _range(info), about)


def _default(info: FieldInfo) -> str:
    value = info.default
    if info.default_factory is default_threads:
        return _word("physical cores")
    if isinstance(value, bool):
        return tr("on") if value else tr("off")
    if value == RANDOM_SEED:
        return _word("random")
    if isinstance(value, tuple):
        return ", ".join(f"`{one!s}`" for one in value)
    return _number(value) if isinstance(value, int) and not isinstance(value, Enum) else str(value)


def _range(info: FieldInfo) -> str:
    if isinstance(info.annotation, type) and issubclass(info.annotation, Enum):
        return ", ".join(f"`{one.value}`" for one in info.annotation)
    found = {kind: getattr(one, kind) for one in info.metadata for kind in ("ge", "le") if hasattr(one, kind)}
    return f"{_number(found['ge'])} – {_number(found['le'])}" if len(found) == 2 else ""


def _number(value: float) -> str:
    """With commas from five digits on."""
    return f"{value:,}" if abs(value) >= 10_000 else str(value)


def _code(text: str) -> str:
    return f"`{text}`" if text else ""


# --- commands ---------------------------------------------------------------------------------------------------------


class _Built(Exception):
    def __init__(self, parser: Parser) -> None:
        super().__init__()
        self.parser = parser


def _parser(command: str) -> Parser:
    """The one that the command makes before it reads its arguments."""

    def stop(parser: Parser, *_: object) -> None:
        raise _Built(parser)

    with mock.patch.object(Parser, "parse_args", stop):
        try:
            kvdesk([command])
        except _Built as built:
            return built.parser
    raise AssertionError(f"kvdesk {command} makes no parser")


def _commands() -> Iterator[str]:
    yield from _table("Command", "Meaning")
    for name, what in COMMANDS.items():
        yield _row(f"[kvdesk {name}](#kvdesk-{name})", tr(what))
    shared = {name: Parser("", "") for name in ("Context options", "Sampling options")}
    options.add_model(shared["Context options"])
    options.add_context(shared["Context options"])
    sampling_options.add_sampling(shared["Sampling options"])
    known = {row: title for title, parser in shared.items() for row in _options(parser)}
    for name in COMMANDS:
        parser = _parser(name)
        yield from ("", f"## kvdesk {name}", "", " ".join((parser.description or "").split()), "")
        rows = _options(parser)
        used = dict.fromkeys(known[row] for row in rows if row in known)
        if len(own := [row for row in rows if row not in known]) + len(used):
            yield from _table("Option", "Meaning")
            yield from own
        for title in used:
            yield _row(f"[{_word(title)}](#{_word(title).lower().replace(' ', '-')})", "…")
    for title, parser in shared.items():
        yield from ("", f"## {_word(title)}", "", *_table("Option", "Meaning"), *_options(parser))


def _options(parser: Parser) -> list[str]:
    """A row for each argument and option."""
    return [
        _row(", ".join(f"`{one}`" for one in _forms(action)), (action.help or "").replace("%%", "%"))
        for action in parser._actions  # noqa: SLF001 - argparse lists them nowhere else
        if action.dest != "help" and action.help != argparse.SUPPRESS
    ]


def _forms(action: argparse.Action) -> list[str]:
    value = action.metavar if isinstance(action.metavar, str) else ""
    if not value and action.choices:
        value = "{" + ",".join(map(str, action.choices)) + "}"
    if not action.option_strings:
        return [value or action.dest]
    return [f"{option} {value}".strip() for option in action.option_strings]


# --- endpoints --------------------------------------------------------------------------------------------------------


def _endpoints() -> Iterator[str]:
    from kvdesk.server.app import routes

    found: dict[Any, list[tuple[str, str]]] = {}
    for route in routes(mock.sentinel.service):
        (method,) = (route.methods or set()) - {"HEAD"}
        endpoint = route.endpoint.func if isinstance(route.endpoint, partial) else route.endpoint
        found.setdefault(endpoint, []).append((method, route.path_format))
    yield from ("| | Path | |", "|---|---|---|")
    for endpoint, paths in sorted(found.items(), key=lambda one: min(map(_order, one[1]))):
        shown = ", ".join(f"`{path}`" for _, path in sorted(paths, key=_order))
        yield _row(paths[0][0], shown, (inspect.getdoc(endpoint) or "").split("\n\n")[0])


def _order(route: tuple[str, str]) -> tuple[bool, str]:
    """Those that begin with /v1/ first."""
    return not route[1].startswith("/v1/"), route[1]


def _fields() -> Iterator[str]:
    from kvdesk.server.app import routes  # imports every request
    from kvdesk.server.request.schemas import IGNORED, OTHER_NAMES, Body, ChatOptions, Sampled

    list(routes(mock.sentinel.service))
    shared: dict[type[BaseModel], str] = {Sampled: "Of every completion and chat", ChatOptions: "Of every chat"}
    groups = {title: kind for kind, title in shared.items()}
    for kind in _subclasses(Body):
        if path := re.match(r"`(/[^`]+)`", kind.__doc__ or ""):
            groups[path[1]] = kind
    for title, kind in sorted(groups.items(), key=lambda one: "" if one[1] in shared else one[0]):
        base = next((one for one in (ChatOptions, Sampled) if issubclass(kind, one) and kind is not one), None)
        yield from ("", f"### {title}", "")
        if base is not None:
            yield from (f"The fields [{shared[base].lower()}](#{shared[base].lower().replace(' ', '-')}), and:", "")
        yield from ("| Field | Type | Range | Default |", "|---|---|---|---|")
        schema = kind.model_json_schema(by_alias=True)
        by_name = {info.alias or name: info for name, info in kind.model_fields.items()}
        for name, one in schema["properties"].items():
            if base is None or name not in base.model_fields:
                default = "required" if name in schema.get("required", ()) else _shown(one.get("default"))
                yield _row(f"`{name}`", _type(one), _bounds(one, by_name[name]), default)
    yield from ("", "### Other names", "", "| Field | is read as |", "|---|---|")
    yield from (_row(f"`{other}`", f"`{name}`") for other, name in OTHER_NAMES.items())
    ignored = ", ".join(f"`{name}`" for name in sorted(IGNORED))
    yield from ("", "### Ignored", "", f"These change no answer: {ignored}.")


def _subclasses(kind: type[BaseModel]) -> list[type[BaseModel]]:
    return [one for child in kind.__subclasses__() for one in (child, *_subclasses(child))]


def _alternatives(schema: dict[str, Any]) -> list[dict[str, Any]]:
    return [one for one in schema.get("anyOf", [schema]) if one.get("type") != "null"]


def _type(schema: dict[str, Any]) -> str:
    names = []
    for one in _alternatives(schema):
        if "enum" in one:
            names.append(" or ".join(f"`{value}`" for value in one["enum"]))
        elif one.get("type") == "array":
            inner = _type(one.get("items", {}))
            names.append(f"list of {inner}s" if inner in ("string", "object", "integer", "number") else "list")
        else:
            names.append(str(one.get("type", "object" if "$ref" in one else "any")))
    return " or ".join(dict.fromkeys(names))


def _bounds(schema: dict[str, Any], info: FieldInfo) -> str:
    found = {kind: getattr(one, kind) for one in info.metadata for kind in ("ge", "le") if hasattr(one, kind)}
    for one in _alternatives(schema):
        low, high = one.get("minimum", found.get("ge")), one.get("maximum", found.get("le"))
        if low is not None:
            return f"{_number(low)} – {_number(high)}" if high is not None else f"from {_number(low)}"
    return ""


def _shown(value: Any) -> str:
    if value is None or value in ([], "", {}):
        return ""
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


# --- experiments, tuned numbers ---------------------------------------------------------------------------------------


def _experiments() -> Iterator[str]:
    yield from ("| Question | Command | Parameters: default (range) |", "|---|---|---|")
    for one in EXPERIMENTS:
        parameters = "; ".join(f"`{p.key}` {p.default:g} ({p.low:g} – {p.high:g})" for p in one.parameters)
        yield _row(f"[{tr(one.question)}]({one.id}.md)", f"`kvdesk lab run {one.id}`", parameters)


def _tuned() -> Iterator[str]:
    yield from ("| Number | Value | Unit | Why it exists | Where its value is from |", "|---|---|---|---|---|")
    for one in TABLE:
        yield _row(f"`{one.name}`", f"{one.value:,.10g}", one.unit, one.reason, one.measured)


PARTS: Final[dict[str, Callable[[], Iterator[str]]]] = {
    "settings": _settings,
    "commands": _commands,
    "endpoints": _endpoints,
    "fields": _fields,
    "experiments": _experiments,
    "tuned": _tuned,
}


def main(argv: Sequence[str]) -> int:
    """Exit code 1 if `--check` found an old page."""
    parser = argparse.ArgumentParser(prog="packaging/reference.py", description="Write what follows from declarations.")
    parser.add_argument("--check", action="store_true", help="write nothing; list the pages that are older")
    check = parser.parse_args(argv).check
    old = [(page, text) for page in pages() if (text := made(page)) != page.read_text(encoding="utf-8")]
    for page, text in old:
        print(page.relative_to(ROOT))
        if not check:
            write_whole(page, text.encode())
    return int(check and bool(old))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
