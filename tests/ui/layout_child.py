"""The window's layout and its fonts: `python tests/ui/layout_child.py` prints them as JSON, with the fonts that
FONTCONFIG_FILE leaves the process and at QT_SCALE_FACTOR."""

import json
import sys
from typing import Any

from PySide6.QtGui import QFont, QFontInfo, QTextLayout
from PySide6.QtWidgets import QApplication, QWidget

from kvdesk.protocol.cache import ContextReady
from kvdesk.protocol.chat import ModelLoaded
from kvdesk.session import Store
from kvdesk.settings import Settings, ThemeChoice
from kvdesk.ui.shell.main_window import MainWindow
from kvdesk.ui.widgets.style.theme import Theme
from tests.ui.samples import CONTEXT, CONVERSATIONS, MODEL, ONE, cache_view

EMOJI = "\N{GRINNING FACE}\N{WHITE HEAVY CHECK MARK}"


def layout(app: QApplication) -> dict[str, Any]:
    """The geometry of all that is seen in a window of 1280 by 800 with two conversations, and the fonts used."""
    theme = Theme(app, theme=ThemeChoice.DARK)
    window = MainWindow(app, Store(Settings(theme=ThemeChoice.DARK)))
    window.store.settings.change(all_instruments=True)
    window.store.show_conversations(CONVERSATIONS, ONE)
    window.store.apply(ModelLoaded(MODEL))
    window.store.apply(ContextReady(CONTEXT, rebuilt=False))
    window.store.apply(cache_view(size=4096))
    window.show()
    window.resize(1280, 800)
    for _ in range(5):
        app.processEvents()
    shown = [widget for widget in window.findChildren(QWidget) if widget.isVisible()]
    told = {
        "boxes": [[type(w).__name__, w.x(), w.y(), w.width(), w.height()] for w in shown],
        "too_high_px": too_high_px(window),
        "families": [QFontInfo(font).family() for font in (theme.text, theme.mono)],
        "emoji": drawn_with(EMOJI, theme.text),
        "emoji in code": drawn_with(EMOJI, theme.mono),
    }
    window.close()
    return told


def too_high_px(window: MainWindow) -> int:
    """So much of the numbers and positions is out of sight before one scrolls; graphs may be below."""
    page = window.inspector.cache
    return max(0, page.instruments.rulers.geometry().bottom() + 1 - page._scroll.viewport().height())


def drawn_with(text: str, font: QFont) -> list[str]:
    """The families that the text is drawn with; "" for one that has not all the glyphs."""
    line = QTextLayout(text, font)
    line.beginLayout()
    line.createLine()
    line.endLayout()
    return [run.rawFont().familyName() if all(run.glyphIndexes()) else "" for run in line.glyphRuns()]


if __name__ == "__main__":
    json.dump(layout(QApplication([])), sys.stdout)
