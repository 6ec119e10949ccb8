"""The environment of other programs: that which kvdesk was given. On Linux, where PyInstaller changes what it means."""

from collections.abc import MutableMapping
from typing import Final

_SEARCH: Final = "LD_LIBRARY_PATH"
_OF_START_CODE: Final = "_PYI_"


def give_back(environ: MutableMapping[str, str], bundle: str) -> None:
    """Take out what PyInstaller's start code and hooks have put in for the program in the folder `bundle`: another
    llama-server, or a browser, would load kvdesk's libraries and plug-ins. This process has looked at them when it
    began, and Qt knows its folder; another kvdesk begins as if a user had started it.
    """
    given = environ.pop(f"{_SEARCH}_ORIG", None)
    for name, value in list(environ.items()):
        if name.startswith(_OF_START_CODE) or value.startswith(bundle):
            del environ[name]
    if given is not None:
        environ[_SEARCH] = given
