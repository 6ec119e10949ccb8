"""Jinja2 for templates of strangers: no access to Python, and bounds on what a template may make.

Owns the environment and its budget. Jinja2's own sandbox closes the ways to Python's internals but lets a template fill
memory (`'a' * 2_000_000_000`, doubling by `~`, lists inside lists). Here everything that makes text or containers is
charged to a budget, per rendering. Time is the caller's to limit. Knows nothing of chats.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from string import Formatter
from typing import Any

from jinja2 import TemplateError as JinjaError
from jinja2 import nodes
from jinja2.compiler import CodeGenerator, Frame
from jinja2.exceptions import SecurityError
from jinja2.ext import Extension
from jinja2.filters import do_indent, do_join, do_replace
from jinja2.parser import Parser
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment

BASE_BUDGET = 50_000_000  # characters and container elements that one rendering may make
BUDGET_PER_CHARACTER = 50  # and this many more per character of its input
MAX_NUMBER = 10_000  # widths, counts and exponents given to filters and methods
MAX_BITS = 4096  # of an integer
DROPPED_FILTERS = frozenset({"pprint", "random", "urlize", "xmlattr", "wordwrap", "filesizeformat"})
WIDTH_FILTERS = frozenset({"batch", "center", "indent", "round", "slice", "tojson", "truncate"})
LONG_WIDTH = re.compile(r"\d{5,}|[*{]")  # in a format: 10,000 and more, or a width from outside
PERCENT_SPEC = re.compile(r"%[^a-zA-Z%]*")


class Raised(JinjaError):
    """The template called `raise_exception`."""


class Sandbox(ImmutableSandboxedEnvironment):
    """The environment chat templates are written for (that of Hugging Face transformers), with bounds.

    One rendering at a time: the budget belongs to the environment.
    """

    intercepted_binops = frozenset({"+", "*", "**", "%"})

    def __init__(self) -> None:
        super().__init__(
            trim_blocks=True,
            lstrip_blocks=True,
            extensions=["jinja2.ext.loopcontrols", _GenerationTag],
            finalize=self._finalize,
            cache_size=0,
        )
        self.code_generator_class = _Generator
        self.concat = self._concat  # type: ignore[method-assign]  # jinja2 reads it from the instance
        self._left = BASE_BUDGET
        self.filters["tojson"] = self._tojson
        self.filters["string"] = self.text
        self.filters["join"] = self._join
        self.filters["replace"] = self._replace
        self.filters["indent"] = self._indent
        self.filters["format"] = lambda text, *args: self._percent(str(text), args)
        self.filters = {
            name: self._bounded(name, function)
            for name, function in self.filters.items()
            if name not in DROPPED_FILTERS
        }
        self.globals["raise_exception"] = _raise_exception
        del self.globals["lipsum"]

    def start(self, input_size: int) -> None:
        """Begin a rendering over `input_size` characters: a fresh budget."""
        self._left = BASE_BUDGET + BUDGET_PER_CHARACTER * input_size

    # --- what templates do, bounded ---------------------------------------------------------------------------------

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        if operator == "%" and isinstance(left, str):
            return self._percent(left, right)
        if isinstance(left, int) and isinstance(right, int):
            _check_numbers(operator, left, right)
        elif operator == "*":
            self.charge(_length(left) * _times(right) + _length(right) * _times(left))
        return self._made(super().call_binop(context, operator, left, right))

    def call(self, context: Context, obj: Any, /, *args: Any, **kwargs: Any) -> Any:
        owner = getattr(obj, "__self__", None)
        if isinstance(owner, str):
            self._check_method(owner, obj.__name__, args)
        return self._made(super().call(context, obj, *args, **kwargs))

    def wrap_str_format(self, value: Any) -> Callable[..., str] | None:
        inner = super().wrap_str_format(value)
        if inner is None:
            return None
        layout = str(value.__self__)

        def bounded(*args: Any, **kwargs: Any) -> str:
            if any(LONG_WIDTH.search(spec or "") for _, _, spec, _ in Formatter().parse(layout)):
                raise SecurityError("a format with a long or nested width")
            self.charge(layout.count("{") * self._measure((args, kwargs), with_text=True))
            return inner(*args, **kwargs)

        return bounded

    def text(self, value: Any) -> str:
        """`value` as text; containers are measured first, since theirs can be exponentially long."""
        if isinstance(value, str):
            return value
        if isinstance(value, list | tuple | dict | set):
            self.charge(self._measure(value, with_text=True))
        return str(value)

    def joined(self, parts: Iterable[Any]) -> str:
        """The operator `~`."""
        return self._concat(self.text(part) for part in parts)

    def container(self, value: Any) -> Any:
        """`value` itself, charged for all it holds, however often: `[[x, x], [x, x]]` is 7 elements."""
        self.charge(self._measure(value, with_text=False))
        return value

    def charge(self, amount: int) -> None:
        """Take `amount` from the budget. Raises SecurityError when it is used up."""
        self._left -= amount
        if self._left < 0:
            raise SecurityError("the template makes too much text")

    # --- internals --------------------------------------------------------------------------------------------------

    def _made(self, value: Any) -> Any:
        """What a call or filter gave, charged."""
        if isinstance(value, str):
            self.charge(len(value))
        return self.container(value) if isinstance(value, list | tuple | dict) else value

    def _finalize(self, value: Any) -> Any:
        return value if isinstance(value, str) else self.text(value)

    def _concat(self, parts: Iterable[str]) -> str:
        kept = []
        for part in parts:
            self.charge(len(part))
            kept.append(part)
        return "".join(kept)

    def _measure(self, value: Any, with_text: bool) -> int:
        """Elements in `value`, shared ones as often as they occur; stops counting at the budget's end."""
        count, waiting = 0, [value]
        while waiting and count <= self._left:
            item = waiting.pop()
            count += 1
            if isinstance(item, str):
                count += len(item) if with_text else 0
            elif isinstance(item, Mapping):
                waiting.extend(item.keys())
                waiting.extend(item.values())
            elif isinstance(item, list | tuple | set):
                waiting.extend(item)
        return count

    def _bounded(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)  # keeps jinja2's mark of filters that want the environment
        def bounded(*args: Any, **kwargs: Any) -> Any:
            numbers = (*args[1:], *kwargs.values()) if name in WIDTH_FILTERS else ()
            if any(isinstance(number, int) and abs(number) > MAX_NUMBER for number in numbers):
                raise SecurityError(f"{name} with a huge number")
            return self._made(function(*args, **kwargs))

        return bounded

    def _check_method(self, owner: str, name: str, args: tuple[Any, ...]) -> None:
        if any(isinstance(number, int) and abs(number) > max(MAX_NUMBER, len(owner)) for number in args):
            raise SecurityError(f"{name} with a huge number")
        if name == "replace" and len(args) >= 2:
            self.charge(_replaced_length(owner, *args[:2]))
        elif name == "join" and args:
            self.charge(self._measure(args[0], with_text=True) + len(owner) * _length(args[0]))
        elif name in ("translate", "expandtabs", "encode"):
            raise SecurityError(f"{name} is not allowed")

    def _replace(self, text: Any, old: Any, new: Any, count: int | None = None) -> str:
        text, old, new = self.text(text), self.text(old), self.text(new)
        self.charge(_replaced_length(text, old, new))
        return str(do_replace(nodes.EvalContext(self), text, old, new, count))

    def _join(self, values: Any, d: str = "", attribute: str | int | None = None) -> str:
        kept = list(values)
        self.charge(self._measure(kept, with_text=True) + _length(self.text(d)) * len(kept))
        return str(do_join(nodes.EvalContext(self), kept, d, attribute))

    def _indent(self, text: Any, width: int | str = 4, first: bool = False, blank: bool = False) -> str:
        text = self.text(text)
        self.charge(len(text) + (text.count("\n") + 1) * (width if isinstance(width, int) else len(width)))
        return do_indent(text, width, first, blank)

    def _percent(self, layout: str, values: Any) -> str:
        if any(LONG_WIDTH.search(spec) for spec in PERCENT_SPEC.findall(layout)):
            raise SecurityError("a format with a long width")
        self.charge(layout.count("%") * self._measure(values, with_text=True))
        return str(str(layout) % values)

    def _tojson(
        self,
        value: Any,
        ensure_ascii: bool = False,
        indent: int | None = None,
        separators: tuple[str, str] | None = None,
        sort_keys: bool = False,
    ) -> str:
        """As transformers has it: characters stay as they are, nothing is escaped for HTML."""
        self.charge(self._measure(value, with_text=True) * (1 + (indent or 0)))
        return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


class _Generator(CodeGenerator):
    """Sends what makes text or containers through the environment, so that it is charged."""

    def visit_Concat(self, node: nodes.Concat, frame: Frame) -> None:  # noqa: N802  # jinja2's name
        self._through("joined", node.nodes, "(", frame)

    def visit_List(self, node: nodes.List, frame: Frame) -> None:  # noqa: N802  # jinja2's name
        self._through("container", node.items, "[", frame)

    def visit_Tuple(self, node: nodes.Tuple, frame: Frame) -> None:  # noqa: N802  # jinja2's name
        if node.ctx == "load":
            self._through("container", node.items, "(", frame)
        else:
            super().visit_Tuple(node, frame)

    def visit_Dict(self, node: nodes.Dict, frame: Frame) -> None:  # noqa: N802  # jinja2's name
        self.write("environment.container(")
        super().visit_Dict(node, frame)
        self.write(")")

    def _through(self, method: str, items: list[nodes.Expr], bracket: str, frame: Frame) -> None:
        self.write(f"environment.{method}({bracket}")
        for item in items:
            self.visit(item, frame)
            self.write(", ")
        self.write(("]" if bracket == "[" else ")") + ")")


class _GenerationTag(Extension):
    """`{% generation %}` marks for training what an assistant says; the text inside is simply text."""

    tags = {"generation"}  # noqa: RUF012  # so does jinja2

    def parse(self, parser: Parser) -> list[nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


def _raise_exception(message: object = "") -> None:
    raise Raised(str(message))


def _length(value: Any) -> int:
    return len(value) if isinstance(value, str | list | tuple) else 1


def _times(value: Any) -> int:
    return max(0, value) if isinstance(value, int) else 0


def _replaced_length(text: str, old: Any, new: Any) -> int:
    old, new = str(old), str(new)
    return len(text) + (text.count(old) if old else len(text) + 1) * len(new)


def _check_numbers(operator: str, left: int, right: int) -> None:
    if operator == "**" and abs(right) * left.bit_length() > MAX_BITS:
        raise SecurityError("a huge power")
    if operator == "*" and left.bit_length() + right.bit_length() > MAX_BITS:
        raise SecurityError("a huge product")
