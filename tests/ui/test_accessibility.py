"""Everything can be reached by keys, has a name and a role, and what happens elsewhere is said."""

from collections.abc import Iterator

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QAccessible, QAccessibleInterface
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractItemView,
    QApplication,
    QComboBox,
    QLabel,
    QLineEdit,
    QPlainTextEdit,
    QScrollArea,
    QTextEdit,
    QWidget,
)
from pytestqt.qtbot import QtBot

from kvdesk.message import MessageId
from kvdesk.protocol.chat import LogLine, TextDelta, TurnEnded, TurnStarted
from kvdesk.ui.shell.about_dialog import AboutFacts
from kvdesk.ui.shell.inspector import pages_of
from kvdesk.ui.shell.main_window import MainWindow
from kvdesk.ui.shell.slices import SLICES
from kvdesk.ui.widgets.access import announce as announcing
from tests.ui.attended import show_attended
from tests.ui.samples import ONE, STATS, TWO, cache_view, message, show_messages

LABELS = tuple(page.label for page in pages_of(SLICES))
PLACES = (
    *LABELS,
    "Lab",
    "Settings",
    "Parameters",
    "Compaction",
    "About",
    "Report",
    "Explained",
    "Palette",
    "Tour",
    "Search",
)


@pytest.fixture
def used(window: MainWindow) -> MainWindow:
    """A window with messages, a log, cells."""
    window.store.apply(cache_view())
    show_attended(window.store)
    window.store.apply(LogLine("info", "a line"))
    text = "An answer with `code`:\n\n```python\nprint(1)\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n"
    show_messages(window, ONE, (message("q", "user", "Hello"), message("a", "assistant", text, stats=STATS)))
    return window


def opened(window: MainWindow, place: str) -> QWidget:
    """Show a place; returns what holds all of it."""
    before = set(QApplication.topLevelWidgets())
    if place in LABELS:
        window.shown_settings.show_page(place)
    elif place == "Search":
        window.conversations.search.setText("village")
    else:
        ids = {
            "Lab": "view.lab",
            "Settings": "settings.open",
            "Parameters": "chat.parameters",
            "Compaction": "cache.compact",
            "Report": "help.report",
            "Explained": "help.explained",
            "Palette": "help.palette",
            "Tour": "help.tour",
        }
        if place == "About":
            window.help.show_about(AboutFacts((("kvdesk", "1"),), (("numpy 2", "BSD"),), "The text of a licence."))
        else:
            window.action_set.run(ids[place])
    QApplication.processEvents()
    new = [w for w in QApplication.topLevelWidgets() if w not in before and w.isVisible() and w.isWindow()]
    return new[0] if new else window


def leave(window: MainWindow, place: str, root: QWidget) -> None:
    """Close what `opened` has opened."""
    if place == "Tour":
        window.help.leave_tour()
    elif place == "Parameters":
        window.chat_parameters.close()
    elif place == "Search":
        window.conversations.search.clear()
    elif place in ("Lab", "Settings"):
        window.rooms.show_chats()
    elif place == "Palette":
        window.help.palette.close_palette()
    elif root is not window:
        root.hide()


def reachable(root: QWidget) -> Iterator[QWidget]:
    """What Tab or a click can give the focus to, and lists and tables."""
    for widget in root.findChildren(QWidget):
        inside = widget.parentWidget()
        if isinstance(inside, QLineEdit | QComboBox) or widget.objectName().startswith("qt_") or widget.isWindow():
            continue  # Qt's own parts of a field
        if isinstance(widget, QScrollArea) and not widget.focusPolicy() & Qt.FocusPolicy.TabFocus:
            continue
        if isinstance(widget, QLabel) and not widget.text():
            continue  # nothing is shown
        is_used = widget.focusPolicy() != Qt.FocusPolicy.NoFocus or isinstance(widget, QAbstractItemView)
        if is_used and widget.focusProxy() is None and widget.isVisibleTo(root):
            yield widget


def is_one_of_several(widget: QWidget) -> bool:
    """A choice that is not taken: arrows lead there from the one that is."""
    if not isinstance(widget, QAbstractButton) or widget.isChecked():
        return False
    return widget.autoExclusive() or (widget.group() is not None and widget.group().exclusive())


@pytest.mark.parametrize("places", [("Graphs",), tuple(place for place in PLACES if place != "Graphs")])
def test_every_place_is_used_by_keys_and_by_a_screen_reader(
    used: MainWindow, qtbot: QtBot, places: tuple[str, ...]
) -> None:
    for place in places:
        used.chat.composer.focus_edit()
        root = opened(used, place)
        check_names(place, root)
        if place != "Palette":  # Tab goes through its list there
            check_tab(place, root, qtbot)
        leave(used, place, root)


def is_told_by_name(choice: QComboBox, interface: QAccessibleInterface) -> bool:
    """Qt says its text where its name belongs, but on Windows: so a label's or its description says what it is for."""
    told = " ".join(interface.text(text) for text in (QAccessible.Text.Name, QAccessible.Text.Description))
    has_label = any(flag & QAccessible.RelationFlag.Label for _, flag in interface.relations())
    return has_label or (choice.accessibleName() or "no name") in told


def check_names(place: str, root: QWidget) -> None:
    """Everything has a name and a role, and no field keeps the Tab key."""
    nameless, roles = [], []
    n = 0
    for widget in reachable(root):
        n += 1
        interface = QAccessible.queryAccessibleInterface(widget)
        if not interface.text(QAccessible.Text.Name).strip():
            nameless.append(f"{type(widget).__name__} in {type(widget.parentWidget()).__name__}")
        if isinstance(widget, QComboBox) and not is_told_by_name(widget, interface):
            nameless.append(f"{type(widget).__name__} {widget.accessibleName()!r}")
        if interface.role() == QAccessible.Role.NoRole:
            roles.append(type(widget).__name__)
    assert n > 1, place
    assert (place, nameless) == (place, [])
    assert (place, roles) == (place, [])
    keeps_tab = [
        type(widget.parentWidget()).__name__
        for widget in root.findChildren(QWidget)
        if (isinstance(widget, QPlainTextEdit | QTextEdit) and not widget.tabChangesFocus())
        or (isinstance(widget, QAbstractItemView) and widget.tabKeyNavigation() and widget.objectName()[:3] != "qt_")
    ]
    assert (place, keeps_tab) == (place, [])


def check_tab(place: str, root: QWidget, qtbot: QtBot) -> None:
    """From where it begins Tab goes through everything and back; nothing is left out, nowhere it stays."""
    root.activateWindow()
    qtbot.waitUntil(lambda: QApplication.focusWidget() is not None or root.focusWidget() is not None)
    wanted = {
        widget
        for widget in reachable(root)
        if widget.focusPolicy() & Qt.FocusPolicy.TabFocus and widget.isEnabled() and not is_one_of_several(widget)
    }
    reached: list[QWidget] = []
    for _ in range(2 * len(wanted) + 4):
        now = root.focusWidget()
        if now in reached:
            break
        reached.append(now)
        qtbot.keyClick(now, Qt.Key.Key_Tab)
    missed = [f"{type(w).__name__} {w.accessibleName()}" for w in wanted - set(reached)]
    assert (place, missed) == (place, [])


def test_an_answer_that_begins_and_ends_is_said(window: MainWindow, said: list[tuple[str, bool]]) -> None:
    show_messages(window, ONE, (message("q", "user", "Hello"), message("a", "assistant", "", state="streaming")))
    answer = MessageId("a")
    window.store.apply(TurnStarted(ONE, answer, 0, 0, 12))
    for other in ("Hello ", "to ", "you."):
        window.store.apply(TextDelta(ONE, answer, other, (1,)))
    window.store.apply(TurnEnded(ONE, answer, "complete", STATS))
    window.store.apply(TurnEnded(TWO, MessageId("b"), "complete", STATS))
    assert said == [("The answer begins.", False), ("The answer has ended. Hello to you.", False)]


def test_errors_and_finished_operations_are_said(window: MainWindow, said: list[tuple[str, bool]]) -> None:
    window.store.complain("The model cannot be opened.", "")
    window.store.notify("The chat was saved.", "good")
    for sentence in ("Two messages are not saved.", "Two messages are not saved.", ""):
        window.store.show_unsaved(sentence)
    assert said == [
        ("Error: The model cannot be opened.", True),
        ("The chat was saved.", False),
        ("Two messages are not saved.", True),
    ]


def test_without_a_screen_reader_nothing_is_sent(
    window: MainWindow, said: list[tuple[str, bool]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(announcing, "_is_heard", lambda: False)
    window.store.complain("The model cannot be opened.", "")
    assert said == []
