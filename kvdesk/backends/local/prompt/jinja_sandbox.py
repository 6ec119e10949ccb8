"""Jinja2 for templates of strangers, as Hugging Face transformers sets it up: no access to Python.

Owns the environment. Its memory and time are limited from outside: it runs in a process of its own
(`template_process`). Knows nothing of chats.
"""

from __future__ import annotations

import json
from typing import Any

from jinja2 import TemplateError as JinjaError
from jinja2 import nodes
from jinja2.ext import Extension
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment


class Raised(JinjaError):
    """The template called `raise_exception`."""


class Sandbox(ImmutableSandboxedEnvironment):
    """The environment chat templates are written for."""

    def __init__(self) -> None:
        super().__init__(
            trim_blocks=True,
            lstrip_blocks=True,
            extensions=["jinja2.ext.loopcontrols", _GenerationTag],
            cache_size=0,
        )
        self.filters["tojson"] = _tojson
        self.globals["raise_exception"] = _raise_exception
        del self.globals["lipsum"]  # random: two renderings could not be compared
        del self.filters["random"]


class _GenerationTag(Extension):
    """`{% generation %}` marks for training what an assistant says; the text inside is simply text."""

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
    """As transformers has it: characters stay as they are, nothing is escaped for HTML."""
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)
