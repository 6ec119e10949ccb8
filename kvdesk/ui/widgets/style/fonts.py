"""The fonts that kvdesk brings (resources/fonts), so that the window is laid out alike on every system.

Scripts that they lack, Chinese for one, are drawn with the system's fonts, and emoji with its colour emoji font where
there is one: Qt sees to both.
"""

import logging
import sys
from functools import cache
from typing import Final

from PySide6.QtGui import QFont, QFontDatabase, QFontInfo

from kvdesk.paths import resources_dir

TEXT: Final = "kvdesk Text"
"""Inter, regular and semi-bold."""
MONO: Final = "kvdesk Mono"
"""JetBrains Mono."""
EMOJI: Final = "Noto Emoji"
"""In one colour, for systems without a font for emoji."""
SMALLEST_PX = 13 if sys.platform == "darwin" else 14
LARGEST_PX = 18
_HINTING = QFont.HintingPreference.PreferNoHinting  # letters then lie between pixels too, so that words are evenly set


@cache
def load_fonts() -> None:
    """Give the fonts to Qt, once in a process; there must be an application. What is missing is the system's instead:
    a window with other fonts still works."""
    for file in sorted((resources_dir() / "fonts").glob("*.ttf")):
        if QFontDatabase.addApplicationFont(str(file)) < 0:
            logging.getLogger(__name__).warning("the font %s cannot be used", file)


def text_font() -> QFont:
    """The font of what one reads, in the size that the system asks for, within bounds. Digits are of one width."""
    load_fonts()
    system = QFontDatabase.systemFont(QFontDatabase.SystemFont.GeneralFont)
    font = QFont([TEXT, EMOJI, system.family()])
    font.setPixelSize(min(max(SMALLEST_PX, QFontInfo(system).pixelSize()), LARGEST_PX))
    font.setFeature(QFont.Tag("tnum"), 1)
    font.setHintingPreference(_HINTING)
    return font


def mono_font() -> QFont:
    """The font of code and of numbers in columns; signs that it lacks are the text font's."""
    load_fonts()
    font = QFont([MONO, TEXT, EMOJI, QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont).family()])
    font.setStyleHint(QFont.StyleHint.Monospace)
    font.setHintingPreference(_HINTING)
    return font
