"""How the window looks: fonts, icons, and the switch between light and dark."""

from collections.abc import Callable
from typing import Final

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QIcon, QPalette
from PySide6.QtWidgets import QApplication, QWidget

from kvdesk.settings import ThemeChoice
from kvdesk.ui.widgets.style.colours import DARK, LIGHT, Colours
from kvdesk.ui.widgets.style.fonts import mono_font, text_font
from kvdesk.ui.widgets.style.icons import line_icon
from kvdesk.ui.widgets.style.stylesheet import style_sheet
from kvdesk.viewmodel import palette

SMALLEST: Final = 8
"""Pixels of the text, however small it is made."""


class Theme(QObject):
    """The look in force. Widgets read it when they paint and repaint when it changes.

    theme     what it begins with: made before the widgets, so that they are not styled twice
    unstyled  the style sheet waits for `style`: with it Qt styles a widget and all in it again each time that it is put
              into another, which takes three quarters of the time of a window

    Fonts: `text` is what one reads; `mono` is for code, and every number in a column. `set_size` makes new ones; `px`
    gives lengths that grow with them.
    """

    changed = Signal()

    def __init__(
        self,
        app: QApplication,
        parent: QObject | None = None,
        theme: ThemeChoice = ThemeChoice.SYSTEM,
        *,
        unstyled: bool = False,
    ) -> None:
        super().__init__(parent)
        self._app = app
        self.colours = LIGHT
        self._is_unstyled = unstyled
        self._icons: dict[tuple[str, str], QIcon] = {}
        if app.style().objectName() not in ("fusion", ""):  # setting it takes 0.2 s; "": a sheet lies over it already
            app.setStyle("Fusion")
        self.system_px = text_font().pixelSize()
        """The size of text that the system asks for, within bounds."""
        self._make_fonts(self.system_px)
        app.styleHints().colorSchemeChanged.connect(self._apply)
        self.set_theme(theme)

    def _make_fonts(self, base_px: int) -> None:
        self._base_px = base_px
        self.scale = base_px / self.system_px
        """How much larger than the system asks for."""
        text, mono = text_font(), mono_font()
        self.text = _made(text, base_px)
        self.strong = _made(text, base_px, QFont.Weight.DemiBold)
        self.large = _made(text, base_px + self.px(3), QFont.Weight.DemiBold)
        self.title = _made(text, base_px + self.px(6), QFont.Weight.DemiBold)
        self.small = _made(text, base_px - self.px(2))
        self.mono, self.mono_small = _made(mono, base_px - self.px(1)), _made(mono, base_px - self.px(2))
        sample = "the quick brown fox jumps over the lazy dog, and on it goes "
        self.text_column = round(QFontMetricsF(self.text).horizontalAdvance(sample) * 72 / len(sample))
        """Width of the column of text one reads: about 72 characters."""

    def px(self, length: int) -> int:
        """A length in pixels of a window without zoom, at the size in force."""
        return round(length * self.scale)

    def follow(self, adapt: Callable[[], object]) -> None:
        """Call this now, and whenever the look changes: a method of a widget, which ends that with itself."""
        self.changed.connect(adapt)
        adapt()

    def give_font(self, widget: QWidget, name: str) -> None:
        """Give a widget one of the fonts ("mono_small"), now and at every other size."""
        _FontGiver(self, widget, name)

    def set_size(self, zoom: int, font_px: int = 0) -> None:
        """The size of text and all that holds it: `zoom` percent of `font_px`, 0 being what the system asks for."""
        base_px = max(SMALLEST, round((font_px or self.system_px) * zoom / 100))
        if base_px != self._base_px:
            self._make_fonts(base_px)
            self._apply()
            self.changed.emit()

    def column_in(self, width: int) -> int:
        """How wide the column of text is in a pane of this width: it grows a little if there is much room, up to
        about 96 characters.
        """
        return max(self.text_column, min(round(0.66 * width), round(self.text_column * 96 / 72)))

    def icon(self, name: str, ink: str) -> QIcon:
        """The line icon `name` in a colour, drawn once."""
        key = (name, ink)
        if key not in self._icons:
            self._icons[key] = line_icon(name, ink, self.colours.secondary)
        return self._icons[key]

    def conversation_colour(self, index: int) -> QColor:
        return QColor(palette.conversation_colour(index, self.colours.dark))

    def branch_colour(self, index: int) -> QColor:
        """Of a branch: `palette.branch_index`."""
        return QColor(palette.branch_colour(index, self.colours.panel, self.colours.text, self.colours.dark))

    def style(self) -> None:
        """Apply the style sheet, where the theme was made `unstyled`."""
        self._is_unstyled = False
        self._apply()

    def set_theme(self, theme: ThemeChoice) -> None:
        """Light, dark, or as the system has it; takes effect at once."""
        self._theme = theme
        hints = self._app.styleHints()
        scheme = {ThemeChoice.LIGHT: Qt.ColorScheme.Light, ThemeChoice.DARK: Qt.ColorScheme.Dark}.get(theme)
        if scheme is None:
            hints.unsetColorScheme()
        else:
            hints.setColorScheme(scheme)
        self._apply()

    def _apply(self) -> None:
        if self._theme is ThemeChoice.SYSTEM:
            dark = self._app.styleHints().colorScheme() is Qt.ColorScheme.Dark
        else:
            dark = self._theme is ThemeChoice.DARK
        colours = DARK if dark else LIGHT
        other = colours is not self.colours
        if other:
            self.colours = colours
            self._icons.clear()
        sheet = style_sheet(colours, self.text.pixelSize(), self.small.pixelSize(), self.mono.families(), self.scale)
        if self._app.styleSheet() != sheet:  # setting it styles every widget again
            self._app.setFont(self.text)
            self._app.setPalette(_qt_palette(colours))
            if not self._is_unstyled:
                self._app.setStyleSheet(sheet)
        if other:
            self.changed.emit()


class _FontGiver(QObject):
    """Belongs to the widget, and ends with it."""

    def __init__(self, theme: Theme, widget: QWidget, name: str) -> None:
        super().__init__(widget)
        self._theme, self._widget, self._name = theme, widget, name
        theme.follow(self._give)

    def _give(self) -> None:
        font: QFont = getattr(self._theme, self._name)
        if self._widget.font() != font:
            self._widget.setFont(font)


def _made(font: QFont, px: int, weight: QFont.Weight | None = None) -> QFont:
    result = QFont(font)
    result.setPixelSize(px)
    if weight is not None:
        result.setWeight(weight)
    return result


def _qt_palette(colours: Colours) -> QPalette:
    role = QPalette.ColorRole
    table = {
        role.Window: colours.window,
        role.WindowText: colours.text,
        role.Base: colours.raised,
        role.AlternateBase: colours.panel,
        role.Text: colours.text,
        role.Button: colours.raised,
        role.ButtonText: colours.text,
        role.BrightText: colours.danger,
        role.PlaceholderText: colours.secondary,
        role.Highlight: colours.selection,
        role.HighlightedText: colours.text,
        role.ToolTipBase: colours.raised,
        role.ToolTipText: colours.text,
        role.Link: palette.mix(colours.accent, colours.text, 0.35),
        role.LinkVisited: palette.mix(colours.accent, colours.text, 0.35),
        role.Accent: colours.accent,
        role.Light: colours.hover,
        role.Midlight: colours.hover,
        role.Mid: colours.line,
        role.Dark: colours.line,
        role.Shadow: colours.line,
    }
    result = QPalette()
    for name, colour in table.items():
        result.setColor(name, QColor(colour))
    for name in (role.WindowText, role.Text, role.ButtonText):
        result.setColor(QPalette.ColorGroup.Disabled, name, QColor(palette.mix(colours.secondary, colours.panel, 0.4)))
    return result
