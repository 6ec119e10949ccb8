"""Every place of the window in every language and in its smallest size: nothing needs more room than it has, and all
dialogs have one margin.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Final

import pytest
from PySide6.QtCore import QEvent
from PySide6.QtGui import QFontDatabase, QHelpEvent
from PySide6.QtWidgets import QApplication, QDialog, QToolTip, QWidget
from pytestqt.qtbot import QtBot

from kvdesk import translation
from kvdesk.conversations.porting.summary import Summary
from kvdesk.library.recommended import recommended
from kvdesk.protocol.cache import ContextReady
from kvdesk.protocol.chat import BackendReady, LogLine, ModelLoaded
from kvdesk.protocol.features import Feature
from kvdesk.protocol.servers import ServerFound
from kvdesk.session import Store
from kvdesk.settings import KnownServer, ServeSettings, Settings, ThemeChoice
from kvdesk.translation import Translate
from kvdesk.ui.chat_list.import_dialog import ImportDialog
from kvdesk.ui.shell.main_window import MainWindow
from kvdesk.ui.widgets.choice import Choice
from kvdesk.ui.widgets.controls import ElidedButton, label
from kvdesk.ui.widgets.style.theme import Theme
from kvdesk.viewmodel.downloads import recommended_offers
from tests.ui.attended import show_attended
from tests.ui.blocks.test_page import view as blocks
from tests.ui.chat.test_empty_pane import OFFER
from tests.ui.cut_texts import chinese, cut, longer
from tests.ui.dialog_margins import kinds, wrong_margins
from tests.ui.models.test_page import MACHINE, row
from tests.ui.samples import CONTEXT, CONVERSATIONS, MODEL, ONE, STATS, cache_view, message, show_messages
from tests.ui.server.test_serve_section import row as request
from tests.ui.test_accessibility import PLACES, leave, opened
from tests.ui.tool_places import tools

HAS_CHINESE: Final = QFontDatabase.WritingSystem.SimplifiedChinese
SIZES: Final = ((900, 600, 100), (1280, 800, 100), (1280, 800, 200))
"""Width and height of the window in pixels, and the zoom in percent. The last is as narrow as 640 pixels without zoom:
kvdesk's own languages must fit, one with longer words need not.
"""


MESSAGES: Final = (message("q", "user", "Hello"), message("a", "assistant", "Hello to you.", stats=STATS))


def languages() -> dict[str, Callable[[], Translate]]:
    return {
        "English": lambda: translation.english,
        "Chinese": lambda: chinese(bool(QFontDatabase.families(HAS_CHINESE))),
        "longer": lambda: longer,
    }


def filled(app: QApplication) -> MainWindow:
    window = MainWindow(app, Store(Settings(theme=ThemeChoice.DARK)))
    window.store.settings.change(**dict(Settings(theme=ThemeChoice.DARK)))
    window.store.show_conversations(CONVERSATIONS, ONE)
    window.store.apply(ModelLoaded(MODEL))
    window.store.apply(ContextReady(CONTEXT, rebuilt=False))
    window.store.apply(cache_view())
    show_attended(window.store)
    window.store.apply(LogLine("info", "a line"))
    show_messages(window, ONE, MESSAGES)
    return window


def places(window: MainWindow) -> Iterator[tuple[str, QWidget]]:
    """Each place with what holds it, one after the other."""
    yield "calm", window
    window.chat.empty.offer.show_offer(OFFER, "1.83 GB  ·  apache-2.0  ·  ≈ 9.1 tok/s expected here", None)
    window.store.show_embedded(is_open=True)
    show_messages(window, ONE, ())
    yield "First start", window
    window.store.show_embedded(is_open=False)
    show_messages(window, ONE, MESSAGES)
    for place in PLACES:
        root = opened(window, place)
        yield place, root
        if place == "Settings" and (settings := window.rooms.settings) is not None:
            for section in range(1, settings.sections.count()):
                settings.sections.setCurrentRow(section)
                yield f"Settings, section {section}", root
            settings.show_context()
            yield "Settings, a rebuild", root
        if place == "Parameters" and (parameters := window.chat_parameters.panel) is not None:
            for tab in (1, 2):
                parameters.tab(tab).click()
                yield f"Parameters, page {tab}", root
        leave(window, place, root)
    window.help.open_shortcuts()
    yield "Shortcuts", window
    window.help.palette.close_palette()
    window.rooms.show_models()
    window.rooms.models.show_rows((row("big", 9 * 10**9), row("small", 10**8)), MACHINE)
    yield "Models", window
    window.rooms.models.get_models.show_recommended(recommended_offers(recommended()))
    window.rooms.models.get_models.show_machine(MACHINE)
    window.rooms.show_models(get=True)
    yield "Get models", window
    window.rooms.show_chats()
    dialog = ImportDialog(window.theme, "chats.json", window)
    dialog.show_summary(Summary(("ChatGPT",), 12, 4, 120, 13, 10**12, 2 * 10**12, Counter()))
    dialog.show()
    yield "Import", dialog
    dialog.hide()
    yield from tools(window)
    yield from servers(window)


def servers(window: MainWindow) -> Iterator[tuple[str, QWidget]]:
    """Serving, connecting, and what a server with blocks has; last, since such a server has no cells."""
    window.store.settings.change(serve=ServeSettings(port=8099))
    window.action_set.run("app.serve")
    settings = window.rooms.settings
    settings.serving.show_key("sk-kvdesk-0123456789abcdef")
    settings.serving.show_serving("http://127.0.0.1:8099/v1")
    settings.serving.show_requests((request(2), request(1, "The first request of this program.")))
    yield "Serve", window
    window.action_set.run("model.server")
    settings.connecting.show_servers((KnownServer(url="http://192.168.1.5:8080/v1", name="Downstairs"),))
    settings.connecting.show_found(ServerFound("llama-server", ("one", "two"), ("4 slots.",)))
    yield "Connect", window
    window.rooms.show_chats()
    window.store.apply(BackendReady(frozenset({Feature.CHAT, Feature.BLOCK_MAP})))
    window.store.apply(blocks(n_missed=3))
    window.inspector.show_all(True)
    window.inspector.show_tab("Blocks")
    yield "Blocks", window


IN_EVERY_RUN: Final = {"Chinese": SIZES[2], "longer": SIZES[0]}
"""What fits with the longer texts fits in English."""


@pytest.mark.parametrize(
    ("language", "width", "height", "zoom"),
    [
        pytest.param(language, *size, marks=[] if IN_EVERY_RUN.get(language) == size else [pytest.mark.matrix])
        for language in languages()
        for size in SIZES
        if language != "longer" or size[2] == 100
    ],
)
def test_nothing_is_cut(qapp: QApplication, qtbot: QtBot, language: str, width: int, height: int, zoom: int) -> None:
    translation.install(languages()[language]())
    size = (width, height)
    try:
        window = filled(qapp)
        qtbot.addWidget(window)
        window.store.settings.change(zoom=zoom)
        window.resize(*size)
        window.show()
        qtbot.waitExposed(window)
        found, seen = [], set()
        for place, root in places(window):
            window.resize(*size)
            for _ in range(3):
                QApplication.processEvents()
            if root is not window and root.width() > size[0]:
                root.resize(size[0], root.height())
                QApplication.processEvents()
            found += [f"{place}: {one}" for one in cut(root)]
            if (window.width(), window.height()) != size:
                found.append(f"{place}: the window needs {window.minimumSizeHint().toTuple()}")
            if isinstance(root, QDialog):
                seen.add(type(root).__name__)
                found += [f"{place}: margin {one}" for one in wrong_margins(root) if zoom == 100]
        assert not found, "\n".join(dict.fromkeys(found))
        assert seen == kinds(), "a dialog that no place of the tests opens"
    finally:
        translation.install(translation.english)
        QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete.value)


def test_what_is_elided_says_the_whole_in_its_tooltip(qtbot: QtBot) -> None:
    choice, button = Choice(), ElidedButton("A name that is longer than the room there is")
    choice.addItem("A choice that is longer than the room there is")
    button.setToolTip("What it does")
    for widget, text in ((choice, choice.currentText()), (button, f"{button.full_text}\nWhat it does")):
        qtbot.addWidget(widget)
        widget.resize(90, 28)
        widget.show()
        at = widget.rect().center()
        QApplication.sendEvent(widget, QHelpEvent(QEvent.Type.ToolTip, at, widget.mapToGlobal(at)))
        assert QToolTip.text() == text
        QToolTip.hideText()


def test_a_text_that_has_no_room_is_found(theme: Theme, qtbot: QtBot) -> None:
    """The test of all places can fail: by a word that is too wide, a line too many, and a widget beyond an edge."""
    for text, wraps, size in (
        ("Unbreakable", False, (30, 20)),
        ("Unbreakable", True, (30, 90)),
        ("These are several words for two lines", True, (90, 20)),
    ):
        around = QWidget()
        qtbot.addWidget(around)
        inner = label(text)
        inner.setParent(around)
        inner.setWordWrap(wraps)
        inner.resize(*size)
        around.show()
        assert len(list(cut(around))) == 1, text
    outside = QWidget()
    qtbot.addWidget(outside)
    outside.resize(60, 60)
    beyond = label("word")
    beyond.setParent(outside)
    beyond.setGeometry(40, 0, 60, 20)
    outside.show()
    assert "is outside of" in next(cut(outside))
    assert theme.scale == 1
