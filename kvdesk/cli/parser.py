"""The parser of every command line: wrong input gets one sentence."""

import argparse
import re
from typing import Any, NoReturn

from kvdesk.translation import tr


class Parser(argparse.ArgumentParser):
    """argparse's in kvdesk's language, which says what is wrong and where help is, without the list of all options.
    `command`: its name, "" for kvdesk alone.
    """

    def __init__(self, command: str, about: str, **options: Any) -> None:
        super().__init__(prog=f"kvdesk {command}".rstrip(), description=about, **options, add_help=False)
        self._positionals.title, self._optionals.title = tr("arguments"), tr("options")
        self.add_argument("-h", "--help", action="help", help=tr("show this help and end"))

    def flag(self, name: str, about: str) -> None:
        """An option without a value: False unless it is given."""
        self.add_argument(name, action="store_true", help=about)

    def several(self, name: str, metavar: str, about: str) -> None:
        """An option that may be repeated: the list of its values."""
        self.add_argument(name, action="append", default=[], metavar=metavar, help=about)

    def format_help(self) -> str:
        return super().format_help().replace("usage: ", tr("usage: "), 1)

    def error(self, message: str) -> NoReturn:
        """Ends the process with exit code 2."""
        said = re.sub(r"^argument ", "", message).rstrip(".")
        self.exit(2, tr("{prog}: {said}. `{prog} --help` shows the usage.\n").format(prog=self.prog, said=said))
