"""The settings of how the window looks, as choices; each goes to the store at once."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from PySide6.QtCore import QLocale, QSignalBlocker

from kvdesk.paths import catalogues
from kvdesk.session import SettingsStore
from kvdesk.settings import ThemeChoice
from kvdesk.translation import marked, tr
from kvdesk.ui.widgets.choice import Choice
from kvdesk.ui.widgets.style.sizes import LEAST_FONT_PX, MOST_FONT_PX, ZOOMS

_THEMES: Final = {
    ThemeChoice.SYSTEM: marked("Follow the system"),
    ThemeChoice.LIGHT: marked("Light"),
    ThemeChoice.DARK: marked("Dark"),
}


class Appearance:
    """`choices`: by the name of their setting. The language only if there are several."""

    def __init__(self, settings: SettingsStore) -> None:
        self._settings = settings
        self.choices: dict[str, Choice] = dict(self._make())

    def _make(self) -> Iterator[tuple[str, Choice]]:
        themes = [(tr(name), value) for value, name in _THEMES.items()]
        yield self._choice("theme", tr("Theme"), themes)
        yield self._choice("zoom", tr("Zoom"), [(tr("{n} %").format(n=zoom), zoom) for zoom in ZOOMS])
        sizes = [(tr("{n} px").format(n=px), px) for px in range(LEAST_FONT_PX, MOST_FONT_PX + 1)]
        yield self._choice("font_px", tr("Font size"), [(tr("Follow the system"), 0), *sizes])
        if catalogues():
            names = {tr("Follow the system"): "system", "English": "en", **_native_names()}
            yield self._choice("language", tr("Language"), names.items())

    def _choice(self, field: str, name: str, values: Iterable[tuple[str, Any]]) -> tuple[str, Choice]:
        choice = Choice(name=name)
        for text, value in values:
            choice.addItem(text, value)
        kind = ThemeChoice if field == "theme" else None

        def on_changed() -> None:
            value = choice.currentData()
            self._settings.change(**{field: kind(value) if kind else value})

        choice.currentIndexChanged.connect(on_changed)
        return field, choice

    def show(self) -> None:
        """The settings of the store; that is no edit."""
        now = self._settings.current
        shown: Mapping[str, object] = {
            "theme": now.theme,
            "zoom": min(ZOOMS, key=lambda zoom: abs(zoom - now.zoom)),
            "font_px": now.font_px,
            "language": now.language,
        }
        for field, choice in self.choices.items():
            with QSignalBlocker(choice):
                choice.setCurrentIndex(max(0, choice.findData(shown[field])))


def _native_names() -> dict[str, str]:
    """The languages beside English that kvdesk speaks, each as its speakers call it."""
    return {QLocale(code).nativeLanguageName(): code for code in catalogues()}
