"""Jinja2 for untrusted templates, set up as in Hugging Face transformers: no access to Python.

Owns the environment. It runs in a separate process, which limits its memory and time (`template_process`). Knows
nothing of chats.
"""

import json
from collections.abc import Iterator
from typing import Any

from jinja2 import TemplateError as JinjaError
from jinja2 import nodes
from jinja2.ext import Extension
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment


class Raised(JinjaError):
    """The template called `raise_exception`."""


class Sandbox(ImmutableSandboxedEnvironment):
    """The environment that chat templates are written for. Lists have `append` and `pop`, which Kimi's templates
    need: a template's input belongs to its own process.
    """

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        return (attr in ("append", "pop") and isinstance(obj, list)) or super().is_safe_attribute(obj, attr, value)

    def __init__(self) -> None:
        super().__init__(
            trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols", _GenerationTag], cache_size=0
        )
        self.filters["tojson"] = _tojson
        self.globals["raise_exception"] = _raise_exception
        del self.globals["lipsum"]  # random, so two renderings could not be compared
        del self.filters["random"]


class _GenerationTag(Extension):
    """`{% generation %}` marks an assistant's text for training; the text inside is kept."""

    tags = {"generation"}  # noqa: RUF012  # so does jinja2

    def parse(self, parser: Parser) -> list[nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


def _raise_exception(message: object = "") -> None:
    raise Raised(str(message))


def _tojson(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """As in transformers: characters stay unescaped, also those of HTML."""
    return json.dumps(
        value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys, default=_listed
    )


def _listed(value: object) -> object:
    """The result of `map` or `select`. Raises TypeError for anything else."""
    if isinstance(value, Iterator):
        return list(value)
    raise TypeError(f"a {type(value).__name__} is no JSON")
