"""Options for llama.cpp's samplers: one for each field of `Sampling`, and a preset that they change."""

import argparse
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from kvdesk.cli.options import invalid
from kvdesk.cli.parser import Parser
from kvdesk.errors import UserError, explained
from kvdesk.numerals import read_real
from kvdesk.paths import open_regular
from kvdesk.settings import Preset, Sampling
from kvdesk.settings.preset import MOST_BYTES, imported
from kvdesk.settings.sampling import parsed_biases, parsed_breakers, parsed_stops
from kvdesk.settings.texts import texts_of
from kvdesk.translation import tr

_MOST_FILE: Final = 1_000_000
_FILES: Final = ("grammar", "json_schema")
_NO_OTHERS: Final[Mapping[str, str]] = {}
_LISTS: Final = {
    "logit_bias": ("TOKEN+BIAS", parsed_biases),
    "dry_sequence_breakers": ("TEXT", parsed_breakers),
    "stop": ("TEXT", parsed_stops),
}


def add_sampling(parser: Parser, defaults: Mapping[str, str] = _NO_OTHERS) -> None:
    """The default of each is the preset's value, and without one llama.cpp's. `defaults`: what others are."""
    group = parser.add_argument_group("sampling", tr("llama.cpp's samplers, and its defaults"))
    group.add_argument(
        "--preset", metavar="FILE", type=Path, help=tr("an exported preset; the options below change it")
    )
    for name, info in Sampling.model_fields.items():
        kind: Any = info.annotation
        about = texts_of(info)[1].replace("%", "%%")
        option = "--" + name.replace("_", "-")
        if name in _LISTS:
            group.add_argument(
                option,
                action="append",
                metavar=_LISTS[name][0],
                help=tr("{about}; may be repeated").format(about=about),
            )
        elif name == "samplers":
            group.add_argument(
                option,
                metavar="A;B;…",
                help=tr("{about} (default {default})").format(about=about, default=";".join(info.default)),
            )
        elif kind in (int, float):
            default = defaults.get(name, "random" if name == "seed" else info.default)
            group.add_argument(
                option,
                type=_real if kind is float else kind,
                metavar="N",
                help=tr("{about} (default {default})").format(about=about, default=default),
            )
        else:
            group.add_argument(option, metavar="TEXT", help=about)
        if name in _FILES:
            group.add_argument(f"{option}-file", type=Path, metavar="FILE", help=tr("the same, from a file"))


def _real(text: str) -> float:
    """A number as a program writes it, or as a user of any language does."""
    with suppress(ValueError):
        return float(text)
    found = read_real(text)
    if found is None:
        raise argparse.ArgumentTypeError(tr("“{text}” is not a number.").format(text=text))
    return found


def chosen(args: argparse.Namespace) -> Preset:
    """The preset with what the options change. Raises UserError: a value out of range, a file that cannot be read, a
    preset that is none.
    """
    preset = Preset(name="-") if args.preset is None else imported(_read(args.preset, MOST_BYTES + 1))
    return preset.model_copy(update={"sampling": _changed(preset.sampling, args)})


def _changed(base: Sampling, args: argparse.Namespace) -> Sampling:
    wanted: dict[str, Any] = {name: getattr(args, name) for name in Sampling.model_fields}
    wanted = {name: value for name, value in wanted.items() if value is not None}
    for name in _FILES:
        if (file := getattr(args, f"{name}_file")) is not None:
            wanted[name] = _read(file, _MOST_FILE).decode("utf-8", "replace")
    if "samplers" in wanted:
        wanted["samplers"] = tuple(part.strip() for part in wanted["samplers"].split(";") if part.strip())
    try:
        for name, (_, parsed) in _LISTS.items():
            if name in wanted:
                wanted[name] = parsed("\n".join(wanted[name]))
        return Sampling(**(dict(base) | wanted))
    except ValidationError as error:
        raise invalid(error) from error
    except ValueError as error:
        raise UserError(str(error)) from error


def _read(file: Path, most: int) -> bytes:
    with explained(tr("{file} cannot be read ({strerror})."), file=file), open_regular(file) as opened:
        return opened.read(most)
