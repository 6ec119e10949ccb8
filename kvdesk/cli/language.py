"""The language of what is started without a window: commands on the terminal, and the child processes of kvdesk.

In this order: the environment's KVDESK_LANGUAGE, which the parent of a child sets; what was chosen in the settings;
what the system prefers.
"""

import os
import sys
from collections.abc import Mapping

from kvdesk import translation
from kvdesk.loose_json import object_in
from kvdesk.paths import catalogues, open_regular, settings_file

_MOST_BYTES = 1 << 22  # of the settings


def install_language() -> None:
    """From now on `tr` speaks the user's language."""
    wanted = os.environ.get(translation.VARIABLE) or _chosen()
    translation.use(_system(os.environ) if wanted == "system" else [wanted], catalogues())


def _chosen() -> str:
    """As the settings say: alone, since reading all of them takes longer than many a command."""
    try:
        with open_regular(settings_file(make_folder=False)) as file:
            language = object_in(file.read(_MOST_BYTES)).get("language")
    except (OSError, ValueError):
        language = None
    return language if isinstance(language, str) and language else "system"


def _system(environment: Mapping[str, str]) -> list[str]:
    """The languages that the system prefers, the best first: the first variable that is set decides, as in gettext."""
    names = (environment.get(variable) for variable in ("LANGUAGE", "LC_ALL", "LC_MESSAGES", "LANG"))
    if found := next((name for name in names if name), ""):
        return [name.split(".")[0].split("@")[0] for name in found.split(":")]
    return _of_windows()


def _of_windows() -> list[str]:
    if sys.platform != "win32":
        return []
    import ctypes
    import locale

    name = locale.windows_locale.get(ctypes.windll.kernel32.GetUserDefaultUILanguage())
    return [name] if name else []
