"""Every place of the window in a language without Latin letters: what still has them was not given to `tr`."""

import re
from collections.abc import Iterator
from html import unescape
from typing import Final

import pytest
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractSpinBox,
    QComboBox,
    QDialog,
    QDialogButtonBox,
    QLabel,
    QLineEdit,
    QWidget,
)

from kvdesk import translation
from kvdesk.agents import AGENTS
from kvdesk.settings import CacheType
from kvdesk.ui.shell.main_window import MainWindow
from kvdesk.ui.tools.servers_section import EXAMPLE
from kvdesk.ui.widgets.controls import ElidedLabel
from kvdesk.viewmodel.graphs.metric_groups import metric_groups
from tests.ui.samples import CONVERSATIONS, MODEL, cache_view
from tests.ui.test_accessibility import PLACES, opened
from tests.ui.test_numbers import measured

UNITS: Final = frozenset({"MB", "ms", "GB/s"})
NAMES: Final = frozenset(
    {"kvdesk", "English", "MB", "/models/tiny.gguf", MODEL.name, MODEL.description, *(k.value for k in CacheType)}
    | {"curl", EXAMPLE, *(agent.title for agent in AGENTS.values())}
)
"""What has the same name in every language."""
_LATIN: Final = re.compile(r"[A-Za-z]{2,}")
_MARKUP: Final = re.compile(r"<[^>]*>")
_CALL: Final = re.compile(r"llama_\w+\(.*")
_KEYS: Final = re.compile(r"\((Ctrl|Shift|Alt)\+[^)]*\)|\(F\d+\)|\(Esc\)")


def pseudo(one: str, many: str = "", n: int = 1) -> str:
    """Another letter for each but those of placeholders."""
    text = translation.english(one, many, n)
    return re.sub(r"\{[^{}]*\}|%n|[A-Za-z]", lambda m: m[0] if len(m[0]) > 1 else chr(0x4E00 + ord(m[0])), text)


@pytest.fixture
def _pseudo() -> Iterator[None]:
    translation.install(pseudo)
    yield
    translation.install(translation.english)


def texts(widget: QWidget) -> Iterator[str]:
    """What a widget shows and says."""
    yield widget.accessibleName()
    yield widget.toolTip()
    match widget:
        case QLabel() | QAbstractButton():
            yield widget.text()
        case QLineEdit():
            yield widget.placeholderText()
        case QComboBox():
            yield from (widget.itemText(i) for i in range(widget.count()))
        case QAbstractSpinBox():
            yield widget.specialValueText()
        case QDialog():
            yield widget.windowTitle()


def left(text: str) -> str:
    """The text without what is the same in every language."""
    text = _KEYS.sub("", _CALL.sub("", text))
    for name in (*NAMES, *(title for conversation in CONVERSATIONS if (title := conversation.title))):
        text = text.replace(name, "")
    return re.sub(r"\b[a-z]+_[a-z_]+\b", "", unescape(_MARKUP.sub("", text)))  # without names as those of llama.cpp


@pytest.mark.usefixtures("_pseudo")
def test_no_place_has_english(request: pytest.FixtureRequest) -> None:
    window: MainWindow = request.getfixturevalue("window")  # made after the language is set
    window.store.apply(cache_view())
    found = set[str]()
    for place in PLACES:
        if place in ("Palette", "Report", "Search", "Tour"):
            continue
        window.rooms.show_chats()
        root = opened(window, place)
        found |= {f"{place}: {one}" for one in english_in(root)}
        if root is not window:
            root.close()
    assert not found, "\n".join(sorted(found))


def english_in(root: QWidget) -> set[str]:
    """What still has Latin letters, but for llama.cpp's names and calls, and the names of packages and licences."""
    names = [w for w in root.findChildren(QLabel) if w.property("family") == "mono" or w.property("proper")]
    own = {w.full_text if isinstance(w, ElidedLabel) else w.text() for w in names}
    boxes = root.findChildren(QDialogButtonBox)
    own |= {b.text() for box in boxes for b in box.buttons() if box.standardButton(b)}  # in Qt's own catalogues
    return {
        f"{type(widget).__module__}: {text!r}"
        for widget in (root, *root.findChildren(QWidget))
        for text in texts(widget)
        if text not in own
        and not any(name and text.endswith(f": {name}") for name in own)
        and _LATIN.search(left(text))
    }


@pytest.mark.usefixtures("_pseudo")
def test_the_numbers_have_no_english() -> None:
    groups = metric_groups(measured(), cache_view(), {0: "0", 1: "1"})
    found = {
        text
        for g in groups
        for text in (g.title, g.empty, *(part for c in g.columns for part in (c.name, c.definition)))
    }
    found |= {
        text for g in groups for row in g.rows for text in (row.name, row.definition, *(v.unit for v in row.values))
    }
    assert len(found) > 100
    assert not {text for text in found - UNITS if _LATIN.search(left(text))}
