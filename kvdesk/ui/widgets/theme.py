"""How the window looks: fonts, icons, and the switch between light and dark."""

from __future__ import annotations

from PySide6.QtCore import QObject, Qt, Signal, Slot
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QIcon, QPalette
from PySide6.QtWidgets import QApplication

from kvdesk.settings import ThemeChoice
from kvdesk.ui.widgets.colours import DARK, LIGHT, Colours
from kvdesk.ui.widgets.fonts import mono_font, text_font
from kvdesk.ui.widgets.icons import line_icon
from kvdesk.ui.widgets.stylesheet import style_sheet
from kvdesk.viewmodel import palette


class Theme(QObject):
    """The look in force. Widgets read it when they paint and repaint when it changes.

    theme  what it begins with: made before the widgets, so that they are not styled twice

    Fonts, which nobody changes: `text` is what one reads; `mono` is for code, and every number that stands in a column.
    """

    changed = Signal()

    def __init__(
        self, app: QApplication, parent: QObject | None = None, theme: ThemeChoice = ThemeChoice.SYSTEM
    ) -> None:
        super().__init__(parent)
        self._app = app
        self.colours = LIGHT
        self._icons: dict[tuple[str, str], QIcon] = {}
        if app.style().objectName() not in ("fusion", ""):  # setting it takes 0.2 s; "": a sheet lies over it already
            app.setStyle("Fusion")
        self.text, mono = text_font(), mono_font()
        self._base_px = px = self.text.pixelSize()
        self.strong = _made(self.text, px, QFont.Weight.DemiBold)
        self.large = _made(self.text, px + 3, QFont.Weight.DemiBold)
        self.small = _made(self.text, px - 2)
        self.mono, self.mono_small = _made(mono, px - 1), _made(mono, px - 2)
        app.styleHints().colorSchemeChanged.connect(self._on_color_scheme_changed)
        self.set_theme(theme)

    @property
    def text_column(self) -> int:
        """Width of the column of text one reads: about 72 characters."""
        sample = "the quick brown fox jumps over the lazy dog, and on it goes "
        return round(QFontMetricsF(self.text).horizontalAdvance(sample) * 72 / len(sample))

    def column_in(self, width: int) -> int:
        """How wide the column of text is in a pane of this width: it grows a little where there is much room, up to
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

    @Slot()
    def _on_color_scheme_changed(self) -> None:
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
        sheet = style_sheet(colours, self._base_px, self.mono.families())
        if self._app.styleSheet() != sheet:  # setting it styles every widget there is anew
            self._app.setFont(self.text)
            self._app.setPalette(_qt_palette(colours))
            self._app.setStyleSheet(sheet)
        if other:
            self.changed.emit()


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
