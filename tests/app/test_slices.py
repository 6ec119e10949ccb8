"""Each slice can be left out by one line: a window without it starts, has nothing of it, and all of the others."""

import json
import subprocess
import sys

import pytest

from kvdesk.ui.shell.slices import SLICES

OWN = {
    "lab": {
        "actions": ["view.lab"],
        "menu": ["view.lab"],
        "rooms": ["lab"],
        "widgets": ["labButton"],
        "modules": ["kvdesk.ui.lab.page", "kvdesk.app.slices.laboratory"],
    },
    "serve": {
        "actions": ["app.serve"],
        "menu": ["app.serve"],
        "sections": ["Serve on this computer"],
        "widgets": ["servingChip"],
        "modules": ["kvdesk.ui.server.serve_section", "kvdesk.app.slices.serving", "kvdesk.viewmodel.requests"],
    },
    "blocks": {
        "actions": ["view.blocks"],
        "pages": ["Blocks"],
        "modules": ["kvdesk.ui.blocks.page", "kvdesk.viewmodel.block_readout"],
    },
    "attention": {"actions": ["view.attention"], "pages": ["Attention"], "modules": ["kvdesk.ui.attention.legend"]},
}
"""What each brings into the window when everything in it was opened."""
START = """
import json, os, sys
from PySide6.QtCore import QObject
from kvdesk.app import application
from kvdesk.protocol.blocks import BlockMapView
from kvdesk.ui.shell.slices import SLICES
from kvdesk.ui.widgets.style import theme
from tests.backends.scripted import ScriptedBackend

theme.style_sheet = lambda *_: ""  # no size and no colour is looked at
given = tuple(one for one in SLICES if one.name not in sys.argv[1:])
make = application.MainWindow
application.MainWindow = lambda *parts: make(*parts, slices=given)
parts = application.build(None, ScriptedBackend)
window = parts.window
window.show()
parts.controller.furnish()
window.store.apply(BlockMapView())
for name in window.rooms._rooms:
    window.rooms.show_room(name)
window.rooms.show_chats()
for label in window.inspector.labels:
    window.shown_settings.show_page(label)
window.help.open_palette()
titles = {action.label: action.id for group in window.kit.actions.groups for action in group.actions}
sections = window.rooms.show_settings().sections
found = {
    "actions": list(titles.values()),
    "menu": [titles.get(line.text().partition("\\t")[0]) for line in window.help.menu().actions()],
    "rooms": list(window.rooms._rooms),
    "sections": [sections.item(n).text() for n in range(sections.count())],
    "pages": window.inspector.labels,
    "widgets": [one.objectName() for one in window.findChildren(QObject) if one.objectName()],
    "modules": list(sys.modules),
}
parts.controller.shut_down()
print(json.dumps(found), flush=True)
os._exit(0)  # nothing is taken down in order here
"""


def test_every_slice_is_looked_for() -> None:
    assert [one.name for one in SLICES] == list(OWN)


@pytest.mark.parametrize(
    "left_out",
    [
        ["lab", "blocks"],
        *(pytest.param(names.split(), marks=pytest.mark.matrix) for names in ("serve attention", *OWN)),
    ],
    ids=" ".join,
)
def test_a_window_without_slices_has_all_but_those(left_out: list[str]) -> None:
    done = subprocess.run([sys.executable, "-c", START, *left_out], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    for name, own in OWN.items():
        for kind, what in own.items():
            assert [one for one in what if one in found[kind]] == ([] if name in left_out else what), kind
