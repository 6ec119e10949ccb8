"""A chat template rendered as Hugging Face transformers does it, without kvdesk, to compare with."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from jinja2 import TemplateError, nodes
from jinja2.ext import Extension
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

BOS, EOS = "<BOS>", "<EOS>"


class _Generation(Extension):
    tags = {"generation"}  # noqa: RUF012  # so does jinja2

    def parse(self, parser: Parser) -> list[nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


def rendered(source: str, messages: Sequence[Mapping[str, Any]], tools: object = None) -> str | None:
    """The prompt of a conversation; None if the template refuses it."""
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols", _Generation]
    )
    environment.filters["tojson"] = _tojson
    environment.globals["raise_exception"] = _refuse
    try:
        return environment.from_string(source).render(
            messages=messages,
            tools=tools,
            documents=None,
            add_generation_prompt=True,
            bos_token=BOS,
            eos_token=EOS,
            strftime_now=lambda layout: datetime.now().astimezone().strftime(layout),
        )
    except Exception:  # noqa: BLE001  # a template can fail in any way
        return None


def _tojson(value: object, ensure_ascii: bool = False, **options: Any) -> str:
    return json.dumps(value, ensure_ascii=ensure_ascii, **options)


def _refuse(why: object = "") -> None:
    raise TemplateError(str(why))
