"""Python code in the place of a child of kvdesk: it has `parent`, and `say` for values."""

import sys

_BEGIN = "from kvdesk.children.entry import Parent, limit; parent = Parent(); say = parent.send_value\n"


def fake_child(code: str) -> list[str]:
    """The command line of a child that runs this code."""
    return [sys.executable, "-c", _BEGIN + code]
