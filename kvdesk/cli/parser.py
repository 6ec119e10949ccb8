"""The parser of every command line: wrong input gets one sentence."""

from __future__ import annotations

import argparse
import re
from typing import NoReturn

from kvdesk.translation import tr


class Parser(argparse.ArgumentParser):
    """argparse's, which says what is wrong and where help is, without the list of all options."""

    def error(self, message: str) -> NoReturn:
        """Ends the process with exit code 2."""
        said = re.sub(r"^argument ", "", message).rstrip(".")
        self.exit(2, tr("{prog}: {said}. `{prog} --help` lists what there is.\n").format(prog=self.prog, said=said))
